//go:build go1.25

package lifecycle_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-base/featuregate"
	"k8s.io/utils/ptr"

	"github.com/kubegrace/kubegrace/graceperiod"
	"github.com/kubegrace/kubegrace/lifecycle"
	"github.com/kubegrace/kubegrace/lifecycle/lifecycletest"
)

// stopContainer calls the container runtime of the agent.
func stopContainer(_ context.Context, id string, timeoutSeconds int64) error {
	fmt.Printf("stop container %s within %d s\n", id, timeoutSeconds)
	return nil // the container has ended
}

// The program of the package documentation.
func Example() {
	ctx := context.Background()
	terminator, err := lifecycle.NewTerminator(lifecycle.TerminatorOptions{
		Runtime: lifecycle.RuntimeFunc(stopContainer),
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	grace := int64(30)
	pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web"}, Spec: v1.PodSpec{
		TerminationGracePeriodSeconds: &grace,
		Containers: []v1.Container{{Name: "web", Lifecycle: &v1.Lifecycle{
			PreStop: &v1.LifecycleHandler{Sleep: &v1.SleepAction{Seconds: 1}},
		}}},
	}}
	result, err := terminator.KillPod(ctx, pod, lifecycle.Request{
		Containers: []lifecycle.Container{{Name: "web", ID: "3f4e"}},
	})
	if err != nil {
		fmt.Println(err)
	}
	for _, c := range result.Containers {
		fmt.Println(c.Name, c.Outcome, c.Hook.Outcome)
	}
	if err := terminator.Close(ctx); err != nil {
		fmt.Println(err)
	}
	// Output:
	// stop container 3f4e within 29 s
	// web Graceful Completed
}

// examplePod is a pod with a main container and a sidecar.
func examplePod() *v1.Pod {
	return &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "shop", UID: "6d1f"},
		Spec: v1.PodSpec{
			TerminationGracePeriodSeconds: ptr.To(int64(30)),
			Containers:                    []v1.Container{{Name: "web", Lifecycle: &v1.Lifecycle{PreStop: scriptedExec()}}},
			InitContainers:                []v1.Container{{Name: "proxy", RestartPolicy: ptr.To(v1.ContainerRestartPolicyAlways)}},
		},
	}
}

// exampleTerminator uses the runtime of package lifecycletest instead of an agent's.
func exampleTerminator(rt *lifecycletest.Runtime) *lifecycle.Terminator {
	terminator, err := lifecycle.NewTerminator(lifecycle.TerminatorOptions{
		Runtime: rt, Commands: rt, Exits: rt,
	})
	if err != nil {
		panic(err)
	}
	return terminator
}

