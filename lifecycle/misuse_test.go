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

// runtimeFuncs is a runtime whose methods Running and StopContainer call functions, so that a test can break one of them.
type runtimeFuncs struct {
	list func(context.Context, *v1.Pod) ([]lifecycle.Container, error)
	stop func(context.Context, string) error
}

func (r runtimeFuncs) Running(ctx context.Context, pod *v1.Pod) ([]lifecycle.Container, error) {
	return r.list(ctx, pod)
}

func (r runtimeFuncs) StopContainer(ctx context.Context, id string, _ int64) error {
	return r.stop(ctx, id)
}

// runtimeRunning returns a runtime in which these containers run until they are stopped.
func runtimeRunning(containers ...lifecycle.Container) *runtimeFuncs {
	var mu sync.Mutex
	ended := map[string]bool{}
	return &runtimeFuncs{
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

// withoutOtherPods makes the lists of every pod but webPod empty.
func (r *runtimeFuncs) withoutOtherPods() *runtimeFuncs {
	list := r.list
	r.list = func(ctx context.Context, pod *v1.Pod) ([]lifecycle.Container, error) {
		if pod.UID != webPod().UID {
			return nil, nil
		}
		return list(ctx, pod)
	}
	return r
}

// webPod returns a pod with a grace period of 2 s.
func webPod(containers ...v1.Container) *v1.Pod {
	return &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", UID: "uid"},
		Spec:       v1.PodSpec{TerminationGracePeriodSeconds: ptr.To(int64(2)), Containers: containers},
	}
}

// hangIsLogged is 1 s more than the 5 s after which a call that hangs is logged.
const hangIsLogged = 6 * time.Second

// loggedTerminator is a terminator whose log a test can check.
type loggedTerminator struct {
	*lifecycle.Terminator

	t      *testing.T
	record *judge.Record
}

// newLoggedTerminator returns a terminator that is closed at the end of the bubble.
func newLoggedTerminator(t *testing.T, options lifecycle.TerminatorOptions) loggedTerminator {
	t.Helper()
	terminator, err := lifecycle.NewTerminator(options)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, terminator.Close(context.WithoutCancel(t.Context()))) })
	return loggedTerminator{Terminator: terminator, t: t, record: judge.NewRecord()}
}

// context returns a context whose logger writes the log that requireLogged checks.
func (l loggedTerminator) context() context.Context { return l.record.Context(l.t.Context()) }

// requireLogged checks that exactly one line of the log contains a text: a misuse must be logged, and only once.
func (l loggedTerminator) requireLogged(text string) {
	l.t.Helper()
	synctest.Wait() // some lines are written in goroutines of their own
	require.Equal(l.t, 1, strings.Count(l.record.Story(), text), "%q in\n%s", text, l.record.Story())
}

// closeWithinASecond closes the terminator with a context that ends after 1 s, and returns the error of Close.
func (l loggedTerminator) closeWithinASecond() error {
	ctx, cancel := context.WithTimeout(l.context(), time.Second)
	defer cancel()
	return l.Close(ctx)
}

// The runtime lists two containers with one ID. The error and the log name both.
func TestMisuseListWithOneIDForTwoContainers(t *testing.T) {
	const want = `container "b": ID: must be unique, "1" is that of container "a"`
	synctest.Test(t, func(t *testing.T) {
		tr := newLoggedTerminator(t, lifecycle.TerminatorOptions{
			Runtime: runtimeRunning(lifecycle.Container{Name: "a", ID: "1"}, lifecycle.Container{Name: "b", ID: "1"}),
		})
		result, err := tr.KillPod(tr.context(), webPod(v1.Container{Name: "a"}, v1.Container{Name: "b"}), lifecycle.Request{})
		require.ErrorContains(t, err, want)
		require.Equal(t, lifecycle.OutcomeRuntimeStuck, result.Outcome())
		tr.requireLogged("Failed to list the pod's containers: the runtime's list: " + want)
	})
}

