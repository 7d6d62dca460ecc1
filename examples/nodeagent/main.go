// Command nodeagent runs the pods of a folder and stops them in order, with their
// hooks and grace periods, when its machine shuts down: a node agent in small,
// made of kubegrace's packages.
//
// To see it work on any machine, without containers and without a shutdown:
//
//	cd examples
//	go run ./nodeagent --config nodeagent/demo/kubelet.yaml --manifests nodeagent/demo/pods --source=manual --shutdown-after=2s
//
// The manifests in demo/pods say in annotations how the played containers behave.
// With real ones, and as a service that holds back the shutdown of its machine
// until they have stopped (nodeagent.service is a unit for it):
//
//	nodeagent --config /var/lib/kubelet/config.yaml --manifests /etc/kubegrace/pods \
//		--runtime=cri --container-runtime-endpoint=unix:///run/containerd/containerd.sock --source=logind
//
// With --kubeconfig FILE it also tells an API server, as a kubelet would: the pods
// are shown as mirror pods, the node is not ready while it shuts down, and each pod
// has a final status before the machine is let go. --pod-policy says what becomes of
// pods for each kind of shutdown.
//
// It outlives its terminal, and whatever reads its output. nodeagent plan is its dry run;
// drain and stop tell a running one what to do, report says what became of the pods, and
// uninstall removes from a host what was written there.
//
// The configuration is a kubelet's own. Bad input ends the program with one line
// and status 1 before any pod is started; status 1 also tells of pods that could
// not be stopped. --help lists all flags.
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
	// A reader of the output that has ended (| tee), a closed terminal and an ended ssh
	// session are no reason to leave pods behind in the middle of a shutdown.
	signal.Ignore(syscall.SIGPIPE, syscall.SIGHUP)
	signals := make(chan os.Signal, 8) // more than one of each can wait for the agent
	signal.Notify(signals, syscall.SIGTERM, os.Interrupt)
	defer signal.Stop(signals)
	c, err := command.New(signals, os.Stdout, os.Stderr)
	if err != nil {
		return err
	}
	return c.ExecuteContext(context.Background())
}
