package shutdown_test

import (
	"context"
	"errors"
	"fmt"

	v1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/kubegrace/kubegrace/shutdown"
	"github.com/kubegrace/kubegrace/shutdown/shutdowntest"
)

// The report says what happened to each pod.
func ExampleManager_LastReport() {
	opts := exampleOptions()
	opts.Killer = shutdown.PodKillerFunc(func(_ context.Context, pod *v1.Pod, _ shutdown.KillRequest) (shutdown.KillResult, error) {
		if pod.Name == "web" {
			return shutdown.KillResult{}, fmt.Errorf("%w: the runtime does not know it", shutdown.ErrNoRetry)
		}
		return shutdown.KillResult{Outcome: "Graceful"}, nil
	})
	manager, err := shutdown.NewManager(opts)
	if err != nil {
		fmt.Println(err)
		return
	}
	if _, err := manager.TerminateAll(context.Background()); err != nil {
		fmt.Println(err)
	}
	report, found := manager.LastReport()
	fmt.Println(found, report.Origin)
	for _, pod := range report.Pods {
		fmt.Printf("%s: %d s, %q, %q\n", pod.Name, pod.GrantedSeconds, pod.Outcome, pod.Error)
	}
	// Output:
	// pod default/web: the kill is not retried: the runtime does not know it
	// true TerminateAll
	// web: 15 s, "", "the kill is not retried: the runtime does not know it"
	// etcd: 5 s, "Graceful", ""
}

// A killer whose error wraps ErrNoRetry is not called again for that pod.
func ExamplePodKillerFunc() {
	killer := shutdown.PodKillerFunc(func(_ context.Context, pod *v1.Pod, _ shutdown.KillRequest) (shutdown.KillResult, error) {
		return shutdown.KillResult{}, fmt.Errorf("%w: pod %s is of another node", shutdown.ErrNoRetry, pod.Name)
	})
	_, err := killer.KillPod(context.Background(), shutdowntest.Pod("etcd", 0, 30), shutdown.KillRequest{GracePeriodSeconds: ptr.To(int64(30))})
	fmt.Println(errors.Is(err, shutdown.ErrNoRetry), err)
	// Output:
	// true the kill is not retried: pod etcd is of another node
}
