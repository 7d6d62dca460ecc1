// Package output writes what kubegrace-node has to say: the plans of nodes, what was found on one machine, and
// what a shutdown has done. It writes tables for a terminal, JSON or YAML for programs, HTML pages, or
// metrics.
//
//	err := output.Write(output.Table, os.Stdout, output.Screen{Width: 80}, document)
//
// Tables and pages first say what to change and where to begin. The nodes follow. People read times such as
// 1m30s; programs get seconds.
//
// All functions may be called concurrently. The only errors are those of the io.Writer. Whatever the names of
// pods are, tables are no wider than the screen and contain no control characters. Only lines that are meant
// to be pasted may be wider.
//
// The tests of package inspect compare the output with golden files, which go test rewrites if
// KUBEGRACE_GOLDEN=1 is set. The tests of this package open the pages in a headless Chromium, in a wide window
// and in one as narrow as a phone.
package output
