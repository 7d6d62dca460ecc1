package shutdown_test

import (
	"context"
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/component-base/featuregate"

	"github.com/kubegrace/kubegrace/shutdown"
	"github.com/kubegrace/kubegrace/shutdown/shutdowntest"
	"github.com/kubegrace/kubegrace/shutdown/source"
)

// ReporterFunc publishes the node state only.
func ExampleReporterFunc() {
	ctx, stop := context.WithCancel(context.Background())
	host := &shutdowntest.Host{}
	opts := exampleOptions()
	opts.Source = host
	opts.Killer = &shutdowntest.Killer{}
	opts.Reporter = shutdown.ReporterFunc(func(_ context.Context, state shutdown.NodeState) error {
		fmt.Printf("shutting down: %v, kind %q\n", state.ShuttingDown, state.Kind)
		if !state.ShuttingDown {
			go host.Announce(source.Event{Kind: source.KindPoweroff})
		}
		return nil
	})
	opts.OnReport = func(context.Context, shutdown.Report) { stop() }
	manager, err := shutdown.NewManager(opts)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(manager.Run(ctx))
	// Output:
	// shutting down: false, kind ""
	// shutting down: true, kind "poweroff"
	// <nil>
}

// The policy decides what SetStatus sets in the status of a pod.
func ExamplePodPolicy() {
	opts := exampleOptions()
	opts.Killer = shutdown.PodKillerFunc(func(_ context.Context, pod *v1.Pod, req shutdown.KillRequest) (shutdown.KillResult, error) {
		status := pod.Status.DeepCopy()
		req.SetStatus(status)
		fmt.Printf("%s: %s %q\n", pod.Name, status.Phase, status.Reason)
		return shutdown.KillResult{Status: status}, nil
	})
	for _, policy := range []shutdown.PodPolicy{shutdown.PolicySetTerminal, shutdown.PolicyLeaveAsIs} {
		opts.Policy = func(source.Kind) shutdown.PodPolicy { return policy }
		manager, err := shutdown.NewManager(opts)
		if err != nil {
			fmt.Println(err)
			return
		}
		if _, err := manager.TerminateAll(context.Background()); err != nil {
			fmt.Println(err)
		}
	}
	// Output:
	// web: Failed "Terminated"
	// etcd: Failed "Terminated"
	// web: Running ""
	// etcd: Running ""
}

// The error names the setting to change for a longer delay.
func ExampleDelayCappedError() {
	err := &source.DelayCappedError{Requested: 35 * time.Second, Granted: 5 * time.Second, Setting: "InhibitDelayMaxSec", SetBy: "/etc/systemd/logind.conf.d/90.conf"}
	fmt.Println(err)
	// Output:
	// the host delays its shutdown by 5s at most, 35s was requested; InhibitDelayMaxSec is set by /etc/systemd/logind.conf.d/90.conf
}

// The gates are added to those of the agent, and can be set by its flag.
func ExampleAddFeatureGates() {
	gate := featuregate.NewFeatureGate()
	if err := shutdown.AddFeatureGates(gate); err != nil {
		fmt.Println(err)
	}
	fmt.Println(gate.Enabled(shutdown.GracefulNodeShutdown))
	if err := gate.Set("GracefulNodeShutdown=false"); err != nil {
		fmt.Println(err)
	}
	fmt.Println(gate.Enabled(shutdown.GracefulNodeShutdown))
	// Output:
	// true
	// false
}
