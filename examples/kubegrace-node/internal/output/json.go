package output

import (
	"bytes"
	"encoding/json"
	"io"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/kubegrace/kubegrace/examples/kubegrace-node/internal/nodeplan"
)

// jsonWriter writes a nodeplan.Document as JSON, node by node.
type jsonWriter struct{ out *jsontext.Encoder }

func newJSON(out io.Writer) *jsonWriter {
	return &jsonWriter{jsontext.NewEncoder(out, jsontext.WithIndent("  "))}
}

// Begin writes the fields before the nodes.
func (w *jsonWriter) Begin(h nodeplan.Header) error {
	text, err := json.Marshal(newDocumentStart(h))
	if err != nil {
		return err
	}
	if err := w.out.WriteToken(jsontext.BeginObject); err != nil {
		return err
	}
	start := jsontext.NewDecoder(bytes.NewReader(text))
	if _, err := start.ReadToken(); err != nil {
		return err
	}
	for start.PeekKind() != '}' {
		value, err := start.ReadValue() // the name of a field, or its value
		if err != nil {
			return err
		}
		if err := w.out.WriteValue(value); err != nil {
			return err
		}
	}
	if err := w.out.WriteToken(jsontext.String("nodes")); err != nil {
		return err
	}
	return w.out.WriteToken(jsontext.BeginArray)
}

// Node writes a node as an item of the list of nodes.
func (w *jsonWriter) Node(n nodeplan.Node) error {
	text, err := json.Marshal(n)
	if err != nil {
		return err
	}
	return w.out.WriteValue(text)
}

// End writes the fields after the nodes.
func (w *jsonWriter) End(s nodeplan.Summary) error {
	text, err := json.Marshal(s)
	if err != nil {
		return err
	}
	if err := w.out.WriteToken(jsontext.EndArray); err != nil {
		return err
	}
	if err := w.out.WriteToken(jsontext.String("summary")); err != nil {
		return err
	}
	if err := w.out.WriteValue(text); err != nil {
		return err
	}
	return w.out.WriteToken(jsontext.EndObject)
}
