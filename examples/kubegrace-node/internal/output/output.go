package output

import (
	"encoding/json"
	"io"
	"os"
	"strconv"

	"sigs.k8s.io/yaml"

	"github.com/kubegrace/kubegrace/examples/kubegrace-node/internal/api"
	"github.com/kubegrace/kubegrace/examples/kubegrace-node/internal/nodeplan"
)

// The formats of [Write]. [WriteMachine] and [WriteReport] have no HTML.
const (
	Table = "table"
	JSON  = "json"
	YAML  = "yaml"
	HTML  = "html"
)

// Write writes a plan. It shows all nodes of the document. The summary may count nodes that the document does not
// have.
func Write(format string, out io.Writer, d nodeplan.Document) error {
	if format == HTML {
		return writePlanPage(out, d)
	}
	return write(format, out, d, func(t *terminal) { t.showPlan(d) })
}

// WriteMachine writes what was found on a machine.
func WriteMachine(format string, out io.Writer, r NodeReport) error {
	return write(format, out, r, func(t *terminal) { t.showNodeReport(r) })
}

// WriteReport writes what a shutdown has done, as a table, JSON or YAML.
func WriteReport(format string, out io.Writer, r api.Report) error {
	return write(format, out, r, func(t *terminal) { t.showReport(r) })
}

// write writes a value as JSON or YAML, or as a table, for which it calls show. A table is as wide as the environment
// variable COLUMNS says, but at least 40 columns; without the variable it is 80 columns wide.
func write(format string, out io.Writer, value any, show func(*terminal)) error {
	switch format {
	case Table:
		t := &terminal{width: 80}
		if columns, err := strconv.Atoi(os.Getenv("COLUMNS")); err == nil {
			t.width = max(columns, 40)
		}
		show(t)
		_, err := io.WriteString(out, t.text.String())
		return err
	case JSON:
		encoder := json.NewEncoder(out)
		encoder.SetIndent("", "  ")
		return encoder.Encode(value)
	default: // YAML
		text, err := yaml.Marshal(value)
		if err != nil {
			return err
		}
		_, err = out.Write(text)
		return err
	}
}
