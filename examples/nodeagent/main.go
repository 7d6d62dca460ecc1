// Command nodeagent is a small node agent made of kubegrace's packages. It runs the pods
// of a folder, and stops them in order, with their hooks and grace periods, when the
// machine shuts down.
//
// To try it on any machine, without containers and without a shutdown:
//
//	cd examples
//	go run ./nodeagent --config nodeagent/demo/kubelet.yaml --manifests nodeagent/demo/pods --source=manual --shutdown-after=2s
//
// Annotations of the manifests in demo/pods script how the containers behave. To run real
// containers, as a service that delays the shutdown of its machine until they have
// stopped (nodeagent.service is a unit for it):
//
//	nodeagent --config /var/lib/kubelet/config.yaml --manifests /etc/kubegrace/pods \
//		--runtime=cri --container-runtime-endpoint=unix:///run/containerd/containerd.sock --source=logind
//
// With --kubeconfig FILE it also reports to an API server, as a kubelet does: it creates
// mirror pods for the pods, the node is not ready while it shuts down, and each pod has a
// final status before the shutdown goes on. --pod-policy chooses what happens to the
// pods' statuses for each kind of shutdown.
//
// The program keeps running when its terminal is closed or nothing reads its output any
// more. nodeagent plan is a dry run; drain and stop control a running agent, report
// prints what a shutdown did to the pods, and uninstall removes the files that the agent
// has written on the host.
//
// The configuration is that of a kubelet. Invalid input ends the program with one line
// and status 1 before any pod is started; status 1 is also that of pods that could not be
// stopped. --help lists all flags.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/kubegrace/kubegrace/examples/nodeagent/internal/command"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "nodeagent: "+command.OneLine(err))
		os.Exit(1)
	}
}

func run() error {
	// The agent must finish a shutdown even if the reader of its output ends, as in
	// nodeagent | tee, or its terminal or ssh session is closed.
	signal.Ignore(syscall.SIGPIPE, syscall.SIGHUP)
	signals := make(chan os.Signal, 8) // buffered, so that several signals can wait for the agent
	signal.Notify(signals, syscall.SIGTERM, os.Interrupt)
	defer signal.Stop(signals)
	c, err := command.New(signals, os.Stdout, os.Stderr)
	if err != nil {
		return err
	}
	return c.ExecuteContext(context.Background())
}
