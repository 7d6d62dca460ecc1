//go:build go1.25

package lifecycle_test

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-base/featuregate"
	"k8s.io/utils/ptr"

	"github.com/kubegrace/kubegrace/internal/judge"
	"github.com/kubegrace/kubegrace/lifecycle"
	"github.com/kubegrace/kubegrace/lifecycle/lifecycletest"
	"github.com/kubegrace/kubegrace/metrics"
)

// misused is a runtime whose methods Running and StopContainer call functions, so that a test can break one of them.
type misused struct {
	list func(context.Context, *v1.Pod) ([]lifecycle.Container, error)
	stop func(context.Context, string) error
}

func (m misused) Running(ctx context.Context, pod *v1.Pod) ([]lifecycle.Container, error) {
	return m.list(ctx, pod)
}

func (m misused) StopContainer(ctx context.Context, id string, _ int64) error { return m.stop(ctx, id) }

// newMisused returns a runtime in which these containers run until they are stopped.
func newMisused(containers ...lifecycle.Container) *misused {
	var mu sync.Mutex
	ended := map[string]bool{}
	return &misused{
		list: func(context.Context, *v1.Pod) (left []lifecycle.Container, err error) {
			mu.Lock()
			defer mu.Unlock()
			for _, c := range containers {
				if !ended[c.ID] {
					left = append(left, c)
				}
			}
			return left, nil
		},
		stop: func(_ context.Context, id string) error {
			mu.Lock()
			defer mu.Unlock()
			ended[id] = true
			return nil
		},
	}
}

// hangIsLogged is 1 s more than the 5 s after which a call that hangs is logged.
const hangIsLogged = 6 * time.Second

// misusedPod returns a pod with a grace period of 2 s.
func misusedPod(containers ...v1.Container) *v1.Pod {
	return &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", UID: "uid"},
		Spec:       v1.PodSpec{TerminationGracePeriodSeconds: ptr.To(int64(2)), Containers: containers},
	}
}

// misuse has what a case of TestMisuse needs: a terminator, and a record of its log.
type misuse struct {
	*testing.T
	*lifecycle.Terminator

	began   time.Time
	record  *judge.Record
	release chan struct{} // closed to end the calls of the agent that hang
}

// context returns a context whose logger writes to the record.
func (m misuse) context() context.Context { return m.record.Context(m.Context()) }

// requireLogged checks that exactly one line of the log contains a text: a misuse must be logged, and only once.
func (m misuse) requireLogged(text string) {
	m.Helper()
	synctest.Wait() // some lines are written in goroutines of their own
	require.Equal(m, 1, strings.Count(m.record.Story(), text), "%q in\n%s", text, m.record.Story())
}

// close closes the terminator and returns the error of Close, whose context ends after 1 s.
func (m misuse) close() error {
	ctx, cancel := context.WithTimeout(m.context(), time.Second)
	defer cancel()
	return m.Close(ctx)
}

