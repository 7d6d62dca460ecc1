package podkiller_test

import (
	"context"
	"errors"
	"fmt"

	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/lifecycle"
	"github.com/kubegrace/kubegrace/lifecycle/lifecycletest"
	"github.com/kubegrace/kubegrace/shutdown"
	"github.com/kubegrace/kubegrace/shutdown/podkiller"
	"github.com/kubegrace/kubegrace/shutdown/shutdowntest"
)

// An agent evicts pods with the same PodKiller that its shutdown manager uses.
func ExampleTimedKiller() {
	stop := func(_ context.Context, pod *v1.Pod, req shutdown.KillRequest) (shutdown.KillResult, error) {
		status := pod.Status.DeepCopy()
		req.SetStatus(status)
		fmt.Printf("%s has %d s: %s, %s: %s\n", pod.Name, *req.GracePeriodSeconds, status.Phase, status.Reason, status.Message)
		return shutdown.KillResult{Outcome: "Graceful", Status: status}, nil
	}
	killer := podkiller.Timed(shutdown.PodKillerFunc(stop), nil) // nil: no events are recorded
	defer killer.Wait()

	pod := shutdowntest.Pod("web", 0, 60)
	if !podkiller.Evictable(pod) {
		return
	}
	req := podkiller.SoftEviction(pod, 20, "The node was low on resource: memory.")
	_, err := killer.KillPod(context.Background(), pod, req)
	var overdue *podkiller.OverdueError
	if errors.As(err, &overdue) {
		fmt.Println("the kill continues")
	}
	// Output:
	// web has 20 s: Failed, Evicted: The node was low on resource: memory.
}

// A terminator kills the pods of a shutdown. The final status has the exit codes.
func ExampleNew() {
	rt, pod := lifecycletest.NewRuntime(), shutdowntest.Pod("web", 0, 60)
	rt.Start(pod, "web", "7f3a", lifecycletest.Script{ExitCode: 3})
	terminator, err := lifecycle.NewTerminator(lifecycle.TerminatorOptions{Runtime: rt})
	if err != nil {
		fmt.Println(err)
		return
	}
	status := func(context.Context, *v1.Pod) *v1.PodStatus {
		code, _ := rt.ExitCode("7f3a")
		state := v1.ContainerState{Terminated: &v1.ContainerStateTerminated{ExitCode: code}}
		return &v1.PodStatus{ContainerStatuses: []v1.ContainerStatus{{Name: "web", ContainerID: "cri://7f3a", State: state}}}
	}
	killer := podkiller.New(terminator, podkiller.Options{Status: status})
	result, err := killer.KillPod(context.Background(), pod, podkiller.HardEviction("low on memory"))
	fmt.Println(result.Outcome, err)
	fmt.Println(result.Status.Phase, result.Status.ContainerStatuses[0].State.Terminated.ExitCode)
	// Output:
	// Graceful <nil>
	// Failed 3
}

// The requests differ in their grace period and in the DisruptionTarget condition.
func ExampleSoftEviction() {
	pod := shutdowntest.Pod("web", 0, 60)
	for _, req := range []shutdown.KillRequest{
		podkiller.HardEviction("The node was low on resource: memory."),
		podkiller.SoftEviction(pod, 20, "The node was low on resource: memory."),
		podkiller.LocalStorageEviction("Pod ephemeral local storage usage exceeds the total limit of containers 1Gi."),
	} {
		var status v1.PodStatus
		req.SetStatus(&status)
		fmt.Println(*req.GracePeriodSeconds, status.Phase, status.Reason, len(status.Conditions))
	}
	// Output:
	// 1 Failed Evicted 1
	// 20 Failed Evicted 1
	// 1 Failed Evicted 0
}

// A node never evicts critical pods.
func ExampleEvictable() {
	critical := int32(2000000000) // system-cluster-critical
	pod := shutdowntest.Pod("dns", 0, 30)
	fmt.Println(podkiller.Evictable(pod))
	pod.Spec.Priority = &critical
	fmt.Println(podkiller.Evictable(pod))
	// Output:
	// true
	// false
}
