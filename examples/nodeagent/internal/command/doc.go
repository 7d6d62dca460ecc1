// Package command is the command line of nodeagent.
//
//	c, err := command.New(signals, os.Stdout, os.Stderr)
//	if err != nil {
//		return err
//	}
//	return c.ExecuteContext(ctx)
//
// # Concurrency properties
//
// Execute a command once.
//
// # Failure modes
//
// Every error is one line for people ([OneLine]) that names the flag or the file. Of run only what no
// waiting can mend is one: flags, --config, and a kubelet that drains the machine itself.
//
// # Testing
//
// The tests build the program and run it, most with pods that are played.
package command
