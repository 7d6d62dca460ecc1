//go:build go1.25

package apistatus_test

import (
	"context"
	"fmt"

	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/shutdown"
	"github.com/kubegrace/kubegrace/shutdown/apistatus"
	"github.com/kubegrace/kubegrace/shutdown/podkiller"
)

// evict evicts a pod when the node is short of a resource: it removes the pod from its
// services, kills it with the PodKiller of the shutdown manager, and reports the status.
func evict(ctx context.Context, reporter *apistatus.Reporter, killer shutdown.PodKiller, pod *v1.Pod, req shutdown.KillRequest) error {
	if err := reporter.MarkNotReady(ctx, pod); err != nil {
		fmt.Println(err) // evict it anyway
	}
	result, err := killer.KillPod(ctx, pod, req)
	if err != nil {
		return err
	}
	evicted := *pod
	if result.Status != nil {
		evicted.Status = *result.Status
	}
	req.SetStatus(&evicted.Status)
	return reporter.FlushPod(ctx, &evicted) // one attempt; an agent retries
}

// A pod is evicted with the killer of the shutdown manager. It is not ready before it is killed, and Failed afterwards.
func ExampleReporter_eviction() {
	pod := running("web")
	client, reporter, err := newReporter(pod)
	if err != nil {
		fmt.Println(err)
		return
	}
	killer := shutdown.PodKillerFunc(func(ctx context.Context, pod *v1.Pod, req shutdown.KillRequest) (shutdown.KillResult, error) {
		for _, c := range getPod(ctx, client, pod.Name).Status.Conditions {
			if c.Type == v1.PodReady {
				fmt.Printf("kill %s within %d s: %s %s, %s\n", pod.Name, *req.GracePeriodSeconds, c.Type, c.Status, c.Message)
			}
		}
		return shutdown.KillResult{Outcome: "Graceful"}, nil
	})
	err = evict(context.Background(), reporter, killer, pod, podkiller.HardEviction("The node was low on resource: memory."))
	fmt.Println(err)
	evicted := getPod(context.Background(), client, "web")
	fmt.Println(evicted.Status.Phase, evicted.Status.Reason, evicted.Status.Message)
	// Output:
	// kill web within 1 s: Ready False, Pod is being terminated by its node.
	// <nil>
	// Failed Evicted The node was low on resource: memory.
}
