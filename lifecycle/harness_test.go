//go:build go1.25

package lifecycle_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"

	"github.com/kubegrace/kubegrace/internal/judge"
	"github.com/kubegrace/kubegrace/lifecycle"
	"github.com/kubegrace/kubegrace/lifecycle/lifecycletest"
)

// graceSeconds is the grace period, in seconds, of a testBed's pod.
type graceSeconds int64

// testBed has a terminator with a fake runtime, and a pod to terminate.
type testBed struct {
	*testing.T
	*judge.Terminator

	rt     *lifecycletest.Runtime
	events *lifecycletest.Events
	pod    *v1.Pod
	start  time.Time // of the test
}

// inBubble runs do in a synctest bubble, where time is exact and every goroutine must have ended at the end. The pod of the
// testBed has the grace period, and change modifies the terminator's options. After do, inBubble closes the terminator, and
// the judge (internal/judge) checks everything that happened: a broken promise of the package fails the test, even if do
// does not check it.
func inBubble(t *testing.T, grace graceSeconds, do func(*testBed), change ...func(*lifecycle.TerminatorOptions)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		b := &testBed{T: t, rt: lifecycletest.NewRuntime(), events: &lifecycletest.Events{}, start: time.Now()}
		opts := lifecycle.TerminatorOptions{
			Runtime: b.rt, Exits: b.rt, Events: b.events,
			Hooks: lifecycle.NewHandlerRunner(lifecycle.HandlerRunnerOptions{Commands: b.rt}),
		}
		for _, c := range change {
			c(&opts)
		}
		record := judge.NewRecord()
		var err error
		b.Terminator, err = record.NewTerminator(opts)
		require.NoError(t, err)
		b.pod = &v1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "pod", UID: "uid"},
			Spec:       v1.PodSpec{TerminationGracePeriodSeconds: ptr.To(int64(grace))},
		}
		defer func() {
			b.rt.Release()
			require.NoError(t, b.Close(t.Context()))
			if broken := judge.Terminations(record); len(broken) > 0 && !t.Failed() {
				require.Fail(t, "a promise was broken", "%q\n%s", broken, record.Story())
			}
		}()
		do(b)
	})
}

// addMain adds a main container to the pod's spec and starts it, with its name as the ID.
func (b *testBed) addMain(name string, script lifecycletest.Script) lifecycle.Container {
	return b.addMainWithHook(name, nil, script)
}

// addMainWithHook is addMain for a container with a preStop hook; nil: it has none.
func (b *testBed) addMainWithHook(name string, hook *v1.LifecycleHandler, script lifecycletest.Script) lifecycle.Container {
	b.pod.Spec.Containers = append(b.pod.Spec.Containers, containerWithHook(name, hook))
	return b.rt.Start(b.pod, name, name, script)
}

// addSidecar adds a sidecar to the pod's spec and starts it, with its name as the ID.
func (b *testBed) addSidecar(name string, script lifecycletest.Script) lifecycle.Container {
	sidecar := v1.Container{Name: name, RestartPolicy: ptr.To(v1.ContainerRestartPolicyAlways)}
	b.pod.Spec.InitContainers = append(b.pod.Spec.InitContainers, sidecar)
	return b.rt.Start(b.pod, name, name, script)
}

// addToSpec adds a main container to the pod's spec, but does not start it: the runtime does not list it.
func (b *testBed) addToSpec(name string) {
	b.pod.Spec.Containers = append(b.pod.Spec.Containers, v1.Container{Name: name})
}

// startContainer starts a container through Terminator.Start.
func (b *testBed) startContainer(name, id string, script lifecycletest.Script) error {
	return b.Start(b.quietContext(), b.pod, name, func(ctx context.Context) error {
		return b.rt.StartContainer(ctx, b.pod, name, id, script)
	})
}

// startCall makes a call in another goroutine, and returns as soon as the call blocks, for instance on a timer. wait waits for
// the end of the call and returns its error.
func startCall(call func() error) (wait func() error) {
	ended := make(chan error, 1)
	go func() { ended <- call() }()
	synctest.Wait()
	return sync.OnceValue(func() error { return <-ended })
}

