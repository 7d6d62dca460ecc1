package shutdown_test

import (
	"context"
	"errors"
	"fmt"

	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/shutdown"
	"github.com/kubegrace/kubegrace/shutdown/shutdowntest"
)

// An agent evicts pods through the same door as a shutdown kills them: one
// PodKiller.
func ExampleTimedKiller() {
	stop := func(_ context.Context, pod *v1.Pod, req shutdown.KillRequest) (shutdown.KillResult, error) {
		status := pod.Status.DeepCopy()
		req.SetStatus(status)
		fmt.Printf("%s has %d s: %s, %s: %s\n", pod.Name, req.GracePeriodSeconds, status.Phase, status.Reason, status.Message)
		return shutdown.KillResult{Outcome: "Graceful", Status: status}, nil
	}
	killer, err := shutdown.NewTimedKiller(shutdown.PodKillerFunc(stop), nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer killer.Wait()

	pod := shutdowntest.Pod("web", 0, 60)
	if !shutdown.Evictable(pod) {
		return
	}
	req := shutdown.SoftEviction(pod, 20, "The node was low on resource: memory.")
	_, err = killer.KillPod(context.Background(), pod, req)
	var overdue *shutdown.OverdueError
	if errors.As(err, &overdue) {
		fmt.Println("the kill goes on after", overdue.Timeout)
	}
	// Output:
	// web has 20 s: Failed, Evicted: The node was low on resource: memory.
}