// Each case is a mistake that an agent can make. The error or the log must say what is wrong, so that the agent's author can
// find it; nothing may hang or panic. A call that hangs is logged after 5 s. Calls that wait for release return at the end of
// the case.
func TestMisuse(t *testing.T) {
	for name, test := range map[string]struct {
		options func(o *lifecycle.TerminatorOptions, release <-chan struct{}) // nil: a runtime without containers
		do      func(m misuse)                                                // makes the mistake, and checks the error or the log
	}{
		"one ID for two containers of a list": {
			options: func(o *lifecycle.TerminatorOptions, _ <-chan struct{}) {
				o.Runtime = newMisused(lifecycle.Container{Name: "a", ID: "1"}, lifecycle.Container{Name: "b", ID: "1"})
			},
			do: func(m misuse) {
				result, err := m.KillPod(m.context(), misusedPod(containerSpec("a", nil), containerSpec("b", nil)), lifecycle.Request{})
				require.ErrorContains(m, err, `container "b": ID: must be unique, "1" is that of container "a"`)
				require.Equal(m, lifecycle.OutcomeRuntimeStuck, result.Outcome())
				m.requireLogged(`Failed to list the pod's containers: the runtime's list: container "b": ID: must be unique, "1" is that of container "a"`)
			},
		},
		"one ID for two containers of a request": {
			do: func(m misuse) {
				_, err := m.KillPod(m.context(), misusedPod(containerSpec("a", nil), containerSpec("b", nil)),
					lifecycle.Request{Containers: []lifecycle.Container{{Name: "a", ID: "1"}, {Name: "b", ID: "1"}}})
				require.ErrorContains(m, err, `Containers: container "b": ID: must be unique, "1" is that of container "a"`)
			},
		},
		"a pod without UID and name": {
			do: func(m misuse) {
				const want = "the pod has neither a UID nor a name"
				pod := &v1.Pod{Spec: v1.PodSpec{Containers: []v1.Container{containerSpec("a", nil)}}}
				_, err := m.KillPod(m.context(), pod, lifecycle.Request{})
				require.EqualError(m, err, want)
				_, err = m.KillContainer(m.context(), pod, containerNamed("a"), lifecycle.ContainerRequest{})
				require.EqualError(m, err, want)
				require.ErrorContains(m, m.PostStart(m.context(), pod, containerNamed("a")), want)
				require.ErrorContains(m, m.Start(m.context(), pod, "a", func(context.Context) error { return nil }), want)
				_, found := m.Termination(pod)
				require.False(m, found)
				m.Forget(pod)
			},
		},
		"each list panics for 3 min": {
			options: func(o *lifecycle.TerminatorOptions, _ <-chan struct{}) {
				var ended atomic.Bool
				o.Runtime = misused{list: func(context.Context, *v1.Pod) ([]lifecycle.Container, error) {
					if !ended.Load() {
						panic("boom")
					}
					return nil, nil
				}}
				time.AfterFunc(3*time.Minute, func() { ended.Store(true) })
			},
			do: func(m misuse) {
				for range 2 { // the first gives up 2 min (GiveUpAfter) after its deadline of 2 s; the second gets a list after 3 min
					<-m.Terminate(m.context(), misusedPod(), lifecycle.Request{}).Done()
				}
				m.requireLogged("Recovered from a panic: the runtime's list panicked: boom")
				m.requireLogged("Failed to list the pod's containers")
				m.requireLogged("Listed the pod's containers after earlier failures")
			},
		},
		"a list fails with context.Canceled, though nobody has cancelled it": {
			options: func(o *lifecycle.TerminatorOptions, _ <-chan struct{}) {
				var failed atomic.Bool
				o.Runtime = misused{list: func(context.Context, *v1.Pod) ([]lifecycle.Container, error) {
					if failed.CompareAndSwap(false, true) {
						return nil, context.Canceled
					}
					return nil, nil
				}}
			},
			do: func(m misuse) {
				<-m.Terminate(m.context(), misusedPod(), lifecycle.Request{}).Done()
				m.requireLogged("Failed to list the pod's containers: context canceled")
			},
		},
		"stops and hooks ignore their context while Close waits": {
			options: func(o *lifecycle.TerminatorOptions, release <-chan struct{}) {
				runtime := newMisused(containerNamed("zoo"), containerNamed("app"))
				runtime.stop = func(context.Context, string) error { <-release; return nil }
				o.Runtime = runtime
				withHooks(func(context.Context) error { <-release; return nil })(o)
			},
			do: func(m misuse) {
				m.Terminate(m.context(), misusedPod(containerSpec("zoo", nil), containerSpec("app", scriptedExec())), lifecycle.Request{})
				<-time.After(3 * time.Second) // app is stopped at 2 s, the deadline, at which its hook is cut
				require.EqualError(m, m.close(), "the terminator was closed, calls that have not returned: "+
					"StopContainer of default/web/app, StopContainer of default/web/zoo, the hook of default/web/app: context deadline exceeded")
				closed := startCall(func() error { return m.Close(m.context()) })
				<-time.After(hangIsLogged)
				m.requireLogged("Terminator.Close waits for calls that have not returned")
				close(m.release)
				require.NoError(m, closed())
			},
		},
		"an exec hook without Commands": {
			options: func(o *lifecycle.TerminatorOptions, _ <-chan struct{}) { o.Runtime = newMisused(containerNamed("a")) },
			do: func(m misuse) {
				_, err := m.KillPod(m.context(), misusedPod(containerSpec("a", scriptedExec())), lifecycle.Request{})
				require.NoError(m, err)
				m.requireLogged("PreStop hook failed: no command runner for exec hooks: Commands is nil")
			},
		},
		"an httpGet hook without an address": {
			options: func(o *lifecycle.TerminatorOptions, _ <-chan struct{}) { o.Runtime = newMisused(containerNamed("a")) },
			do: func(m misuse) {
				_, err := m.KillPod(m.context(), misusedPod(containerSpec("a", httpHandler(v1.HTTPGetAction{}))), lifecycle.Request{})
				require.NoError(m, err)
				m.requireLogged("PreStop hook failed: failed to find networking container: web_default(uid): " +
					"status.podIP, or what the option PodIP returned, is empty")
			},
		},
		"a hook that is not exec, httpGet or sleep": {
			options: func(o *lifecycle.TerminatorOptions, _ <-chan struct{}) { o.Runtime = newMisused(containerNamed("a")) },
			do: func(m misuse) {
				hook := &v1.LifecycleHandler{TCPSocket: &v1.TCPSocketAction{Host: "db"}}
				_, err := m.KillPod(m.context(), misusedPod(containerSpec("a", hook)), lifecycle.Request{})
				require.NoError(m, err)
				m.requireLogged("PreStop hook failed: invalid handler: &LifecycleHandler{Exec:nil,HTTPGet:nil,TCPSocket:&TCPSocketAction{")
			},
		},
		"a caller's context has ended before the first list": {
			options: func(o *lifecycle.TerminatorOptions, release <-chan struct{}) {
				runtime := newMisused(containerNamed("a"))
				list := runtime.list
				runtime.list = func(ctx context.Context, pod *v1.Pod) ([]lifecycle.Container, error) {
					<-release
					return list(ctx, pod)
				}
				o.Runtime = runtime
			},
			do: func(m misuse) {
				ended, cancel := context.WithCancel(m.context())
				cancel()
				result, err := m.KillPod(ended, misusedPod(containerSpec("a", nil)), lifecycle.Request{})
				require.ErrorContains(m, err, "stopped waiting: containers that have not ended: default/web: context canceled")
				require.True(m, result.InProgress)
				require.Empty(m, result.Outcome(), "nothing is known before the first list")
				close(m.release)
				result, err = m.KillPod(m.context(), misusedPod(), lifecycle.Request{})
				require.NoError(m, err)
				require.False(m, result.InProgress)
				require.Equal(m, lifecycle.OutcomeGraceful, result.Outcome())
			},
		},
		"the caller changes its pod during the termination": {
			options: func(o *lifecycle.TerminatorOptions, _ <-chan struct{}) {
				runtime := newMisused(containerNamed("a"))
				list := runtime.list
				runtime.list = func(ctx context.Context, pod *v1.Pod) ([]lifecycle.Container, error) {
					if pod.UID != "uid" {
						return nil, nil
					}
					return list(ctx, pod)
				}
				o.Runtime = runtime
			},
			do: func(m misuse) {
				pod := misusedPod(containerSpec("a", sleepHandler(1)))
				termination := m.Terminate(m.context(), pod, lifecycle.Request{})
				*pod = v1.Pod{}
				result, err := termination.Wait(m.context())
				require.NoError(m, err)
				require.Equal(m, lifecycle.OutcomeGraceful, result.Outcome())
				require.Equal(m, lifecycle.HookCompleted, result.Containers[0].Hook.Outcome)
			},
		},
		"the caller changes its pod after KillContainer has stopped waiting": {
			options: func(o *lifecycle.TerminatorOptions, _ <-chan struct{}) {
				runtime := newMisused(containerNamed("a"))
				list, stop := runtime.list, runtime.stop
				runtime.list = func(ctx context.Context, pod *v1.Pod) ([]lifecycle.Container, error) {
					if pod.UID != "uid" {
						return nil, nil
					}
					return list(ctx, pod)
				}
				var isRepeated atomic.Bool
				runtime.stop = func(ctx context.Context, id string) error {
					if isRepeated.CompareAndSwap(false, true) {
						<-time.After(2 * time.Second)
						return errors.New("not stopped")
					}
					return stop(ctx, id)
				}
				o.Runtime = runtime
			},
			do: func(m misuse) {
				ctx, cancel := context.WithTimeout(m.context(), time.Second)
				defer cancel()
				pod := misusedPod(containerSpec("a", nil))
				_, err := m.KillContainer(ctx, pod, containerNamed("a"), lifecycle.ContainerRequest{})
				require.ErrorIs(m, err, context.DeadlineExceeded)
				*pod = v1.Pod{}
				<-time.After(3 * time.Second)
				m.requireLogged("Stopped container after earlier failures pod=default/web")
				result, err := m.KillContainer(m.context(), misusedPod(), containerNamed("a"), lifecycle.ContainerRequest{})
				require.NoError(m, err)
				require.Equal(m, lifecycle.OutcomeNotFound, result.Outcome, "the second call has stopped it")
			},
		},
		"Forget before the first list": {
			options: func(o *lifecycle.TerminatorOptions, _ <-chan struct{}) {
				runtime := newMisused()
				runtime.list = func(context.Context, *v1.Pod) ([]lifecycle.Container, error) {
					<-time.After(time.Second) // so that Forget comes first
					return []lifecycle.Container{containerNamed("a")}, nil
				}
				o.Runtime = runtime
			},
			do: func(m misuse) {
				const want = "Forget was called before the runtime had listed the pod's containers"
				pod := misusedPod(containerSpec("a", nil))
				termination := m.Terminate(m.context(), pod, lifecycle.Request{})
				m.Forget(pod)
				result, err := termination.Wait(m.context())
				require.EqualError(m, err, want)
				require.Equal(m, lifecycle.OutcomeRuntimeStuck, result.Outcome())
				m.requireLogged("Gave up waiting for container: " + want + " pod=default/web containerName=a")
			},
		},
		"a new ID in each list": {
			options: func(o *lifecycle.TerminatorOptions, _ <-chan struct{}) {
				var lists, stops atomic.Int64
				o.Runtime = misused{
					list: func(context.Context, *v1.Pod) ([]lifecycle.Container, error) {
						return []lifecycle.Container{{Name: "a", ID: strconv.FormatInt(lists.Add(1), 10)}}, nil
					},
					stop: func(context.Context, string) error {
						if stops.Add(1) > 150 {
							return errors.New("the runtime is called too often")
						}
						return nil
					},
				}
			},
			do: func(m misuse) {
				result, err := m.KillPod(m.context(), misusedPod(containerSpec("a", nil)), lifecycle.Request{})
				require.Equal(m, 2*time.Second+lifecycle.DefaultGiveUpAfter, time.Since(m.began).Truncate(time.Second))
				require.Equal(m, lifecycle.OutcomeRuntimeStuck, result.Outcome())
				const want = "the runtime listed it after the termination had given up; are its ID and Began the same in each list?"
				require.ErrorContains(m, err, want)
				m.requireLogged("The runtime lists a new run of the container again and again: are its ID and Began the same in each list?")
				m.requireLogged("Gave up waiting for container: " + err.Error())
				require.NotContains(m, m.record.Story(), "called too often")
			},
		},
		"a pod that no API server has given a grace period": {
			do: func(m misuse) {
				pod := misusedPod()
				pod.Spec.TerminationGracePeriodSeconds = nil
				for range 2 {
					_, err := m.KillPod(m.context(), pod, lifecycle.Request{})
					require.NoError(m, err)
				}
				m.requireLogged("The pod has no grace period and gets the minimum: set terminationGracePeriodSeconds, which is 30 by default in the API server pod=default/web gracePeriod=1")
			},
		},
		"a time.Duration as seconds": {
			do: func(m misuse) {
				pod := misusedPod()
				pod.Spec.TerminationGracePeriodSeconds = ptr.To(int64(30 * time.Second))
				_, err := m.KillPod(m.context(), pod, lifecycle.Request{})
				require.NoError(m, err)
				m.requireLogged("The grace period is longer than a year: was a time.Duration passed as seconds? pod=default/web gracePeriod=30000000000")
			},
		},
		"a start function waits for the termination of its own pod": {
			do: func(m misuse) {
				pod := misusedPod(containerSpec("a", nil))
				started := startCall(func() error {
					return m.Start(m.context(), pod, "a", func(ctx context.Context) error {
						_, err := m.KillPod(context.WithoutCancel(ctx), pod, lifecycle.Request{})
						return err
					})
				})
				<-time.After(hangIsLogged)
				m.requireLogged("A call has not returned since its context ended pod=default/web containerName=a call=the start after=5s")
				require.ErrorContains(m, started(), `failed to stop container "a": its start has not returned`)
				m.requireLogged(`Gave up waiting for container: failed to stop container "a": its start has not returned`)
			},
		},
		"Began changes with each list": {
			options: func(o *lifecycle.TerminatorOptions, _ <-chan struct{}) {
				o.Runtime = misused{
					list: func(context.Context, *v1.Pod) ([]lifecycle.Container, error) {
						return []lifecycle.Container{{Name: "a", ID: "1", Began: time.Now()}}, nil
					},
					stop: func(context.Context, string) error { return nil },
				}
			},
			do: func(m misuse) {
				m.Terminate(m.context(), misusedPod(containerSpec("a", nil)), lifecycle.Request{})
				<-time.After(150 * time.Millisecond) // the pause before the second StopContainer call is 100 ms
				m.requireLogged("Container counts as stopped, because the runtime lists a later run with its ID and another Began")
			},
		},
		"OnHook hangs": {
			options: func(o *lifecycle.TerminatorOptions, release <-chan struct{}) {
				o.Runtime = newMisused(containerNamed("a"))
				o.OnHook = func(*v1.Pod, lifecycle.Container, lifecycle.HookResult) { <-release }
			},
			do: func(m misuse) {
				_, err := m.KillPod(m.context(), misusedPod(containerSpec("a", sleepHandler(1))), lifecycle.Request{})
				require.NoError(m, err)
				<-time.After(hangIsLogged)
				m.requireLogged("A call has not returned pod=default/web containerName=a call=OnHook after=5s")
				require.ErrorContains(m, m.close(), "the terminator was closed, calls that have not returned: OnHook of default/web/a: ")
			},
		},
		"StopContainer does not find a container that is listed": {
			options: func(o *lifecycle.TerminatorOptions, _ <-chan struct{}) {
				o.Runtime = newMisused(containerNamed("a"))
				o.Runtime.(*misused).stop = func(context.Context, string) error { return lifecycle.ErrContainerNotFound }
			},
			do: func(m misuse) {
				m.Terminate(m.context(), misusedPod(containerSpec("a", nil)), lifecycle.Request{})
				synctest.Wait()
				m.requireLogged(`Failed to stop container: StopContainer returned "container not found", but the runtime still lists the container`)
			},
		},
		"Metrics were not made with NewLifecycle": {
			options: func(o *lifecycle.TerminatorOptions, _ <-chan struct{}) {
				o.Runtime, o.Metrics = newMisused(containerNamed("a")), &metrics.Lifecycle{}
			},
			do: func(m misuse) {
				_, err := m.KillPod(m.context(), misusedPod(containerSpec("a", sleepHandler(1))), lifecycle.Request{})
				require.NoError(m, err)
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := misuse{T: t, began: time.Now(), record: judge.NewRecord(), release: make(chan struct{})}
				options := lifecycle.TerminatorOptions{Runtime: newMisused()}
				if test.options != nil {
					test.options(&options, m.release)
				}
				var err error
				m.Terminator, err = lifecycle.NewTerminator(options)
				require.NoError(t, err)
				defer func() {
					select {
					case <-m.release:
					default:
						close(m.release)
					}
					require.NoError(t, m.Close(t.Context()))
				}()
				test.do(m)
			})
		})
	}
}