// The Began that KillContainer gets is a time in whole seconds, as in a status, and not that of the list. So the listed container
// counts as another run, and is not stopped. The log says so.
func TestMisuseKillContainerWithAnotherBegan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now().Add(-300 * time.Millisecond)
		tr := newLoggedTerminator(t, lifecycle.TerminatorOptions{
			Runtime: runtimeRunning(lifecycle.Container{Name: "a", ID: "1", Began: began}),
		})
		ofStatus := lifecycle.Container{Name: "a", ID: "1", Began: began.Truncate(time.Second)}
		result, err := tr.KillContainer(tr.context(), webPod(v1.Container{Name: "a"}), ofStatus, lifecycle.ContainerRequest{})
		require.NoError(t, err)
		require.Equal(t, lifecycle.OutcomeNotFound, result.Outcome)
		tr.requireLogged("Container was not stopped, because the runtime lists another run with its ID")
	})
}

// Each list panics for 3 min. The panic, the failure and the later success are logged once each, although two terminations
// list again and again: the first gives up after 2 s + 2 min (GiveUpAfter), and the second gets a list after 3 min.
func TestMisuseListsThatPanic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		tr := newLoggedTerminator(t, lifecycle.TerminatorOptions{
			Runtime: runtimeFuncs{list: func(context.Context, *v1.Pod) ([]lifecycle.Container, error) {
				if time.Since(began) < 3*time.Minute {
					panic("boom")
				}
				return nil, nil
			}},
		})
		<-tr.Terminate(tr.context(), webPod(), lifecycle.Request{}).Done()
		<-tr.Terminate(tr.context(), webPod(), lifecycle.Request{}).Done()
		tr.requireLogged("Recovered from a panic: the runtime's list panicked: boom")
		tr.requireLogged("Failed to list the pod's containers")
		tr.requireLogged("Listed the pod's containers after earlier failures")
	})
}

// A list fails with context.Canceled, though nobody has cancelled it. The failure is logged.
func TestMisuseListThatFailsWithCanceled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var failed atomic.Bool
		tr := newLoggedTerminator(t, lifecycle.TerminatorOptions{
			Runtime: runtimeFuncs{list: func(context.Context, *v1.Pod) ([]lifecycle.Container, error) {
				if failed.CompareAndSwap(false, true) {
					return nil, context.Canceled
				}
				return nil, nil
			}},
		})
		<-tr.Terminate(tr.context(), webPod(), lifecycle.Request{}).Done()
		tr.requireLogged("Failed to list the pod's containers: context canceled")
	})
}

// Stops and hooks ignore their contexts while Close waits. Close names them in its error when its context ends, and logs them
// after 5 s.
func TestMisuseCallsThatIgnoreTheirContextsDuringClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		runtime := runtimeRunning(containerNamed("zoo"), containerNamed("app"))
		runtime.stop = func(context.Context, string) error { <-release; return nil }
		hooks := hookFunc(func(context.Context) error { <-release; return nil })
		tr := newLoggedTerminator(t, lifecycle.TerminatorOptions{Runtime: runtime, Hooks: hooks})
		tr.Terminate(tr.context(), webPod(v1.Container{Name: "zoo"}, containerWithHook("app", scriptedExec())), lifecycle.Request{})
		<-time.After(3 * time.Second) // app is stopped at 2 s, the deadline, at which its hook is cut
		require.EqualError(t, tr.closeWithinASecond(), "the terminator was closed, calls that have not returned: "+
			"StopContainer of default/web/app, StopContainer of default/web/zoo, the hook of default/web/app: context deadline exceeded")

		closed := startCall(func() error { return tr.Close(tr.context()) })
		<-time.After(hangIsLogged)
		tr.requireLogged("Terminator.Close waits for calls that have not returned")
		close(release)
		require.NoError(t, closed())
	})
}

