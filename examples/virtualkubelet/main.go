//go:build unix

package main

import (
	"context"
	"errors"
	"flag"
	"log"
	"os"
	"os/signal"
	"syscall"

	"github.com/virtual-kubelet/virtual-kubelet/node"
	"github.com/virtual-kubelet/virtual-kubelet/node/nodeutil"

	"github.com/kubegrace/kubegrace/lifecycle/virtualkubelet"
	"github.com/kubegrace/kubegrace/shutdown"
	"github.com/kubegrace/kubegrace/shutdown/apistatus"
)

func main() {
	kubeconfig := flag.String("kubeconfig", os.Getenv("KUBECONFIG"), "the file that leads to the API server")
	name := flag.String("node", "processes", "the name of the node")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the program at once
	if err := run(ctx, *kubeconfig, *name); err != nil {
		log.Fatal(err)
	}
}

// run runs a node until ctx ends, then terminates its pods, and returns when they have ended.
func run(ctx context.Context, kubeconfig, name string) error {
	client, err := nodeutil.ClientsetFromEnv(kubeconfig)
	if err != nil {
		return err
	}
	provider, err := virtualkubelet.New(virtualkubelet.Options{Runtime: &processes{}})
	if err != nil {
		return err
	}
	reporter, err := apistatus.New(apistatus.Options{Client: client, NodeName: name})
	if err != nil {
		return err
	}
	manager, err := shutdown.NewManager(shutdown.Options{Pods: provider.Pods, Killer: provider, Reporter: reporter})
	if err != nil {
		return err
	}
	virtual, err := nodeutil.NewNode(name, func(nodeutil.ProviderConfig) (nodeutil.Provider, node.NodeProvider, error) {
		return withoutStreams{provider}, nil, nil
	}, nodeutil.WithClient(client))
	if err != nil {
		return err
	}
	err = virtual.Run(ctx)
	drainCtx := context.WithoutCancel(ctx)
	_, drainErr := manager.TerminateAll(drainCtx)
	return errors.Join(err, drainErr, provider.Close(drainCtx))
}
