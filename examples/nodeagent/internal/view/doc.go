// Package view shows people what the agent does with its pods.
//
//	v := view.New(os.Stdout, nil)
//	v.Say("9 pods run; SIGTERM starts the shutdown.")
//	v.Show(snapshot) // as often as you like
//	v.Finish(snapshot)
//
// On a terminal a view draws one table and redraws it in place. Anywhere else it prints a
// line for each change. At the end of a shutdown both print the same table, and say in
// sentences what happened. [Plan] shows what a shutdown would do, [Report] and [Page] show
// what an earlier one has done.
//
// # Concurrency properties
//
// All methods of a [View] may be called concurrently. Output is written under a
// mutex, so that a log line does not tear the table.
//
// # Failure modes
//
// Output that cannot be written is lost: a drain does not stop for a closed terminal.
//
// # Testing
//
// A view writes to any io.Writer, and without a terminal it prints lines only. The tests
// of this package compare tables with files in testdata; KUBEGRACE_GOLDEN=1 go test
// writes the files anew.
package view