// The preStop hook of a container cannot run. The log says why.
func TestMisuseHooksThatCannotRun(t *testing.T) {
	for name, test := range map[string]struct {
		hook *v1.LifecycleHandler
		why  string
	}{
		"an exec hook without Commands": {hook: scriptedExec(), why: "no command runner for exec hooks: Commands is nil"},
		"an httpGet hook without an address": {
			hook: httpHandler(v1.HTTPGetAction{}),
			why:  "failed to find networking container: web_default(uid): status.podIP, or what the option PodIP returned, is empty",
		},
		"a hook that is not exec, httpGet or sleep": {
			hook: &v1.LifecycleHandler{TCPSocket: &v1.TCPSocketAction{Host: "db"}},
			why:  "invalid handler: &LifecycleHandler{Exec:nil,HTTPGet:nil,TCPSocket:&TCPSocketAction{",
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tr := newLoggedTerminator(t, lifecycle.TerminatorOptions{Runtime: runtimeRunning(containerNamed("a"))})
				_, err := tr.KillPod(tr.context(), webPod(containerWithHook("a", test.hook)), lifecycle.Request{})
				require.NoError(t, err)
				tr.requireLogged("PreStop hook failed: " + test.why)
			})
		})
	}
}

// The context of KillPod has ended before the first list returns. The error and the result say that the termination is in
// progress. A later KillPod returns its outcome.
func TestMisuseContextThatHasEndedBeforeTheFirstList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		runtime := runtimeRunning(containerNamed("a"))
		list := runtime.list
		runtime.list = func(ctx context.Context, pod *v1.Pod) ([]lifecycle.Container, error) {
			<-release
			return list(ctx, pod)
		}
		tr := newLoggedTerminator(t, lifecycle.TerminatorOptions{Runtime: runtime})
		ended, cancel := context.WithCancel(tr.context())
		cancel()
		result, err := tr.KillPod(ended, webPod(v1.Container{Name: "a"}), lifecycle.Request{})
		require.ErrorContains(t, err, "stopped waiting: containers that have not ended: default/web: context canceled")
		require.True(t, result.InProgress)
		require.Empty(t, result.Outcome(), "nothing is known before the first list")

		close(release)
		result, err = tr.KillPod(tr.context(), webPod(), lifecycle.Request{})
		require.NoError(t, err)
		require.False(t, result.InProgress)
		require.Equal(t, lifecycle.OutcomeGraceful, result.Outcome())
	})
}

// The caller overwrites its pod after Terminate has returned. The termination has its own copy: the hook and the stop run. The runtime
// lists the container only for the pod as it was (withoutOtherPods).
func TestMisusePodIsOverwrittenDuringItsTermination(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tr := newLoggedTerminator(t, lifecycle.TerminatorOptions{Runtime: runtimeRunning(containerNamed("a")).withoutOtherPods()})
		pod := webPod(containerWithHook("a", sleepHandler(1)))
		termination := tr.Terminate(tr.context(), pod, lifecycle.Request{})
		*pod = v1.Pod{}
		result, err := termination.Wait(tr.context())
		require.NoError(t, err)
		require.Equal(t, lifecycle.OutcomeGraceful, result.Outcome())
		require.Equal(t, lifecycle.HookCompleted, result.Containers[0].Hook.Outcome)
	})
}

// The first StopContainer call of a KillContainer fails after 2 s. The caller has stopped waiting after 1 s, and then overwrites
// its pod. StopContainer is called again nevertheless, and stops the container, which the runtime lists only for the pod as it was
// (withoutOtherPods).
func TestMisusePodIsOverwrittenDuringKillContainer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		runtime := runtimeRunning(containerNamed("a")).withoutOtherPods()
		stop := runtime.stop
		var isRepeated atomic.Bool
		runtime.stop = func(ctx context.Context, id string) error {
			if isRepeated.CompareAndSwap(false, true) {
				<-time.After(2 * time.Second)
				return errors.New("not stopped")
			}
			return stop(ctx, id)
		}
		tr := newLoggedTerminator(t, lifecycle.TerminatorOptions{Runtime: runtime})
		ctx, cancel := context.WithTimeout(tr.context(), time.Second)
		defer cancel()
		pod := webPod(v1.Container{Name: "a"})
		_, err := tr.KillContainer(ctx, pod, containerNamed("a"), lifecycle.ContainerRequest{})
		require.ErrorIs(t, err, context.DeadlineExceeded)
		*pod = v1.Pod{}
		<-time.After(3 * time.Second)
		tr.requireLogged("Stopped container after earlier failures pod=default/web")

		result, err := tr.KillContainer(tr.context(), webPod(), containerNamed("a"), lifecycle.ContainerRequest{})
		require.NoError(t, err)
		require.Equal(t, lifecycle.OutcomeNotFound, result.Outcome, "it has been stopped")
	})
}

