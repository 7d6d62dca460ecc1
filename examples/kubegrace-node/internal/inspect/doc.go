// Package inspect has the commands plan and status of kubegrace-node, which look and change nothing: it
// parses their flags, reads the input, and writes what it found.
//
//	root.AddCommand(inspect.NewPlan(streams, askAgent), inspect.NewStatus(streams))
//
// # Concurrency properties
//
// A command is executed once, by one goroutine.
//
// # Failure modes
//
// The errors about flags and input name the flag or the file. An
// [ExitStatus] means that all was written, and with which status the program ends.
//
// # Testing
//
// [Streams] are the streams and the environment, so the tests need no process. Their golden files
// are in testdata.
package inspect
