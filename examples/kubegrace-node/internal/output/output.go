package output

import (
	"encoding/json"
	"io"
	"slices"

	"sigs.k8s.io/yaml"

	"github.com/kubegrace/kubegrace/examples/kubegrace-node/internal/nodeplan"
)

// Screen is a terminal, or what takes its place.
type Screen struct {
	// Width is the number of columns; less than 40 counts as 40.
	Width int
}

// The formats of [Write] and [WriteMachine].
const (
	Table = "table"
	JSON  = "json"
	YAML  = "yaml"
	HTML  = "html"
)

// Formats returns the formats of [Write].
func Formats() []string { return []string{Table, JSON, YAML, HTML} }

// ForPeople reports whether a format is for people, who do not want to see all nodes of a large
// cluster.
func ForPeople(format string) bool { return !slices.Contains([]string{JSON, YAML}, format) }

// Write writes a plan in one of the [Formats]. Its nodes are those that are shown.
func Write(format string, out io.Writer, screen Screen, d nodeplan.Document) error {
	switch format {
	case Table:
		t := newTerminal(screen)
		t.plan(d)
		return t.writeTo(out)
	case HTML:
		return writePlanPage(out, d)
	default:
		return WriteData(format, out, d)
	}
}

// WriteData writes a value as JSON or YAML.
func WriteData(format string, out io.Writer, value any) error {
	if format == JSON {
		encoder := json.NewEncoder(out)
		encoder.SetIndent("", "  ")
		return encoder.Encode(value)
	}
	text, err := yaml.Marshal(value)
	if err == nil {
		_, err = out.Write(text)
	}
	return err
}