// Forget is called while the first list, which takes 1 s, is in progress. The termination ends with an error.
func TestMisuseForgetBeforeTheFirstList(t *testing.T) {
	const want = "Forget was called before the runtime had listed the pod's containers"
	synctest.Test(t, func(t *testing.T) {
		tr := newLoggedTerminator(t, lifecycle.TerminatorOptions{
			Runtime: runtimeFuncs{list: func(context.Context, *v1.Pod) ([]lifecycle.Container, error) {
				<-time.After(time.Second)
				return []lifecycle.Container{containerNamed("a")}, nil
			}},
		})
		pod := webPod(v1.Container{Name: "a"})
		termination := tr.Terminate(tr.context(), pod, lifecycle.Request{})
		tr.Forget(pod)
		result, err := termination.Wait(tr.context())
		require.EqualError(t, err, want)
		require.Equal(t, lifecycle.OutcomeRuntimeStuck, result.Outcome())
		tr.requireLogged("Gave up waiting for container: " + want + " pod=default/web containerName=a")
	})
}

// Each list has the container with a new ID. The termination gives up GiveUpAfter (2 min) past the deadline of 2 s. It must not call
// the runtime in a busy loop: it makes at most 150 stops in these 122 s. Its error and the log ask for the cause.
func TestMisuseNewIDInEachList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		var lists, stops atomic.Int64
		tr := newLoggedTerminator(t, lifecycle.TerminatorOptions{Runtime: runtimeFuncs{
			list: func(context.Context, *v1.Pod) ([]lifecycle.Container, error) {
				return []lifecycle.Container{{Name: "a", ID: strconv.FormatInt(lists.Add(1), 10)}}, nil
			},
			stop: func(context.Context, string) error { stops.Add(1); return nil },
		}})
		result, err := tr.KillPod(tr.context(), webPod(v1.Container{Name: "a"}), lifecycle.Request{})
		require.ErrorContains(t, err, "the runtime listed it after the termination had given up; are its ID and Began the same in each list?")
		require.Equal(t, 2*time.Second+lifecycle.DefaultGiveUpAfter, time.Since(began).Truncate(time.Second))
		require.Equal(t, lifecycle.OutcomeRuntimeStuck, result.Outcome())
		require.LessOrEqual(t, stops.Load(), int64(150))
		tr.requireLogged("The runtime lists a new run of the container again and again: are its ID and Began the same in each list?")
		tr.requireLogged("Gave up waiting for container: " + err.Error())
	})
}

// A pod has no grace period, or a time.Duration as its seconds. The pod is killed twice, but the mistake is logged once.
func TestMisuseOfTheGracePeriod(t *testing.T) {
	for logged, seconds := range map[string]*int64{
		"The pod has no grace period and gets the minimum: set terminationGracePeriodSeconds, which is 30 by default in the API server pod=default/web gracePeriod=1": nil,

		"The grace period is longer than a year: was a time.Duration passed as seconds? pod=default/web gracePeriod=30000000000": ptr.To(int64(30 * time.Second)),
	} {
		synctest.Test(t, func(t *testing.T) {
			tr := newLoggedTerminator(t, lifecycle.TerminatorOptions{Runtime: runtimeRunning()})
			pod := webPod()
			pod.Spec.TerminationGracePeriodSeconds = seconds
			for range 2 {
				_, err := tr.KillPod(tr.context(), pod, lifecycle.Request{})
				require.NoError(t, err)
			}
			tr.requireLogged(logged)
		})
	}
}

