// Package output writes the plans of nodes, and what was found on one machine: as tables for a terminal, as
// JSON or YAML for programs, as an HTML page, or as metrics.
//
//	err := output.Write(output.Table, os.Stdout, output.Screen{Width: 80}, document)
//
// Tables and pages say first what to change and where to begin, and then have the nodes. Times are as people
// write them, 1m30s, but seconds for programs.
//
// All functions may be called concurrently. Their errors are those of the io.Writer. Tables are no wider than the
// screen and contain no control characters, whatever the names of pods are. Only lines that are meant to
// be pasted may be wider.
//
// The tests of package inspect compare the output with golden files. With KUBEGRACE_GOLDEN=1 go test writes
// these files. The tests of this package open the pages in a headless Chromium, in a wide window and in one of the
// width of a phone.
package output
