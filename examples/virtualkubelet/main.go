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
	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/lifecycle/virtualkubelet"
	"github.com/kubegrace/kubegrace/shutdown"
	"github.com/kubegrace/kubegrace/shutdown/apistatus"
)

// main runs the node until SIGTERM or an interrupt.
func main() {
	kubeconfig := flag.String("kubeconfig", os.Getenv("KUBECONFIG"), "the kubeconfig file of the cluster")
	name := flag.String("node", "processes", "the name of the node")
	service := flag.String("jobs", "", "the URL of a job service that runs the pods; if empty, containers are processes of this machine")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the program at once
	opts := virtualkubelet.Options{Runtime: &processes{}}
	if *service != "" {
		opts = virtualkubelet.Options{Pods: &jobs{url: *service}}
	}
	if err := run(ctx, *kubeconfig, *name, opts); err != nil {
		log.Fatal(err)
	}
}

// run runs a node until ctx ends. Then it refuses new pods, drains the others, and returns when the drain is over.
func run(ctx context.Context, kubeconfig, name string, opts virtualkubelet.Options) error {
	client, err := nodeutil.ClientsetFromEnv(kubeconfig)
	if err != nil {
		return err
	}
	var manager *shutdown.Manager // needs the provider, which needs Admit; set before the first pod is created
	opts.Admit = func(pod *v1.Pod) shutdown.Admission { return manager.Admit(pod) }
	provider, err := virtualkubelet.New(opts)
	if err != nil {
		return err
	}
	reporter, err := apistatus.New(apistatus.Options{Client: client, NodeName: name})
	if err != nil {
		return err
	}
	manager, err = shutdown.NewManager(shutdown.Options{ListPods: provider.Pods, Killer: provider, Reporter: reporter})
	if err != nil {
		return err
	}
	virtual, err := nodeutil.NewNode(name, func(nodeutil.ProviderConfig) (nodeutil.Provider, node.NodeProvider, error) {
		return withoutStreams{provider}, nil, nil
	}, nodeutil.WithClient(client))
	if err != nil {
		return err
	}
	nodeCtx, stopNode := context.WithCancel(context.WithoutCancel(ctx)) // virtual-kubelet runs during the drain
	defer stopNode()
	go func() { _ = virtual.Run(nodeCtx) }() // Err returns its error
	select {
	case <-ctx.Done():
	case <-virtual.Done():
	}
	_, err = manager.TerminateAll(nodeCtx)
	stopNode()
	<-virtual.Done()
	return errors.Join(virtual.Err(), err, provider.Close(context.WithoutCancel(ctx)))
}
