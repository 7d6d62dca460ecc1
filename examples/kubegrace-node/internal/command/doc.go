// Package command is the command line of kubegrace-node. A command is executed once. Every error names the
// flag or the file, and fits on one line ([OneLine]). The command run fails only for what waiting cannot fix:
// invalid flags, an invalid --config, and a kubelet that drains the machine itself. For all else it waits.
package command
