package readme_test

import (
	"flag"
	"go/ast"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/metrics"
)

// tablesPage is the page with the tables.
const tablesPage = "metrics/README.md"

var update = flag.Bool("update", false, "update the rows in the tables of metrics/README.md")

// The tables of metrics/README.md have exactly one row for each metric, event, condition and reason in the code.
// A table follows a comment <!-- table: NAME -->. Its last column is written by hand: -update keeps it, and
// writes TODO in new rows.
func TestTablesMatchTheCode(t *testing.T) {
	packages := library(t)
	for name, rows := range map[string]map[string]bool{
		"events":     events(packages),
		"conditions": conditions(packages),
		"reasons":    withoutEventReasons(reasons(t, packages), events(packages)),
		"metrics":    series(t),
	} {
		t.Run(name, func(t *testing.T) {
			text := page(t, tablesPage)
			table := regexp.MustCompile(`(?s)<!-- table: ` + name + ` -->\n\n(\|[^\n]*\n\|[-| ]*\n)(.*?)\n(?:\n|$)`).FindStringSubmatchIndex(text)
			require.NotNil(t, table, "the page has no such table")
			begin, end := table[4], table[5] // where its rows, the second group, begin and end in text
			written := map[string]string{}   // the last column by row
			for line := range strings.SplitSeq(text[begin:end], "\n") {
				line = strings.TrimSuffix(line, " |")
				last := strings.LastIndex(line, " | ")
				require.Positive(t, last, "a row without columns: %q", line)
				written[line[:last]] = line[last+len(" | "):]
			}
			if *update {
				replace(t, text, begin, end, rows, written)
				return
			}
			require.Equal(t, slices.Sorted(maps.Keys(rows)), slices.Sorted(maps.Keys(written)), "go test ./internal/readme -update adds missing rows")
			require.NotContains(t, slices.Collect(maps.Values(written)), "TODO")
		})
	}
}

// replace writes rows of a table into the page, in place of text[from:to]. written has the last column of known rows.
func replace(t *testing.T, text string, from, to int, rows map[string]bool, written map[string]string) {
	t.Helper()
	var lines []string
	for _, row := range slices.Sorted(maps.Keys(rows)) {
		meaning := written[row]
		if meaning == "" {
			meaning = "TODO"
		}
		lines = append(lines, row+" | "+meaning+" |")
	}
	require.NoError(t, os.WriteFile(filepath.Join("../..", tablesPage), []byte(text[:from]+strings.Join(lines, "\n")+text[to:]), 0o600))
}

// row returns the beginning of a row.
func row(columns ...string) string { return "| " + strings.Join(columns, " | ") }

// code returns Markdown that shows a text as code in a table.
func code(text string) string { return "`" + strings.ReplaceAll(text, "|", `\|`) + "`" }

// identifier matches a reason.
var identifier = regexp.MustCompile(`^[A-Z]\w+$`)

// events finds the reasons of events: the third argument of a recorder's Event, the argument after
// the type of an event in other calls, and the arguments of functions with Warning in their names.
func events(packages []source) map[string]bool {
	rows := map[string]bool{}
	for _, s := range packages {
		inspect(s, func(call *ast.CallExpr) {
			kind := "" // the type of the event; "": the call records none
			if calledName(call) == "Event" && len(call.Args) == 4 {
				kind = "any"
			}
			if strings.Contains(calledName(call), "Warning") {
				kind = v1.EventTypeWarning
			}
			for _, arg := range call.Args {
				if selector, ok := arg.(*ast.SelectorExpr); ok && strings.HasPrefix(selector.Sel.Name, "EventType") {
					kind = strings.TrimPrefix(selector.Sel.Name, "EventType")
				} else if reason, ok := s.value(arg); ok && kind != "" && identifier.MatchString(reason) {
					rows[row(code(s.path), kind, code(reason))] = true
				}
			}
		})
	}
	return rows
}

