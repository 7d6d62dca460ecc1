// Package command is the command line of shutdownplan: its flags, where it reads from,
// and what it shows where.
//
// # Concurrency properties
//
// A command runs once.
//
// # Failure modes
//
// What is wrong with flags and input is an error of the command, which names the flag
// or the file. [ErrCutShort] says that all went well and that pods would be cut short.
//
// # Testing
//
// New takes the streams and the environment.
package command