// The methods of a Terminator that is nil or was not made with NewTerminator return an error that says so, or do nothing. None
// of them panics or blocks.
func TestMisuseOfAZeroTerminator(t *testing.T) {
	const want = "the Terminator was not made with NewTerminator"
	ctx, pod := t.Context(), misusedPod(v1.Container{Name: "a", Lifecycle: &v1.Lifecycle{PostStart: scriptedExec()}})
	for _, tr := range []*lifecycle.Terminator{nil, {}} {
		_, err := tr.KillPod(ctx, pod, lifecycle.Request{})
		require.EqualError(t, err, want)
		_, err = tr.KillContainer(ctx, pod, containerNamed("a"), lifecycle.ContainerRequest{})
		require.EqualError(t, err, want)
		require.ErrorContains(t, tr.Start(ctx, pod, "a", func(context.Context) error { return nil }), want)
		require.ErrorContains(t, tr.PostStart(ctx, pod, containerNamed("a")), want)
		require.EqualError(t, tr.Close(ctx), want)
		tr.Forget(pod)
		_, found := tr.Termination(pod)
		require.False(t, found)
	}
}

// A Termination that is nil or zero has ended: no method panics or blocks, and Wait returns an error.
func TestMisuseOfAZeroTermination(t *testing.T) {
	for _, termination := range []*lifecycle.Termination{nil, {}} {
		<-termination.Done()
		result, err := termination.Wait(t.Context())
		require.EqualError(t, err, "there is no termination, Terminate begins one")
		require.Equal(t, lifecycle.OutcomeRuntimeStuck, result.Outcome())
		require.Equal(t, result, termination.Result())
		require.False(t, termination.Shorten(1))
		require.Zero(t, termination.Deadline())
		restart, _ := termination.ShouldRestart("a")
		require.False(t, restart)
	}
}