// A start function waits for the termination of its own pod, which waits for the start. This is logged after 5 s, and the
// termination gives up with an error.
func TestMisuseStartThatWaitsForTheTerminationOfItsPod(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tr := newLoggedTerminator(t, lifecycle.TerminatorOptions{Runtime: runtimeRunning()})
		pod := webPod(v1.Container{Name: "a"})
		started := startCall(func() error {
			return tr.Start(tr.context(), pod, "a", func(ctx context.Context) error {
				_, err := tr.KillPod(context.WithoutCancel(ctx), pod, lifecycle.Request{})
				return err
			})
		})
		<-time.After(hangIsLogged)
		tr.requireLogged("A call has not returned since its context ended pod=default/web containerName=a call=the start after=5s")
		require.ErrorContains(t, started(), `failed to stop container "a": its start has not returned`)
		tr.requireLogged(`Gave up waiting for container: failed to stop container "a": its start has not returned`)
	})
}

// Each list has the container with its old ID, but with a later Began, as if it had been started again. That is logged.
func TestMisuseNewBeganInEachList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tr := newLoggedTerminator(t, lifecycle.TerminatorOptions{Runtime: runtimeFuncs{
			list: func(context.Context, *v1.Pod) ([]lifecycle.Container, error) {
				return []lifecycle.Container{{Name: "a", ID: "1", Began: time.Now()}}, nil
			},
			stop: func(context.Context, string) error { return nil },
		}})
		tr.Terminate(tr.context(), webPod(v1.Container{Name: "a"}), lifecycle.Request{})
		<-time.After(150 * time.Millisecond) // the pause before the second StopContainer call is 100 ms
		tr.requireLogged("Container counts as stopped, because the runtime lists a later run with its ID and another Began")
	})
}

// OnHook does not return. KillPod does not wait for it, but the log and the error of Close name it.
func TestMisuseOnHookHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		defer close(release)
		tr := newLoggedTerminator(t, lifecycle.TerminatorOptions{
			Runtime: runtimeRunning(containerNamed("a")),
			OnHook:  func(*v1.Pod, lifecycle.Container, lifecycle.HookResult) { <-release },
		})
		_, err := tr.KillPod(tr.context(), webPod(containerWithHook("a", sleepHandler(1))), lifecycle.Request{})
		require.NoError(t, err)
		<-time.After(hangIsLogged)
		tr.requireLogged("A call has not returned pod=default/web containerName=a call=OnHook after=5s")
		require.ErrorContains(t, tr.closeWithinASecond(), "the terminator was closed, calls that have not returned: OnHook of default/web/a: ")
	})
}

// StopContainer does not find a container that is listed. The log says so.
func TestMisuseListedContainerIsNotFound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		runtime := runtimeRunning(containerNamed("a"))
		runtime.stop = func(context.Context, string) error { return lifecycle.ErrContainerNotFound }
		tr := newLoggedTerminator(t, lifecycle.TerminatorOptions{Runtime: runtime})
		tr.Terminate(tr.context(), webPod(v1.Container{Name: "a"}), lifecycle.Request{})
		tr.requireLogged(`Failed to stop container: StopContainer returned "container not found", but the runtime still lists the container`)
	})
}

// Metrics that were not made with NewLifecycle count nothing, and do not panic.
func TestMisuseOfZeroMetrics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tr := newLoggedTerminator(t, lifecycle.TerminatorOptions{Runtime: runtimeRunning(containerNamed("a")), Metrics: &metrics.Lifecycle{}})
		_, err := tr.KillPod(tr.context(), webPod(containerWithHook("a", sleepHandler(1))), lifecycle.Request{})
		require.NoError(t, err)
	})
}

// A pod has neither a UID nor a name. No method can identify it, and each returns an error or does nothing.
func TestMisuseOfAPodWithoutUIDAndName(t *testing.T) {
	const want = "the pod has neither a UID nor a name"
	tr := newLoggedTerminator(t, lifecycle.TerminatorOptions{Runtime: runtimeRunning()})
	pod := &v1.Pod{Spec: v1.PodSpec{Containers: []v1.Container{{Name: "a"}}}}
	_, err := tr.KillPod(tr.context(), pod, lifecycle.Request{})
	require.EqualError(t, err, want)
	_, err = tr.KillContainer(tr.context(), pod, containerNamed("a"), lifecycle.ContainerRequest{})
	require.EqualError(t, err, want)
	require.ErrorContains(t, tr.PostStart(tr.context(), pod, containerNamed("a")), want)
	require.ErrorContains(t, tr.Start(tr.context(), pod, "a", func(context.Context) error { return nil }), want)
	_, found := tr.Termination(pod)
	require.False(t, found)
	tr.Forget(pod)
}

