//go:build go1.25

package lifecycle_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/kubegrace/kubegrace/lifecycle"
	"github.com/kubegrace/kubegrace/lifecycle/lifecycletest"
)

// bed is a test bed: a terminator with a fake runtime, and a pod to terminate. Times are
// counted from the time at which it was made.
type bed struct {
	*testing.T
	*lifecycle.Terminator

	rt     *lifecycletest.Runtime
	events *lifecycletest.Events
	pod    *v1.Pod
	start  time.Time
}

// inBubble runs a test with a bed in a synctest bubble, where time is exact and every
// goroutine must have ended at the end. grace is the grace period of the pod in seconds.
func inBubble(t *testing.T, grace int64, do func(*bed), change ...func(*lifecycle.TerminatorOptions)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		b := &bed{T: t, rt: lifecycletest.NewRuntime(), events: &lifecycletest.Events{}, start: time.Now()}
		opts := lifecycle.TerminatorOptions{
			Runtime: b.rt, Exits: b.rt, Events: b.events,
			Hooks: lifecycle.NewHandlerRunner(lifecycle.HandlerRunnerOptions{Commands: b.rt}),
		}
		for _, c := range change {
			c(&opts)
		}
		var err error
		b.Terminator, err = lifecycle.NewTerminator(opts)
		require.NoError(t, err)
		b.pod = &v1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "pod", UID: "uid"},
			Spec:       v1.PodSpec{TerminationGracePeriodSeconds: &grace},
		}
		do(b)
		require.NoError(t, b.Close(t.Context()))
	})
}

// Terminate, Start, PostStart, Termination and Forget are those of the life of a pod.
func (b *bed) Terminate(ctx context.Context, pod *v1.Pod, req lifecycle.Request) *lifecycle.Termination {
	return b.Pod(pod).Terminate(ctx, req)
}

func (b *bed) Start(ctx context.Context, pod *v1.Pod, name string, start func(context.Context) (string, error)) error {
	return b.Pod(pod).Start(ctx, name, start)
}

func (b *bed) PostStart(ctx context.Context, pod *v1.Pod, c lifecycle.Container) error {
	return b.Pod(pod).PostStart(ctx, c)
}

func (b *bed) Termination(uid types.UID) (*lifecycle.Termination, bool) {
	return b.Pod(&v1.Pod{ObjectMeta: metav1.ObjectMeta{UID: uid}}).Termination()
}

func (b *bed) Forget(uid types.UID) { b.ForgetPod(uid) }

// addMain adds a regular container to the pod and runs it.
func (b *bed) addMain(name string, hook *v1.LifecycleHandler, script lifecycletest.Script) {
	b.pod.Spec.Containers = append(b.pod.Spec.Containers, container(name, hook))
	b.runContainer(&b.pod.Status.ContainerStatuses, name, script)
}

// addSidecar adds a restartable init container to the pod and runs it.
func (b *bed) addSidecar(name string, hook *v1.LifecycleHandler, script lifecycletest.Script) {
	c := container(name, hook)
	c.RestartPolicy = ptr.To(v1.ContainerRestartPolicyAlways)
	b.pod.Spec.InitContainers = append(b.pod.Spec.InitContainers, c)
	b.runContainer(&b.pod.Status.InitContainerStatuses, name, script)
}

func (b *bed) runContainer(statuses *[]v1.ContainerStatus, name string, script lifecycletest.Script) {
	b.rt.Start(name, script)
	*statuses = append(*statuses, v1.ContainerStatus{
		Name: name, ContainerID: "fake://" + name, State: v1.ContainerState{Running: &v1.ContainerStateRunning{}},
	})
}

// at is the time since the bed was made.
func (b *bed) at() time.Duration { return time.Since(b.start) }

// firstStop returns the timeout of the first StopContainer call for a container, and when it was
// made.
func (b *bed) firstStop(id string) (timeout int64, at time.Duration) {
	b.Helper()
	for _, stop := range b.rt.Stops() {
		if stop.ID == id {
			return stop.TimeoutSeconds, stop.At.Sub(b.start)
		}
	}
	require.Fail(b, "no stop was asked for", id)
	return 0, 0
}

// requireStop compares the results of asked.
func (b *bed) requireStop(id string, timeout int64, at time.Duration) {
	b.Helper()
	gotTimeout, gotAt := b.firstStop(id)
	require.Equal(b, timeout, gotTimeout, "timeout of the stop of %s", id)
	require.Equal(b, at, gotAt, "time of the stop of %s", id)
}

// requireEvents compares the reasons of the events so far, in order.
func (b *bed) requireEvents(want ...string) {
	b.Helper()
	var got []string
	for _, e := range b.events.All() {
		got = append(got, e.Reason)
	}
	require.Equal(b, want, got)
}

// requireAnyEvents is requireEvents in any order.
func (b *bed) requireAnyEvents(want ...string) {
	b.Helper()
	var got []string
	for _, e := range b.events.All() {
		got = append(got, e.Reason)
	}
	require.ElementsMatch(b, want, got)
}

// kill terminates the pod with its own grace period and waits for the end.
func (b *bed) kill() lifecycle.Result {
	b.Helper()
	result, err := b.KillPod(b.Context(), b.pod, lifecycle.Request{})
	require.NoError(b, err)
	return result
}

func container(name string, hook *v1.LifecycleHandler) v1.Container {
	c := v1.Container{Name: name}
	if hook != nil {
		c.Lifecycle = &v1.Lifecycle{PreStop: hook}
	}
	return c
}

// sleep is a hook that sleeps.
func sleep(seconds int64) *v1.LifecycleHandler {
	return &v1.LifecycleHandler{Sleep: &v1.SleepAction{Seconds: seconds}}
}

// exec is an exec hook, which runs Script.Exec of the container.
func exec() *v1.LifecycleHandler {
	return &v1.LifecycleHandler{Exec: &v1.ExecAction{Command: []string{"drain"}}}
}

// commandTaking is a command that takes d, or ends with its context.
func commandTaking(d time.Duration) func(context.Context, []string) ([]byte, error) {
	return func(ctx context.Context, _ []string) ([]byte, error) {
		select {
		case <-time.After(d):
			return nil, nil
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// hookFunc is a HandlerRunner that calls a function for every hook.
type hookFunc func(ctx context.Context) error

func (f hookFunc) Run(ctx context.Context, _ string, _ *v1.Pod, _ *v1.Container, _ *v1.LifecycleHandler) (string, error) {
	return "", f(ctx)
}

func withHooks(f hookFunc) func(*lifecycle.TerminatorOptions) {
	return func(o *lifecycle.TerminatorOptions) { o.Hooks = f }
}

// exitFunc is an ExitWatcher.
type exitFunc func(id string) <-chan struct{}

func (f exitFunc) Exited(id string) <-chan struct{} { return f(id) }
