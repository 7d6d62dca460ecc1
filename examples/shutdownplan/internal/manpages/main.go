// Command manpages writes the man pages of shutdownplan into a folder:
//
//	go run ./shutdownplan/internal/manpages FOLDER
//
// # Concurrency properties
//
// It has one goroutine.
//
// # Failure modes
//
// A folder that cannot be written is an error, and the exit status is 1.
//
// # Testing
//
// The pages are made of the commands, which have tests of their own.
package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra/doc"

	"github.com/kubegrace/kubegrace/examples/shutdownplan/internal/command"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "manpages: wanted is a folder")
		os.Exit(1)
	}
	c := command.New(command.OpenStreams())
	c.DisableAutoGenTag = true // the date of the build is no part of the page
	err := doc.GenManTree(c, &doc.GenManHeader{Section: "1", Source: "kubegrace"}, os.Args[1])
	if err != nil {
		fmt.Fprintln(os.Stderr, "manpages:", err)
		os.Exit(1)
	}
}