// The methods of a Terminator that is nil or was not made with NewTerminator return an error that says so, or do nothing. None
// of them panics or blocks.
func TestMisuseOfAZeroTerminator(t *testing.T) {
	const want = "the Terminator was not made with NewTerminator"
	ctx, pod := t.Context(), webPod(v1.Container{Name: "a", Lifecycle: &v1.Lifecycle{PostStart: scriptedExec()}})
	for _, zero := range []*lifecycle.Terminator{nil, {}} {
		_, err := zero.KillPod(ctx, pod, lifecycle.Request{})
		require.EqualError(t, err, want)
		_, err = zero.KillContainer(ctx, pod, containerNamed("a"), lifecycle.ContainerRequest{})
		require.EqualError(t, err, want)
		require.ErrorContains(t, zero.Start(ctx, pod, "a", func(context.Context) error { return nil }), want)
		require.ErrorContains(t, zero.PostStart(ctx, pod, containerNamed("a")), want)
		require.EqualError(t, zero.Close(ctx), want)
		zero.Forget(pod)
		_, found := zero.Termination(pod)
		require.False(t, found)
	}
}

// A Termination that is nil or zero has ended: no method panics or blocks, and Wait returns an error.
func TestMisuseOfAZeroTermination(t *testing.T) {
	for _, zero := range []*lifecycle.Termination{nil, {}} {
		<-zero.Done()
		result, err := zero.Wait(t.Context())
		require.EqualError(t, err, "there is no termination, Terminate begins one")
		require.Equal(t, lifecycle.OutcomeRuntimeStuck, result.Outcome())
		require.Equal(t, result, zero.Result())
		require.False(t, zero.Shorten(1), "nothing is shortened")
		require.Zero(t, zero.Deadline())
		shouldRestart, _ := zero.ShouldRestart("a")
		require.False(t, shouldRestart)
	}
}

// A HandlerRunner whose options hold nil pointers in interfaces fails an exec hook with an error, as without Commands.
func TestMisuseOfNilPointersInAHandlerRunner(t *testing.T) {
	pod := webPod(v1.Container{Name: "a"})
	_, err := lifecycle.NewHandlerRunner(lifecycle.HandlerRunnerOptions{
		Commands: (*lifecycletest.Runtime)(nil), Events: (*lifecycletest.Events)(nil), Gates: featuregate.FeatureGate(nil),
	}).Run(t.Context(), "id", pod, &pod.Spec.Containers[0], scriptedExec())
	require.EqualError(t, err, "no command runner for exec hooks: Commands is nil")
}

// AddFeatureGates returns an error for a nil gate.
func TestMisuseOfANilFeatureGate(t *testing.T) {
	require.EqualError(t, lifecycle.AddFeatureGates(nil), "the feature gate is nil")
}

// The error of NewTerminator names all invalid options.
func TestMisuseOfOptions(t *testing.T) {
	runner := lifecycle.NewHandlerRunner(lifecycle.HandlerRunnerOptions{})
	for _, test := range []struct {
		options lifecycle.TerminatorOptions
		want    string
	}{
		{
			options: lifecycle.TerminatorOptions{StopTimeoutSlack: -time.Second, GiveUpAfter: -time.Second},
			want:    "Runtime: must be set\nStopTimeoutSlack: must not be negative, is -1s\nGiveUpAfter: must not be negative, is -1s",
		},
		{
			options: lifecycle.TerminatorOptions{Runtime: runtimeRunning(), Commands: lifecycletest.NewRuntime(), Hooks: runner},
			want:    "the option Commands has no effect with Hooks, which has no Commands: set it in HandlerRunnerOptions",
		},
	} {
		_, err := lifecycle.NewTerminator(test.options)
		require.EqualError(t, err, "failed to create terminator: "+test.want)
	}
}