// elapsed returns the time since the start of the test.
func (b *testBed) elapsed() time.Duration { return time.Since(b.start) }

// requireEvents checks the reasons of all events so far, in order.
func (b *testBed) requireEvents(want ...string) {
	b.Helper()
	var got []string
	for _, e := range b.events.All() {
		got = append(got, e.Reason)
	}
	require.Equal(b, want, got)
}

// quietContext returns a context whose logger discards all lines, for failures that a test expects.
func (b *testBed) quietContext() context.Context { return klog.NewContext(b.Context(), klog.Logger{}) }

// stopCall is one StopContainer call.
type stopCall struct {
	timeoutSeconds int64
	atMilliseconds int64 // since the start of the test
}

// stopCalls returns the StopContainer calls for a container.
func (b *testBed) stopCalls(id string) (calls []stopCall) {
	for _, stop := range b.rt.Stops() {
		if stop.ID == id {
			calls = append(calls, stopCall{stop.TimeoutSeconds, stop.At.Sub(b.start).Milliseconds()})
		}
	}
	return calls
}

// sleepUntil sleeps until a time after the start of the test.
func (b *testBed) sleepUntil(at time.Duration) { <-time.After(at - b.elapsed()) }

// killPod terminates the pod with its own grace period, and waits for the end.
func (b *testBed) killPod() lifecycle.Result {
	b.Helper()
	result, err := b.KillPod(b.quietContext(), b.pod, lifecycle.Request{})
	require.NoError(b, err)
	return result
}

// containerWithHook returns a container of a pod's spec with a preStop hook; nil: it has none.
func containerWithHook(name string, hook *v1.LifecycleHandler) v1.Container {
	c := v1.Container{Name: name}
	if hook != nil {
		c.Lifecycle = &v1.Lifecycle{PreStop: hook}
	}
	return c
}

// sleepHandler returns a sleep hook.
func sleepHandler(seconds int64) *v1.LifecycleHandler {
	return &v1.LifecycleHandler{Sleep: &v1.SleepAction{Seconds: seconds}}
}

// scriptedExec returns an exec hook that runs the Script.Exec of its container.
func scriptedExec() *v1.LifecycleHandler {
	return &v1.LifecycleHandler{Exec: &v1.ExecAction{Command: []string{"drain"}}}
}

// hookFunc is a HandlerRunner that calls a function for every hook.
type hookFunc func(ctx context.Context) error

func (f hookFunc) Run(ctx context.Context, _ string, _ *v1.Pod, _ *v1.Container, _ *v1.LifecycleHandler) (string, error) {
	return "", f(ctx)
}

// withHookRunner is an option of inBubble: f runs the hooks, instead of this package's hook runner.
func withHookRunner(f hookFunc) func(*lifecycle.TerminatorOptions) {
	return func(o *lifecycle.TerminatorOptions) { o.Hooks = f }
}

// containerNamed returns a container whose ID is its name.
func containerNamed(name string) lifecycle.Container {
	return lifecycle.Container{Name: name, ID: name}
}

// giveUpAfterOneSecond sets GiveUpAfter to 1 s, so that a test sees the end of a container that cannot be
// stopped.
func giveUpAfterOneSecond(o *lifecycle.TerminatorOptions) { o.GiveUpAfter = time.Second }

// runtimeWithStop is a Runtime whose StopContainer is replaced by stop.
type runtimeWithStop struct {
	lifecycle.Runtime

	stop lifecycle.RuntimeFunc
}

func (r runtimeWithStop) StopContainer(ctx context.Context, id string, seconds int64) error {
	return r.stop(ctx, id, seconds)
}

// hangingObserver is an ExitWatcher and an EventRecorder whose calls hang until the channel is closed.
type hangingObserver chan struct{}

func (h hangingObserver) Exited(string) <-chan struct{} { <-h; return nil }

func (h hangingObserver) Event(apiruntime.Object, string, string, string) { <-h }
