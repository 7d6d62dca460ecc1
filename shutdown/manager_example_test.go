package shutdown_test

import (
	"context"
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubegrace/kubegrace/shutdown"
	"github.com/kubegrace/kubegrace/shutdown/plan"
	"github.com/kubegrace/kubegrace/shutdown/shutdowntest"
)

// printing is a killer whose pods end at once.
func printing(_ context.Context, pod *v1.Pod, req shutdown.KillRequest) (shutdown.KillResult, error) {
	fmt.Printf("%s: %d s\n", pod.Name, req.GracePeriodSeconds)
	return shutdown.KillResult{Outcome: "Graceful"}, nil
}

func exampleOptions() shutdown.Options {
	return shutdown.Options{
		Config: plan.Config{
			ShutdownGracePeriod:             metav1.Duration{Duration: 30 * time.Second},
			ShutdownGracePeriodCriticalPods: metav1.Duration{Duration: 10 * time.Second},
		},
		Pods: func() []*v1.Pod {
			return []*v1.Pod{shutdowntest.Pod("etcd", 2_000_001_000, 5), shutdowntest.Pod("web", 0, 15)}
		},
		Killer: shutdown.PodKillerFunc(printing),
	}
}

// A shutdown that no host announces: of a UPS, of a test, of an operator.
func ExampleManager_Trigger() {
	released := make(chan struct{})
	opts := exampleOptions()
	opts.OnRelease = func(context.Context) { close(released) }
	manager, err := shutdown.NewManager(opts)
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- manager.Run(ctx) }()

	for manager.Trigger(shutdown.Event{Kind: shutdown.KindPoweroff, Origin: "ups"}) != nil {
		<-time.After(time.Millisecond) // Run has not begun
	}
	fmt.Println(manager.ShutdownStatus())
	<-released
	stop()
	fmt.Println(<-ended)
	// Unordered output:
	// node is shutting down
	// web: 15 s
	// etcd: 5 s
	// <nil>
}

// An agent that stops its pods when it is stopped itself.
func ExampleManager_TerminateAll() {
	manager, err := shutdown.NewManager(exampleOptions())
	if err != nil {
		fmt.Println(err)
		return
	}
	report, err := manager.TerminateAll(context.Background())
	for _, pod := range report.Pods {
		fmt.Println(pod.Name, pod.Bucket, pod.Outcome)
	}
	fmt.Println(err, manager.Admit(nil).Message)
	// Output:
	// web: 15 s
	// etcd: 5 s
	// web 0 Graceful
	// etcd 2000000000 Graceful
	// <nil> Pod was rejected as the node is shutting down.
}

// What a shutdown would do if it began now.
func ExampleManager_Plan() {
	manager, err := shutdown.NewManager(exampleOptions())
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, bucket := range manager.Plan().Buckets {
		for _, pod := range bucket.Pods {
			fmt.Println(bucket.Priority, pod.Pod.Name, pod.GrantedSeconds)
		}
	}
	// Output:
	// 0 web 15
	// 2000000000 etcd 5
}

// All that is wrong with the options is said at once.
func ExampleNewManager() {
	_, err := shutdown.NewManager(shutdown.Options{Config: plan.Config{ShutdownGracePeriod: metav1.Duration{Duration: time.Millisecond}}})
	fmt.Println(err)
	// Output:
	// invalid shutdown options: Options.Pods is required
	// Options.Killer is required
	// invalid configuration: shutdownGracePeriod {1ms} must be either zero or otherwise >= 1 sec
}
