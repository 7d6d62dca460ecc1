package output

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/kubegrace/kubegrace/examples/shutdownplan/internal/nodeplan"
)

// Screen is where people read.
type Screen struct {
	// Width is in columns; less than 40 counts as 40.
	Width int
	// Color allows colors, ASCII forbids other characters.
	Color, ASCII bool
}

// Writer shows a plan, part by part.
type Writer interface {
	Begin(h nodeplan.Header) error
	Node(n nodeplan.Node) error
	End(s nodeplan.Summary) error
}

// The formats.
const (
	Table = "table"
	Chart = "chart"
	JSON  = "json"
	YAML  = "yaml"
	HTML  = "html"
)

// Formats are all of them.
func Formats() []string { return []string{Table, Chart, JSON, YAML, HTML} }

// ForPeople tells whether a format is read by people, who want to see some nodes and
// not all.
func ForPeople(format string) bool { return !slices.Contains([]string{JSON, YAML}, format) }

// New makes the writer of a format.
func New(format string, out io.Writer, screen Screen) (Writer, error) {
	screen.Width = max(screen.Width, 40)
	switch format {
	case Table:
		return &people{out: out, screen: screen, node: (*people).table}, nil
	case Chart:
		return &people{out: out, screen: screen, node: (*people).chart}, nil
	case JSON:
		return newJSON(out), nil
	case YAML:
		return &yamlWriter{out: out}, nil
	case HTML:
		return &htmlWriter{out: out}, nil
	default:
		return nil, fmt.Errorf("output format %q is none of %s", format, strings.Join(Formats(), ", "))
	}
}
