// Package output writes the plans of nodes: as tables or charts for a terminal, as JSON or YAML
// for programs, or as an HTML page with timelines.
//
//	w, err := output.New("table", os.Stdout, output.Screen{Width: 80})
//	err = w.Begin(header)
//	err = w.Node(node) // for each node that is shown
//	err = w.End(summary)
//
// All formats but HTML write each node at once, so that a cluster may have any size.
//
// # Concurrency properties
//
// A Writer is for one goroutine.
//
// # Failure modes
//
// The errors are those of the io.Writer. Tables and charts are no wider than the screen and
// contain no control characters, whatever the names of pods are. Only lines that are meant to
// be pasted may be wider.
//
// # Testing
//
// The tests of package command compare the output with golden files. With
// KUBEGRACE_GOLDEN=1 go test writes these files.
package output
