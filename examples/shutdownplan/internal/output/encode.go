package output

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"

	"github.com/go-json-experiment/json/jsontext"
	"sigs.k8s.io/yaml"

	"github.com/kubegrace/kubegrace/examples/shutdownplan/internal/nodeplan"
)

// jsonWriter writes a nodeplan.Document, node by node.
type jsonWriter struct{ out *jsontext.Encoder }

func newJSON(out io.Writer) *jsonWriter {
	return &jsonWriter{jsontext.NewEncoder(out, jsontext.WithIndent("  "))}
}

// Begin writes the fields before the nodes.
func (w *jsonWriter) Begin(h nodeplan.Header) error {
	text, err := json.Marshal(newHead(h))
	if err != nil {
		return err
	}
	if err := w.out.WriteToken(jsontext.BeginObject); err != nil {
		return err
	}
	head := jsontext.NewDecoder(bytes.NewReader(text))
	if _, err := head.ReadToken(); err != nil {
		return err
	}
	for head.PeekKind() != '}' {
		value, err := head.ReadValue() // a name, or a value
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

// Node writes a node.
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

// head is the document up to its nodes.
type head struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	nodeplan.Header
}

func newHead(h nodeplan.Header) head { return head{nodeplan.APIVersion, nodeplan.Kind, h} }

// yamlWriter writes a nodeplan.Document, node by node.
type yamlWriter struct {
	out   io.Writer
	nodes int
}

// Begin writes the fields before the nodes.
func (w *yamlWriter) Begin(h nodeplan.Header) error {
	return w.write(newHead(h))
}

// Node writes a node as an item of a list.
func (w *yamlWriter) Node(n nodeplan.Node) error {
	if w.nodes++; w.nodes == 1 {
		if _, err := fmt.Fprintln(w.out, "nodes:"); err != nil {
			return err
		}
	}
	return w.write([]nodeplan.Node{n})
}

// End writes the fields after the nodes.
func (w *yamlWriter) End(s nodeplan.Summary) error {
	if w.nodes == 0 {
		if _, err := fmt.Fprintln(w.out, "nodes: []"); err != nil {
			return err
		}
	}
	return w.write(map[string]any{"summary": s})
}

func (w *yamlWriter) write(part any) error {
	text, err := yaml.Marshal(part)
	if err != nil {
		return err
	}
	_, err = w.out.Write(text)
	return err
}
