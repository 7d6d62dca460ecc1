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
	"github.com/kubegrace/kubegrace/shutdown/source"
)

// The program of the package documentation, with the fake host of package shutdowntest.
func Example() {
	ctx, stop := context.WithCancel(context.Background())
	host := &shutdowntest.Host{}
	manager, err := shutdown.NewManager(shutdown.Options{
		Config:   plan.Config{ShutdownGracePeriod: metav1.Duration{Duration: 30 * time.Second}},
		Source:   host,
		ListPods: shutdown.ListPodsFunc(func() []*v1.Pod { return []*v1.Pod{shutdowntest.Pod("web", 0, 15)} }, nil),
		Killer:   shutdown.PodKillerFunc(printKill),
		OnReport: func(_ context.Context, report shutdown.Report) {
			fmt.Println("a", report.Kind, "of", len(report.Pods), "pod")
			stop()
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	go func() {
		<-manager.Ready()
		host.Announce(source.Event{Kind: source.KindReboot})
	}()
	fmt.Println(manager.Run(ctx))
	// Output:
	// web: 15 s
	// a reboot of 1 pod
	// <nil>
}

// printKill is a killer whose pods end at once.
func printKill(_ context.Context, pod *v1.Pod, req shutdown.KillRequest) (shutdown.KillResult, error) {
	fmt.Printf("%s: %d s\n", pod.Name, *req.GracePeriodSeconds)
	return shutdown.KillResult{Outcome: "Graceful"}, nil
}

// exampleOptions are the options of a node with 20 s for the pod web and then 10 s for the critical pod etcd.
func exampleOptions() shutdown.Options {
	return shutdown.Options{
		Config: plan.Config{
			ShutdownGracePeriod:             metav1.Duration{Duration: 30 * time.Second},
			ShutdownGracePeriodCriticalPods: metav1.Duration{Duration: 10 * time.Second},
		},
		ListPods: shutdown.ListPodsFunc(func() []*v1.Pod {
			return []*v1.Pod{shutdowntest.Pod("etcd", 2_000_001_000, 5), shutdowntest.Pod("web", 0, 15)}
		}, nil),
		Killer: shutdown.PodKillerFunc(printKill),
	}
}

// Trigger announces a shutdown that the host does not announce, such as that of a UPS.
func ExampleManager_Trigger() {
	reported := make(chan struct{})
	opts := exampleOptions()
	opts.OnReport = func(context.Context, shutdown.Report) { close(reported) }
	manager, err := shutdown.NewManager(opts)
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- manager.Run(ctx) }()

	for manager.Trigger(source.Event{Kind: source.KindPoweroff, Origin: "ups"}) != nil {
		<-time.After(time.Millisecond) // until Run has begun
	}
	fmt.Println(manager.ShutdownStatus())
	<-reported
	stop()
	fmt.Println(<-ended)
	// Unordered output:
	// node is shutting down
	// web: 15 s
	// etcd: 5 s
	// <nil>
}

// An agent stops its pods when it stops itself.
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

// Plan shows what a shutdown would do if it began now.
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

// The error names all invalid options.
func ExampleNewManager() {
	_, err := shutdown.NewManager(shutdown.Options{Config: plan.Config{ShutdownGracePeriod: metav1.Duration{Duration: time.Millisecond}}})
	fmt.Println(err)
	// Output:
	// invalid shutdown options: Options.ListPods is required
	// Options.Killer is required
	// invalid configuration: shutdownGracePeriod {1ms} must be either zero or otherwise >= 1 sec
}

// A shutdown refuses pods until it is cancelled.
func ExampleManager_Admit() {
	opts := exampleOptions()
	opts.Killer = shutdown.PodKillerFunc(func(context.Context, *v1.Pod, shutdown.KillRequest) (shutdown.KillResult, error) {
		return shutdown.KillResult{}, nil
	})
	opts.Source = &shutdowntest.Host{}
	manager, err := shutdown.NewManager(opts)
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- manager.Run(ctx) }()
	<-manager.Ready()

	pod := shutdowntest.Pod("late", 0, 30)
	for _, cancelled := range []bool{false, true} {
		if err := manager.Trigger(source.Event{Cancelled: cancelled}); err != nil {
			fmt.Println(err)
		}
		fmt.Printf("%+v\n", manager.Admit(pod))
	}
	stop()
	fmt.Println(<-ended)
	// Output:
	// {Admit:false Reason:NodeShutdown Message:Pod was rejected as the node is shutting down.}
	// {Admit:true Reason: Message:}
	// <nil>
}

// A Start method like the kubelet's returns when the inhibitor lock is held or the first attempt has failed.
func ExampleManager_Ready() {
	opts := exampleOptions()
	opts.Source = &shutdowntest.Host{}
	manager, err := shutdown.NewManager(opts)
	if err != nil {
		fmt.Println(err)
		return
	}
	ended := make(chan error, 1)
	start := func(ctx context.Context) error {
		go func() { ended <- manager.Run(ctx) }()
		<-manager.Ready()
		return manager.Inhibitor().Err
	}
	ctx, stop := context.WithCancel(context.Background())
	fmt.Println(start(ctx), manager.Inhibitor().Held)
	stop()
	fmt.Println(<-ended)
	// Output:
	// <nil> true
	// <nil>
}

// The lock is held even if the host grants less than the requested delay.
func ExampleManager_Inhibitor() {
	opts := exampleOptions()
	opts.Source = &shutdowntest.Host{Limit: 5 * time.Second, SetBy: "/etc/systemd/logind.conf"}
	manager, err := shutdown.NewManager(opts)
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- manager.Run(ctx) }()
	<-manager.Ready()
	inhibitor := manager.Inhibitor()
	fmt.Println(inhibitor.Held, inhibitor.Requested, inhibitor.Granted)
	fmt.Println(inhibitor.Err)
	stop()
	fmt.Println(<-ended)
	// Output:
	// true 32.5s 5s
	// the host delays its shutdown by 5s at most, 32.5s was requested; the limit is set by /etc/systemd/logind.conf
	// <nil>
}
