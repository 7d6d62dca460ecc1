// Package command is the command line of the agent: it reads flags and files,
// checks all of them, and only then puts the agent together and runs it.
//
//	c, err := command.New(signals, os.Stdout, os.Stderr)
//	if err == nil {
//		err = c.ExecuteContext(ctx)
//	}
//
// # Concurrency properties
//
// A command is run once. What is still being read or asked when a signal ends the start
// is left alone; the program is about to end.
//
// # Failure modes
//
// Bad input is an error that names the flag or the file, the field and the value,
// before any pod is started. An error may have several lines when several things
// are wrong; [OneLine] makes one of them.
//
// # Testing
//
// The program itself is built and run by the tests of this package.
package command
