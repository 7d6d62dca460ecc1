// Package inspect has the commands plan and status of kubegrace-node. They only look, and change nothing.
// The package parses their flags, reads the input, and writes what was found.
//
//	root.AddCommand(inspect.NewPlan(), inspect.NewStatus())
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
// Most tests execute the commands in their own process. Their golden files are in testdata.
package inspect
