// Command containers lists the pods in the container runtime of this machine, with their grace periods and preStop
// hooks. A kubelet must have created them, but need not run, and there need be no API server.
//
//	containers unix:///run/containerd/containerd.sock
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"

	"github.com/kubegrace/kubegrace/lifecycle/criruntime"
)

func main() {
	log.SetFlags(0)
	if len(os.Args) != 2 {
		log.Fatal("usage: containers ENDPOINT")
	}
	if err := run(context.Background(), os.Args[1]); err != nil {
		log.Fatal(err)
	}
}

// run prints the containers of the runtime at an endpoint.
func run(ctx context.Context, endpoint string) (err error) {
	runtime, err := criruntime.Dial(ctx, endpoint, criruntime.Options{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, runtime.Close()) }()
	pods, err := runtime.Pods(ctx)
	if err != nil {
		return err
	}
	for _, pod := range pods {
		grace := "no grace period"
		if seconds := pod.Spec.TerminationGracePeriodSeconds; seconds != nil {
			grace = fmt.Sprint(*seconds, " s")
		}
		for _, container := range pod.Spec.Containers {
			hook := "no preStop hook"
			if container.Lifecycle != nil && container.Lifecycle.PreStop != nil {
				hook = "a preStop hook"
			}
			fmt.Printf("%s/%s/%s: %s, %s\n", pod.Namespace, pod.Name, container.Name, grace, hook)
		}
	}
	return nil
}