// The main container web stops first, after its hook, and then the sidecar proxy.
func ExampleTerminator_KillPod() {
	ctx := context.Background()
	rt, pod := lifecycletest.NewRuntime(), examplePod()
	rt.Start(pod, "web", "1", lifecycletest.Script{})
	rt.Start(pod, "proxy", "2", lifecycletest.Script{})
	terminator := exampleTerminator(rt)

	result, err := terminator.KillPod(ctx, pod, lifecycle.Request{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(result.Outcome())
	for _, c := range result.Containers {
		fmt.Printf("%s: %s, hook %q\n", c.Name, c.Outcome, c.Hook.Outcome)
	}
	for _, stop := range rt.Stops() {
		fmt.Printf("container %s was stopped with %d s\n", stop.ID, stop.TimeoutSeconds)
	}
	// Output:
	// Graceful
	// web: Graceful, hook "Completed"
	// proxy: Graceful, hook ""
	// container 1 was stopped with 30 s
	// container 2 was stopped with 30 s
}

// An agent that shuts down shortens a termination in progress. The hook of web, which never ends by itself,
// is cut at the new deadline.
func ExampleTerminator_Terminate() {
	ctx := context.Background()
	rt, pod := lifecycletest.NewRuntime(), examplePod()
	rt.Start(pod, "web", "1", lifecycletest.Script{Exec: func(ctx context.Context, _ []string) ([]byte, error) {
		<-ctx.Done() // the hook runs until it is cancelled
		return nil, context.Cause(ctx)
	}})
	terminator := exampleTerminator(rt)

	termination := terminator.Terminate(ctx, pod, lifecycle.Request{})
	fmt.Println(termination.Shorten(60)) // the deadline only moves earlier
	fmt.Println(termination.Shorten(1))
	<-termination.Done()
	hook := termination.Result().Containers[0].Hook
	fmt.Println(hook.Outcome, hook.Cause)
	// Output:
	// false
	// true
	// Cut Shortened
}

// A liveness probe has failed. Its own grace period of 5 s applies, not the pod's 30 s.
func ExampleTerminator_KillContainer() {
	ctx := context.Background()
	rt, pod := lifecycletest.NewRuntime(), examplePod()
	pod.Spec.Containers[0].LivenessProbe = &v1.Probe{TerminationGracePeriodSeconds: ptr.To(int64(5))}
	web := rt.Start(pod, "web", "1", lifecycletest.Script{})
	terminator := exampleTerminator(rt)

	result, err := terminator.KillContainer(ctx, pod, web, lifecycle.ContainerRequest{Reason: graceperiod.ReasonLivenessProbe})
	fmt.Println(result.GrantedSeconds, result.Outcome, err)
	// Output: 5 Graceful <nil>
}

// Once its pod's termination has begun, a container cannot be started any more.
func ExampleTerminator_Start() {
	ctx := context.Background()
	rt, pod := lifecycletest.NewRuntime(), examplePod()
	terminator := exampleTerminator(rt)

	start := func(ctx context.Context) error {
		return rt.StartContainer(ctx, pod, "web", "1", lifecycletest.Script{})
	}
	fmt.Println(terminator.Start(ctx, pod, "web", start))
	<-terminator.Terminate(ctx, pod, lifecycle.Request{}).Done()
	err := terminator.Start(ctx, pod, "web", start)
	fmt.Println(errors.Is(err, lifecycle.ErrTerminating))
	fmt.Println(err)
	// Output:
	// <nil>
	// true
	// failed to start container "web" of pod "shop_default(6d1f)": pod is being terminated, or was terminated and not forgotten
}

// A postStart hook fails, here because its container has exited. The error says so, and the container is
// killed.
func ExampleTerminator_PostStart() {
	ctx := context.Background()
	rt, pod := lifecycletest.NewRuntime(), examplePod()
	pod.Spec.Containers[0].Lifecycle.PostStart = &v1.LifecycleHandler{Exec: &v1.ExecAction{Command: []string{"warm-up"}}}
	web := rt.Start(pod, "web", "1", lifecycletest.Script{})
	terminator := exampleTerminator(rt)

	rt.Exit("1") // the container exits before its hook runs
	fmt.Println(terminator.PostStart(ctx, pod, web))
	// Output:
	// postStart hook of container "web" in pod "shop_default(6d1f)" failed: container has exited
}

// A sidecar that exits is restarted while a main container is still running.
func ExampleTermination_ShouldRestart() {
	ctx := context.Background()
	rt, pod := lifecycletest.NewRuntime(), examplePod()
	pod.Spec.Containers[0].Lifecycle.PreStop = sleepHandler(60)
	rt.Start(pod, "web", "1", lifecycletest.Script{IgnoreTerm: true})
	rt.Start(pod, "proxy", "2", lifecycletest.Script{})
	terminator := exampleTerminator(rt)

	termination := terminator.Terminate(ctx, pod, lifecycle.Request{})
	for len(termination.Result().Containers) < 2 { // wait for the first list
		time.Sleep(time.Millisecond)
	}
	rt.Exit("2")
	restart, _ := termination.ShouldRestart("proxy")
	fmt.Println(restart)
	fmt.Println(termination.ShouldRestart("web")) // not a sidecar
	fmt.Println(terminator.Close(ctx))
	// Output:
	// true
	// false 0s
	// <nil>
}

// When the context ends, Wait returns and the termination continues.
func ExampleTermination_Wait() {
	rt, pod := lifecycletest.NewRuntime(), examplePod()
	rt.Start(pod, "web", "1", lifecycletest.Script{IgnoreTerm: true})
	terminator := exampleTerminator(rt)

	termination := terminator.Terminate(context.Background(), pod, lifecycle.Request{})
	ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer cancel()
	_, err := termination.Wait(ctx)
	fmt.Println(err)
	termination.Shorten(1)
	result, err := termination.Wait(context.Background())
	fmt.Println(result.Outcome(), err)
	// Output:
	// timeout waiting to kill pod: containers that have not ended: default/shop/web: context deadline exceeded
	// GraceExceeded <nil>
}

// An agent can look up the termination of a pod.
func ExampleTerminator_Termination() {
	ctx := context.Background()
	rt, pod := lifecycletest.NewRuntime(), examplePod()
	rt.Start(pod, "web", "1", lifecycletest.Script{IgnoreTerm: true})
	terminator := exampleTerminator(rt)
	_, terminating := terminator.Termination(pod)
	fmt.Println(terminating)

	terminator.Terminate(ctx, pod, lifecycle.Request{})
	termination, terminating := terminator.Termination(pod)
	fmt.Println(terminating, time.Until(termination.Deadline()).Round(10*time.Second))
	fmt.Println(terminator.Close(ctx))
	// Output:
	// false
	// true 30s
	// <nil>
}

// Only containers that may still run are errors.
func ExampleResult_Err() {
	result := lifecycle.Result{Containers: []lifecycle.ContainerResult{
		{Name: "web", Outcome: lifecycle.OutcomeForced, Err: errors.New("killed 5 s after its timeout")},
		{Name: "proxy", Outcome: lifecycle.OutcomeRuntimeStuck, Err: errors.New("containerd does not answer")},
	}}
	fmt.Println(result.Outcome(), result.Err())
	// Output:
	// RuntimeStuck containerd does not answer
}

// After Forget, a pod with the same UID, such as a static pod, may be started again.
func ExampleTerminator_Forget() {
	ctx := context.Background()
	rt, pod := lifecycletest.NewRuntime(), examplePod()
	terminator := exampleTerminator(rt)
	start := func(ctx context.Context) error {
		return rt.StartContainer(ctx, pod, "web", "1", lifecycletest.Script{})
	}
	if _, err := terminator.KillPod(ctx, pod, lifecycle.Request{}); err != nil {
		fmt.Println(err)
	}
	fmt.Println(terminator.Start(ctx, pod, "web", start) != nil)
	terminator.Forget(pod)
	fmt.Println(terminator.Start(ctx, pod, "web", start))
	// Output:
	// true
	// <nil>
}

// An agent adds the features to the gate of its own flag, with which a user then turns one off.
func ExampleAddFeatureGates() {
	gate := featuregate.NewFeatureGate()
	if err := lifecycle.AddFeatureGates(gate); err != nil {
		fmt.Println(err)
	}
	fmt.Println(gate.Enabled(lifecycle.PodLifecycleSleepAction))
	fmt.Println(gate.Set("PodLifecycleSleepAction=false")) // --feature-gates
	fmt.Println(gate.Enabled(lifecycle.PodLifecycleSleepAction))
	// Output:
	// true
	// <nil>
	// false
}

// An agent that ends closes its terminator. Containers keep running, for the next agent to stop.
func ExampleTerminator_Close() {
	ctx := context.Background()
	rt, pod := lifecycletest.NewRuntime(), examplePod()
	rt.Start(pod, "web", "1", lifecycletest.Script{IgnoreTerm: true})
	terminator := exampleTerminator(rt)

	termination := terminator.Terminate(ctx, pod, lifecycle.Request{})
	fmt.Println(terminator.Close(ctx))
	<-termination.Done()
	fmt.Println(termination.Result().Outcome())
	// Output:
	// <nil>
	// LeftRunning
}
