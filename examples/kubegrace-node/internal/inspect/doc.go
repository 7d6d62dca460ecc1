// Package inspect has the commands plan and status of kubegrace-node. They only look, and change nothing.
// The package parses their flags, reads the input, and writes what was found.
//
//	root.AddCommand(inspect.NewPlan(streams, askAgent), inspect.NewStatus(streams))
//
// # Concurrency properties
//
// A command is executed once, by one goroutine.
//
// # Failure modes
//
// An error about a flag or an input names the flag or the file. An [ExitStatus] is returned as an error,
// too: everything was written, and the program only has to end with that status.
//
// # Testing
//
// [Streams] replaces the streams and the environment of the process, so most tests need no process of their
// own. Their golden files are in testdata.
package inspect
