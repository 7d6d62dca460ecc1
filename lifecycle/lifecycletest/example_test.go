//go:build go1.25

package lifecycletest_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/kubegrace/kubegrace/lifecycle"
	"github.com/kubegrace/kubegrace/lifecycle/lifecycletest"
)

// One container obeys its stop signal; the other ignores it, and is killed after the timeout of 1 s.
func ExampleRuntime() {
	rt := lifecycletest.NewRuntime()
	rt.Start(pod, "obedient", "obedient", lifecycletest.Script{})
	rt.Start(pod, "stubborn", "stubborn", lifecycletest.Script{IgnoreTerm: true})
	for _, id := range []string{"obedient", "stubborn"} {
		if err := rt.StopContainer(context.Background(), id, 1); err != nil {
			fmt.Println(err)
		}
	}
	for _, exit := range rt.Exits() {
		fmt.Println(exit.ID, "was ended by", exit.By)
	}
	// Output:
	// obedient was ended by TERM
	// stubborn was ended by KILL
}

// A test can check which events a termination has recorded.
func ExampleEvents() {
	rt, events := lifecycletest.NewRuntime(), &lifecycletest.Events{}
	rt.Start(pod, "app", "app", lifecycletest.Script{})
	terminator, err := lifecycle.NewTerminator(lifecycle.TerminatorOptions{Runtime: rt, Events: events})
	if err != nil {
		fmt.Println(err)
		return
	}
	if _, err := terminator.KillPod(context.Background(), pod, lifecycle.Request{}); err != nil {
		fmt.Println(err)
	}
	for _, event := range events.All() {
		fmt.Println(event.Type, event.Reason, event.Message)
	}
	// Output: Normal Killing Stopping container app
}

// An unavailable runtime fails all calls, as if its process had crashed.
func ExampleRuntime_Away() {
	rt := lifecycletest.NewRuntime()
	rt.Start(pod, "app", "app", lifecycletest.Script{})
	rt.Away(0, time.Hour) // from now on
	fmt.Println(rt.StopContainer(context.Background(), "app", 30))
	fmt.Println(rt.ExitCode("app"))
	// Output:
	// the runtime is unavailable
	// 0 false
}

// A script makes StopContainer fail once; the terminator calls it again.
func ExampleScript() {
	rt := lifecycletest.NewRuntime()
	rt.Start(pod, "app", "app", lifecycletest.Script{FailStops: 1, ExitCode: 3})
	terminator, err := lifecycle.NewTerminator(lifecycle.TerminatorOptions{Runtime: rt})
	if err != nil {
		fmt.Println(err)
		return
	}
	result, err := terminator.KillPod(context.Background(), pod, lifecycle.Request{GracePeriodSeconds: ptr.To(int64(30))})
	fmt.Println(result.Outcome(), err)
	for _, stop := range rt.Stops() {
		fmt.Println(stop.TimeoutSeconds, stop.Err)
	}
	fmt.Println(rt.ExitCode("app"))
	// Output:
	// Graceful <nil>
	// 30 the script fails this stop
	// 30 <nil>
	// 3 true
}

// The test in the package documentation.
func TestAgentStopsItsPod(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rt := lifecycletest.NewRuntime()
		pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web"}, Spec: v1.PodSpec{Containers: []v1.Container{{Name: "app"}}}}
		rt.Start(pod, "app", "1", lifecycletest.Script{ExitAfterTerm: 3 * time.Second})
		terminator, err := lifecycle.NewTerminator(lifecycle.TerminatorOptions{Runtime: rt, Exits: rt})
		require.NoError(t, err)

		result, err := terminator.KillPod(t.Context(), pod, lifecycle.Request{GracePeriodSeconds: ptr.To(int64(30))})
		require.NoError(t, err)
		require.Equal(t, lifecycle.OutcomeGraceful, result.Outcome())
		require.Equal(t, lifecycletest.ByTerm, rt.Exits()[0].By)
	})
}
