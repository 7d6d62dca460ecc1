// Package view shows people what the agent does with its pods:
//
//	v := view.New(os.Stdout, nil)
//	v.Say("9 pods run; SIGTERM starts the shutdown.")
//	v.Show(snapshot) // as often as you like
//	v.Finish(snapshot)
//
// On a terminal it redraws one table in place; anywhere else it prints a line
// whenever something changes. At the end both print the same table, and say in
// sentences what happened. [Plan], [Report] and [Page] show the same before a shutdown and
// long after it.
//
// # Concurrency properties
//
// All methods of a [View] may be called concurrently. Output is written under a
// mutex, so that a log line does not tear the table.
//
// # Failure modes
//
// What cannot be written is lost: a drain does not stop for a closed terminal.
//
// # Testing
//
// A view writes to any io.Writer; only with a terminal is something redrawn.
package view
