package output

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/kubegrace/kubegrace/examples/kubegrace-node/internal/nodeplan"
)

// Screen is what a terminal can show.
type Screen struct {
	// Width is the number of columns; less than 40 counts as 40.
	Width int
	// Color allows colors. ASCII restricts the output to ASCII characters.
	Color, ASCII bool
}

// Writer writes a plan part by part: Begin once, Node for each node that is shown, End once.
type Writer interface {
	Begin(h nodeplan.Header) error
	Node(n nodeplan.Node) error
	End(s nodeplan.Summary) error
}

// The formats of [New].
const (
	Table = "table"
	Chart = "chart"
	JSON  = "json"
	YAML  = "yaml"
	HTML  = "html"
)

// Formats returns all formats.
func Formats() []string { return []string{Table, Chart, JSON, YAML, HTML} }

// ForPeople reports whether a format is for people, who do not want to see all nodes of a large
// cluster.
func ForPeople(format string) bool { return !slices.Contains([]string{JSON, YAML}, format) }

// New makes a writer for a format. Only the formats for a terminal use the screen.
func New(format string, out io.Writer, screen Screen) (Writer, error) {
	screen.Width = max(screen.Width, 40)
	switch format {
	case Table:
		return &terminalWriter{out: out, screen: screen, drawNode: (*terminalWriter).table}, nil
	case Chart:
		return &terminalWriter{out: out, screen: screen, drawNode: (*terminalWriter).chart}, nil
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
