// Package inspect is the command line of kubegrace-node: it parses the flags, reads the input,
// and writes the plan.
//
//	err := command.New(command.OpenStreams()).ExecuteContext(ctx)
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
// [New] takes the streams and the environment, so the tests need no process. Their golden files
// are in testdata.
package inspect