// conditions finds the conditions of nodes and pods that the library uses: those in k8s.io/api by uses of
// their constants, others by their declarations.
func conditions(packages []source) map[string]bool {
	known := map[string]string{
		"NodeReady": string(v1.NodeReady), "PodReady": string(v1.PodReady), "ContainersReady": string(v1.ContainersReady),
		"PodInitialized": string(v1.PodInitialized), "PodScheduled": string(v1.PodScheduled), "DisruptionTarget": string(v1.DisruptionTarget),
	}
	rows := map[string]bool{}
	for _, s := range packages {
		inspect(s, func(selector *ast.SelectorExpr) {
			if condition, ok := known[selector.Sel.Name]; ok {
				rows[row(code(s.path), code(condition))] = true
			}
		})
		inspect(s, func(spec *ast.ValueSpec) {
			if declared, ok := spec.Type.(*ast.SelectorExpr); ok && strings.HasSuffix(declared.Sel.Name, "ConditionType") {
				rows[row(code(s.path), code(s.constants[spec.Names[0].Name]))] = true
			}
		})
	}
	return rows
}

// reasons finds the reasons of conditions and statuses: the string constants whose names contain
// "reason", the values of fields named Reason, and the constants of k8s.io/api.
func reasons(t *testing.T, packages []source) map[string]bool {
	t.Helper()
	known := map[string]string{"PodReasonTerminationByKubelet": v1.PodReasonTerminationByKubelet}
	rows := map[string]bool{}
	for _, s := range packages {
		inspect(s, func(spec *ast.ValueSpec) {
			for _, name := range spec.Names {
				value := s.constants[name.Name]
				if spec.Type == nil && strings.Contains(strings.ToLower(name.Name), "reason") && identifier.MatchString(value) {
					rows[row(code(s.path), code(value))] = true
				}
			}
		})
		inspect(s, func(field *ast.KeyValueExpr) {
			if name, ok := field.Key.(*ast.Ident); ok && name.Name == "Reason" {
				if reason, ok := s.value(field.Value); ok {
					rows[row(code(s.path), code(reason))] = true
				}
			}
		})
		inspect(s, func(selector *ast.SelectorExpr) {
			if from, ok := selector.X.(*ast.Ident); ok && from.Name == "v1" && strings.HasPrefix(selector.Sel.Name, "PodReason") {
				require.Contains(t, known, selector.Sel.Name, "add the value of this constant to known")
				rows[row(code(s.path), code(known[selector.Sel.Name]))] = true
			}
		})
	}
	return rows
}

// withoutEventReasons removes the reasons of events from reasons. The columns of reasons are the package and the reason,
// and those of events the package, the type of the event and the reason.
func withoutEventReasons(reasons, events map[string]bool) map[string]bool {
	for event := range events {
		columns := strings.Split(event, " | ")
		delete(reasons, columns[0]+" | "+columns[2])
	}
	return reasons
}

// series returns the names and labels of the collectors of package metrics.
func series(t *testing.T) map[string]bool {
	t.Helper()
	r := &registerer{}
	_, err := metrics.NewLifecycle(r, metrics.Options{})
	require.NoError(t, err)
	_, err = metrics.NewShutdown(r, metrics.Options{})
	require.NoError(t, err)
	rows := map[string]bool{}
	description := regexp.MustCompile(`fqName: "([^"]*)".*variableLabels: \{([^}]*)\}`)
	for _, collector := range r.collectors {
		descriptions := make(chan *prometheus.Desc, 10)
		collector.Describe(descriptions)
		close(descriptions)
		for d := range descriptions {
			found := description.FindStringSubmatch(d.String())
			require.NotNil(t, found, d.String())
			rows[row(code(found[1]), strings.ReplaceAll(found[2], ",", ", "))] = true
		}
	}
	return rows
}

// registerer records the collectors that are registered.
type registerer struct {
	prometheus.Registerer

	collectors []prometheus.Collector
}

// Register records the collector, and registers it nowhere.
func (r *registerer) Register(c prometheus.Collector) error {
	r.collectors = append(r.collectors, c)
	return nil
}
