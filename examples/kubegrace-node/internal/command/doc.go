// Package command is the command line of kubegrace-node. A command is executed once. Every error is one line
// for people ([OneLine]) that names the flag or the file. Of run only what no waiting can mend is one: flags,
// --config, and a kubelet that drains the machine itself.
package command