// An option that is an interface and holds a nil pointer or function is invalid, because its first call would panic.
func TestMisuseOfNilPointersInOptions(t *testing.T) {
	_, err := lifecycle.NewTerminator(lifecycle.TerminatorOptions{Runtime: lifecycle.RuntimeFunc(nil)})
	require.ErrorContains(t, err, "Runtime is a nil lifecycle.RuntimeFunc")

	var runtime *lifecycletest.Runtime
	_, err = lifecycle.NewTerminator(lifecycle.TerminatorOptions{
		Runtime: runtime, Pods: (*wholePod)(nil), Commands: runtime, Exits: runtime, Events: (*lifecycletest.Events)(nil),
		Hooks: hookFunc(nil), Gates: (*nilGates)(nil),
	})
	require.EqualError(t, err, `failed to create terminator: Runtime is a nil *lifecycletest.Runtime: leave it out or set a value
Runtime: must not be set with Pods, which replaces it
Pods is a nil *lifecycle_test.wholePod: leave it out or set a value
Commands is a nil *lifecycletest.Runtime: leave it out or set a value
Hooks is a nil lifecycle_test.hookFunc: leave it out or set a value
Exits is a nil *lifecycletest.Runtime: leave it out or set a value
Events is a nil *lifecycletest.Events: leave it out or set a value
Gates is a nil *lifecycle_test.nilGates: leave it out or set a value`)
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
		b.addAppWithPostStart(scriptedExec(), lifecycletest.Script{})
		// These functions make one call and return its error.
		killPod := func(pod *v1.Pod, containers ...lifecycle.Container) error {
			_, err := b.KillPod(b.quietContext(), pod, lifecycle.Request{Containers: containers})
			return err
		}
		killContainer := func(pod *v1.Pod, c lifecycle.Container) error {
			_, err := b.KillContainer(b.Context(), pod, c, lifecycle.ContainerRequest{})
			return err
		}
		start := func(pod *v1.Pod, name string, do func(context.Context) error) error {
			return b.Start(b.Context(), pod, name, do)
		}
		postStart := func(pod *v1.Pod, c lifecycle.Container) error { return b.PostStart(b.Context(), pod, c) }
		app, withoutID := containerNamed("app"), lifecycle.Container{Name: "app"}
		withPrefix, sameID := lifecycle.Container{Name: "app", ID: "containerd://x"}, lifecycle.Container{Name: "other", ID: "app"}
		startNothing := func(context.Context) error { return nil }
		for _, test := range []struct {
			err  error
			want string
		}{
			{err: killPod(nil), want: isNil},
			{err: killPod(b.pod, withoutID), want: `failed to terminate pod "pod_ns(uid)": Containers: ` + noID},
			{err: killPod(b.pod, withPrefix), want: hasPrefix},
			{err: killPod(b.pod, app, sameID), want: `Containers: container "other": ID: must be unique, "app" is that of container "app"`},
			{err: killContainer(nil, app), want: isNil},
			{err: killContainer(b.pod, withoutID), want: noID},
			{err: killContainer(b.pod, withPrefix), want: hasPrefix},
			{err: start(nil, "app", startNothing), want: isNil},
			{err: start(b.pod, "app", nil), want: "the start function is nil"},
			{err: start(b.pod, "other", startNothing), want: isMissing},
			{err: postStart(nil, app), want: isNil},
			{err: postStart(b.pod, withoutID), want: noID},
			{err: postStart(b.pod, withPrefix), want: hasPrefix},
			{err: postStart(b.pod, containerNamed("other")), want: isMissing},
		} {
			require.ErrorContains(b, test.err, test.want)
		}
		_, found := b.Termination(nil)
		require.False(b, found)
		b.Forget(nil)
		b.rt.Start(b.pod, "app", "containerd://x", lifecycletest.Script{})
		require.ErrorContains(b, killPod(b.pod), "the runtime's list: "+hasPrefix)
		require.Empty(b, b.rt.Execs(), "no hook has run")
		require.Empty(b, b.rt.Stops())
	}, giveUpAfterOneSecond)
}
