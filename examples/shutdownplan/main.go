// Command shutdownplan shows what the shutdown of a node would do to its pods, before
// it happens:
//
//	kubectl get pods -A -o json | shutdownplan --config kubelet.yaml --limit 30s
//
// It reads pods as kubectl lists them, a whole cluster's too, or manifests, and plans by
// the same arithmetic as an agent drains (package shutdown/plan): the buckets in their
// order, what each pod asks for and gets, when it is told to stop and when it has ended,
// what is cut short and why, and what to change so that nothing is. It prints a table
// (-o table), a chart (-o chart), a page with a timeline (-o html), or a document for
// programs (-o json, -o yaml), whose fields are those of nodeplan.Document.
//
// The exit status is 2 if a pod would be cut short, so that a pipeline can stop, and 1
// if something is wrong. --help lists all flags.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/kubegrace/kubegrace/examples/shutdownplan/internal/command"
)

func main() {
	err := command.New(command.OpenStreams()).ExecuteContext(context.Background())
	switch {
	case errors.Is(err, command.ErrCutShort):
		os.Exit(2)
	case err != nil:
		fmt.Fprintln(os.Stderr, "shutdownplan: "+err.Error())
		os.Exit(1)
	}
}
