// Command kubegrace-node stops the pods of this machine when the machine shuts down: in order, with their
// hooks and grace periods. It finds the pods in the container runtime, whatever program has started them. It starts
// no pods.
//
// To try it on any machine, without containers and without a shutdown:
//
//	cd examples
//	go run ./kubegrace-node demo --config kubegrace-node/demo/kubelet.yaml --manifests kubegrace-node/demo/pods
//
// kubegrace-node run is the agent, and kubegrace-node.service a unit for it; README.md says how it is
// installed. kubegrace-node plan is a dry run, drain and undrain control a running agent, report prints
// what a shutdown did to the pods, and uninstall removes what the agent has written on the host.
//
// The program keeps running when its terminal is closed or when nobody reads its output any more.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/kubegrace/kubegrace/examples/kubegrace-node/internal/command"
	"github.com/kubegrace/kubegrace/examples/kubegrace-node/internal/inspect"
)

func main() {
	err := run()
	var status inspect.ExitStatus
	switch {
	case errors.As(err, &status):
		os.Exit(int(status))
	case err != nil:
		fmt.Fprintln(os.Stderr, "kubegrace-node: "+command.OneLine(err))
		os.Exit(1)
	}
}

// run executes the command line.
func run() error {
	// The agent must finish a shutdown even if the reader of its output ends, as in
	// kubegrace-node | tee, or if its terminal or ssh session is closed.
	signal.Ignore(syscall.SIGPIPE, syscall.SIGHUP)
	c, err := command.New(func() <-chan os.Signal {
		signals := make(chan os.Signal, 8) // buffered, so that several signals can wait for the agent
		signal.Notify(signals, syscall.SIGTERM, os.Interrupt)
		return signals
	})
	if err != nil {
		return err
	}
	return c.ExecuteContext(context.Background())
}
