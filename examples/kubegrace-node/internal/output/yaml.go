package output

import (
	"fmt"
	"io"

	"sigs.k8s.io/yaml"

	"github.com/kubegrace/kubegrace/examples/kubegrace-node/internal/nodeplan"
)

// documentStart has the fields of a nodeplan.Document before its nodes.
type documentStart struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	nodeplan.Header
}

func newDocumentStart(h nodeplan.Header) documentStart {
	return documentStart{nodeplan.APIVersion, nodeplan.Kind, h}
}

// yamlWriter writes a nodeplan.Document as YAML, node by node.
type yamlWriter struct {
	out   io.Writer
	nodes int // the number of nodes that were written
}

// Begin writes the fields before the nodes.
func (w *yamlWriter) Begin(h nodeplan.Header) error {
	return w.write(newDocumentStart(h))
}

// Node writes a node as an item of the list of nodes.
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

// write writes a part of the document.
func (w *yamlWriter) write(part any) error {
	text, err := yaml.Marshal(part)
	if err != nil {
		return err
	}
	_, err = w.out.Write(text)
	return err
}
