// Package output shows the plans of nodes: as tables and as a chart for people, as JSON
// and YAML for programs, as a page with a timeline.
//
//	w, err := output.New("table", os.Stdout, output.Screen{Width: 80})
//	err = w.Begin(header)
//	err = w.Node(node) // for each that is shown
//	err = w.End(summary)
//
// Each writes what it is given at once, so that a cluster of any size goes through.
//
// # Concurrency properties
//
// A Writer is for one goroutine.
//
// # Failure modes
//
// The errors are those of the io.Writer. Whatever names there are, a table is no wider
// than the screen, and no control character gets through; lines that are meant to be
// pasted are not broken.
//
// # Testing
//
// The tests of package command compare what is written with golden files;
// KUBEGRACE_GOLDEN=1 go test writes them anew.
package output
