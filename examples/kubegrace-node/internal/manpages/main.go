// Command manpages writes the man pages of kubegrace-node into a folder:
//
//	go run ./kubegrace-node/internal/manpages FOLDER
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
// The pages are generated from the commands of package command, which have their own tests.
package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra/doc"

	"github.com/kubegrace/kubegrace/examples/kubegrace-node/internal/command"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "manpages: wanted is a folder")
		os.Exit(1)
	}
	c, err := command.New(nil)
	if err == nil {
		c.DisableAutoGenTag = true // the date of the build is no part of the page
		err = doc.GenManTree(c, &doc.GenManHeader{Section: "1", Source: "kubegrace"}, os.Args[1])
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "manpages:", err)
		os.Exit(1)
	}
}