// A HandlerRunner whose options hold nil pointers in interfaces fails an exec hook with an error, as without Commands.
func TestMisuseOfNilPointersInAHandlerRunner(t *testing.T) {
	pod := misusedPod(v1.Container{Name: "a"})
	_, err := lifecycle.NewHandlerRunner(lifecycle.HandlerRunnerOptions{
		Commands: (*lifecycletest.Runtime)(nil), Events: (*lifecycletest.Events)(nil), Gates: featuregate.FeatureGate(nil),
	}).Run(t.Context(), "id", pod, &pod.Spec.Containers[0], scriptedExec())
	require.EqualError(t, err, "no command runner for exec hooks: Commands is nil")
}

// AddFeatureGates returns an error for a nil gate.
func TestMisuseOfANilFeatureGate(t *testing.T) {
	require.EqualError(t, lifecycle.AddFeatureGates(nil), "the feature gate is nil")
}

// The error of NewTerminator names all invalid options. An interface that holds a nil pointer is invalid too: its first call
// would panic.
func TestMisuseOfOptions(t *testing.T) {
	_, err := lifecycle.NewTerminator(lifecycle.TerminatorOptions{Runtime: lifecycle.RuntimeFunc(nil)})
	require.ErrorContains(t, err, "Runtime is a nil lifecycle.RuntimeFunc")
	_, err = lifecycle.NewTerminator(lifecycle.TerminatorOptions{StopTimeoutSlack: -time.Second, GiveUpAfter: -time.Second})
	require.ErrorContains(t, err, "Runtime: must be set")
	require.ErrorContains(t, err, "StopTimeoutSlack: must not be negative, is -1s\nGiveUpAfter: must not be negative, is -1s")
	var runtime *lifecycletest.Runtime
	var gates *nilGates
	_, err = lifecycle.NewTerminator(lifecycle.TerminatorOptions{
		Runtime: runtime, Pods: (*wholePod)(nil), Commands: runtime, Exits: runtime, Events: (*lifecycletest.Events)(nil),
		Hooks: hookFunc(nil), Gates: gates,
	})
	require.EqualError(t, err, `failed to create terminator: Runtime is a nil *lifecycletest.Runtime: leave it out or set a value
Runtime: must not be set with Pods, which replaces it
Pods is a nil *lifecycle_test.wholePod: leave it out or set a value
Commands is a nil *lifecycletest.Runtime: leave it out or set a value
Hooks is a nil lifecycle_test.hookFunc: leave it out or set a value
Exits is a nil *lifecycletest.Runtime: leave it out or set a value
Events is a nil *lifecycletest.Events: leave it out or set a value
Gates is a nil *lifecycle_test.nilGates: leave it out or set a value`)
	hooks := lifecycle.NewHandlerRunner(lifecycle.HandlerRunnerOptions{})
	_, err = lifecycle.NewTerminator(lifecycle.TerminatorOptions{Runtime: newMisused(), Commands: lifecycletest.NewRuntime(), Hooks: hooks})
	require.EqualError(t, err, "failed to create terminator: the option Commands has no effect with Hooks, which has no Commands: set it in HandlerRunnerOptions")
}

