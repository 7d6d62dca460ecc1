package shutdowntest_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/kubegrace/kubegrace/shutdown"
	"github.com/kubegrace/kubegrace/shutdown/shutdowntest"
	"github.com/kubegrace/kubegrace/shutdown/source"
)

// A host grants 5 s of the requested 30 s. Once it shuts down, it refuses locks.
func ExampleHost() {
	ctx := context.Background()
	host := &shutdowntest.Host{Limit: 5 * time.Second, SetBy: "logind.conf"}
	session, err := host.Connect(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	granted, err := session.RequestDelay(ctx, 30*time.Second)
	fmt.Println(granted, err)
	lock, err := session.Inhibit(ctx)
	fmt.Println(host.Held(), err)

	host.Announce(source.Event{Kind: source.KindPoweroff})
	fmt.Println((<-session.Events()).Kind)
	_, err = session.Inhibit(ctx)
	fmt.Println(err)

	fmt.Println(lock.Close(), session.Close(), host.Held(), host.Err())
	fmt.Println(host.Calls())
	// Output:
	// 5s the host delays its shutdown by 5s at most, 30s was requested; the limit is set by logind.conf
	// 1 <nil>
	// poweroff
	// the operation inhibition has been requested for is already running
	// <nil> <nil> 0 <nil>
	// [connect delay inhibit inhibit release close]
}

// A host loses its sessions and then rejects new ones.
func ExampleHost_Script() {
	host := &shutdowntest.Host{}
	session, err := host.Connect(context.Background())
	if err != nil {
		fmt.Println(err)
		return
	}
	host.Script(func(h *shutdowntest.Host) { h.ConnectErr = errors.New("the bus is down") })
	host.Lose()
	_, open := <-session.Events()
	_, err = host.Connect(context.Background())
	fmt.Println(open, err)
	// Output:
	// false the bus is down
}

// Both pods end at once, with the outcome Graceful. The kill of the pod named broken returns the error of its Behaviour, too.
func ExampleKiller() {
	killer := &shutdowntest.Killer{
		Pods: map[string]shutdowntest.Behaviour{"broken": {Err: errors.New("the runtime is down")}},
	}
	for _, name := range []string{"web", "broken"} {
		pod := shutdowntest.Pod(name, 0, 30)
		result, err := killer.KillPod(context.Background(), pod, shutdown.KillRequest{GracePeriodSeconds: ptr.To(int64(10))})
		fmt.Println(result.Outcome, err)
	}
	for _, kill := range killer.Kills() {
		fmt.Println(kill.Pod.Name, *kill.Request.GracePeriodSeconds, kill.Ended.IsZero())
	}
	// Output:
	// Graceful <nil>
	// Graceful the runtime is down
	// web 10 false
	// broken 10 false
}

// Release ends the kills of pods that hang.
func ExampleKiller_Release() {
	calls := make(chan struct{})
	killer := &shutdowntest.Killer{
		Default: shutdowntest.Behaviour{Hangs: true},
		OnKill:  func(*v1.Pod) { close(calls) },
	}
	ended := make(chan shutdown.KillResult)
	go func() {
		result, err := killer.KillPod(context.Background(), shutdowntest.Pod("stuck", 0, 30), shutdown.KillRequest{})
		if err != nil {
			fmt.Println(err)
		}
		ended <- result
	}()
	<-calls
	for len(killer.Kills()) == 0 { // OnKill is called before the call is recorded
		<-time.After(time.Millisecond)
	}
	killer.Release()
	fmt.Println((<-ended).Outcome)
	// Output:
	// GraceExceeded
}

// The shutdown was announced before the agent started, and is then cancelled.
func ExampleHost_SetPending() {
	ctx := context.Background()
	host := &shutdowntest.Host{}
	host.SetPending(&source.Event{Kind: source.KindReboot})
	session, err := host.Connect(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	pending, err := session.Pending(ctx)
	fmt.Println(pending.Kind, err)

	host.Cancel()
	event := <-session.Events()
	fmt.Println(event.Cancelled)
	pending, err = session.Pending(ctx)
	fmt.Println(pending, err)
	// Output:
	// reboot <nil>
	// true
	// <nil> <nil>
}

// A restarted agent adopts the lock of the previous one, even during a shutdown, when Inhibit fails. The host has only that
// lock: a second Adopt returns nil.
func ExampleHost_Adopt() {
	host := &shutdowntest.Host{StoredLock: true}
	host.SetPending(&source.Event{Kind: source.KindReboot}) // from now on Inhibit fails, but Adopt does not
	lock := host.Adopt()
	fmt.Println(host.Held(), host.Adopt() == nil)
	fmt.Println(lock.Close(), host.Held(), host.Calls())
	// Output:
	// 1 true
	// <nil> 0 [adopt release]
}

// FlushErr makes the first call of FlushPod fail: n is the number of calls before.
func ExampleReporter() {
	reporter := &shutdowntest.Reporter{
		FlushErr: func(n int) error {
			if n == 0 {
				return errors.New("the API server is down")
			}
			return nil
		},
	}
	pod := shutdowntest.Pod("web", 0, 30)
	for range 2 {
		fmt.Println(reporter.FlushPod(context.Background(), pod))
	}
	for _, flushed := range reporter.Flushed() {
		fmt.Println(flushed.Final.Name, flushed.Err)
	}
	// Output:
	// the API server is down
	// <nil>
	// web the API server is down
	// web <nil>
}

// A negative grace period makes a pod without one.
func ExamplePod() {
	pod := shutdowntest.Pod("web", 1000, -1)
	fmt.Println(pod.Namespace, pod.Name, pod.UID, pod.Status.Phase)
	fmt.Println(*pod.Spec.Priority, pod.Spec.TerminationGracePeriodSeconds == nil)
	// Output:
	// default web uid-web Running
	// 1000 true
}
