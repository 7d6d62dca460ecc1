// Package command is the command line of nodeagent.
//
//	c, err := command.New(signals, os.Stdout, os.Stderr)
//	if err == nil {
//		err = c.ExecuteContext(ctx)
//	}
//
// The command without arguments reads flags and files, checks all of them, and only then
// makes the agent and runs it. plan does the same up to the plan of a shutdown. report,
// drain and stop send a request to the socket of a running agent. uninstall removes what
// the agent has written on the host.
//
// # Concurrency properties
//
// A command is run once. A signal that arrives during the start ends the command, but not
// the goroutine that reads files and connects: the program is about to end.
//
// # Failure modes
//
// Bad input is an error that names the flag or the file, the field and the value,
// before any pod is started. The error of several wrong inputs has several lines;
// [OneLine] joins them.
//
// # Testing
//
// The tests of this package build nodeagent and run it as a process. Some of them need an
// API server, a D-Bus daemon or root; see package need.
package command