// nilGates is a feature gate of which the test has only a nil pointer.
type nilGates struct{ featuregate.FeatureGate }

// Invalid arguments are errors that say what is wrong. They run no hook and stop nothing.
func TestMisuseOfArguments(t *testing.T) {
	const (
		isNil     = "the pod is nil"
		isMissing = "the pod's spec has no such container"
		noID      = `container "app": ID: must be set`
		hasPrefix = `container "app": ID: must not have the prefix "containerd://", is "containerd://x"`
	)
	inBubble(t, graceSeconds(10), func(b *testBed) {
		b.addPostStart(scriptedExec(), lifecycletest.Script{})
		// The helpers make one call and return its error.
		killPod := func(pod *v1.Pod, containers ...lifecycle.Container) error {
			_, err := b.KillPod(b.quietContext(), pod, lifecycle.Request{Containers: containers})
			return err
		}
		kill := func(pod *v1.Pod, c lifecycle.Container) error {
			_, err := b.KillContainer(b.Context(), pod, c, lifecycle.ContainerRequest{})
			return err
		}
		start := func(pod *v1.Pod, name string, do func(context.Context) error) error {
			return b.Start(b.Context(), pod, name, do)
		}
		postStart := func(pod *v1.Pod, c lifecycle.Container) error { return b.PostStart(b.Context(), pod, c) }
		app, nameless, prefixed := containerNamed("app"), lifecycle.Container{Name: "app"}, lifecycle.Container{Name: "app", ID: "containerd://x"}
		nothing := func(context.Context) error { return nil }
		for i, test := range []struct {
			err  error
			want string
		}{
			{killPod(nil), isNil},
			{killPod(b.pod, nameless), `failed to terminate pod "pod_ns(uid)": Containers: ` + noID},
			{killPod(b.pod, prefixed), hasPrefix},
			{kill(nil, app), isNil},
			{kill(b.pod, nameless), noID},
			{kill(b.pod, prefixed), hasPrefix},
			{start(nil, "app", nothing), isNil},
			{start(b.pod, "app", nil), "the start function is nil"},
			{start(b.pod, "other", nothing), isMissing},
			{postStart(nil, app), isNil},
			{postStart(b.pod, nameless), noID},
			{postStart(b.pod, prefixed), hasPrefix},
			{postStart(b.pod, containerNamed("other")), isMissing},
		} {
			require.ErrorContains(b, test.err, test.want, "entry %d of the table", i)
		}
		_, found := b.Termination(nil)
		require.False(b, found)
		b.Forget(nil)
		b.rt.Start(b.pod, "app", "containerd://x", lifecycletest.Script{})
		require.ErrorContains(b, killPod(b.pod), "the runtime's list: "+hasPrefix)
		require.Empty(b, b.rt.Execs())
		require.Empty(b, b.rt.Stops())
	}, giveUpAfterOneSecond)
}
