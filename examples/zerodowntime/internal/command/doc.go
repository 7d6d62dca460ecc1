// Package command is the command line of zerodowntime:
//
//	err := command.New(os.Stdout, os.Stderr).ExecuteContext(ctx)
//
// # Concurrency properties
//
// A command is executed once. It runs its scenarios concurrently.
//
// # Failure modes
//
// All wrong flags are reported in one error, before anything is started. After SIGINT or
// SIGTERM the error is [ErrInterrupted], and the results so far have been written.
//
// # Testing
//
// The tests of the program execute it with real flags.
package command
