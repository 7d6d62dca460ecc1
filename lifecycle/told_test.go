//go:build go1.25

package lifecycle_test

import (
	"context"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"

	"github.com/kubegrace/kubegrace/lifecycle"
	"github.com/kubegrace/kubegrace/lifecycle/lifecycletest"
	"github.com/kubegrace/kubegrace/metrics"
)

// A postStart hook that the end of the caller's context ends has not failed: no kill, no event.
func TestTheCallersContextEndsAPostStartHook(t *testing.T) {
	inLife(t, func(b *lifeBed) {
		b.takes = 10 * time.Second
		b.runs("app", "a", lifecycletest.Script{})
		ctx, cancel := context.WithTimeout(b.ctx, time.Second)
		defer cancel()
		require.ErrorIs(b, b.life.PostStart(ctx, lifecycle.Container{Name: "app", ID: "a"}), context.DeadlineExceeded)
		b.requireStops()
		require.Empty(b, b.events.All())
	})
}

// A wait that its context ends names what has not ended: a start too.
func TestWhatHasNotEndedIsNamed(t *testing.T) {
	for name, begin := range map[string]func(*lifeBed){
		"a start": func(b *lifeBed) {
			go func() { _ = b.start("app", "a", lifecycletest.Script{StartTakes: 5 * time.Second, StartDeaf: true}) }()
		},
		"a hook": func(b *lifeBed) { b.takes = 5 * time.Second; b.runs("app", "a", lifecycletest.Script{}) },
		"a stop": func(b *lifeBed) { b.runs("app", "a", lifecycletest.Script{ExitAfterTerm: 5 * time.Second}) },
	} {
		t.Run(name, func(t *testing.T) {
			inLife(t, func(b *lifeBed) {
				begin(b)
				<-time.After(time.Second)
				ctx, cancel := context.WithTimeout(b.ctx, time.Second)
				defer cancel()
				_, err := b.life.Kill(ctx, lifecycle.Request{Containers: only("app", "a")})
				var running *lifecycle.StillRunningError
				require.ErrorAs(b, err, &running)
				require.Equal(b, []string{"ns/pod/app"}, running.Containers)
				_, err = b.kill(lifecycle.Request{})
				require.NoError(b, err)
			})
		})
	}
}

// A pod of which containers were killed is counted once, however often it is asked to end.
func TestAPodThatExceedsItsGraceIsCountedOnce(t *testing.T) {
	registry := prometheus.NewPedanticRegistry()
	handle, err := metrics.NewLifecycle(registry, metrics.Options{})
	require.NoError(t, err)
	inLife(t, func(b *lifeBed) {
		b.runs("app", "a", lifecycletest.Script{IgnoreTerm: true})
		for i, id := range []string{"p1", "p2"} {
			b.rt.Start(id, lifecycletest.Script{IgnoreTerm: true})
			_, err := b.kill(lifecycle.Request{Containers: only("proxy", id)})
			require.NoError(b, err)
			require.Len(b, b.rt.Stops(), i+2)
		}
	}, func(_ *lifeBed, o *lifecycle.TerminatorOptions) { o.Metrics = handle })
	require.NoError(t, testutil.GatherAndCompare(registry, strings.NewReader(`
# HELP kubelet_pod_termination_grace_period_exceeded_total Pods of which a container had to be killed because the termination grace period was over.
# TYPE kubelet_pod_termination_grace_period_exceeded_total counter
kubelet_pod_termination_grace_period_exceeded_total 1
`), "kubelet_pod_termination_grace_period_exceeded_total"))
}

// hangingExits is an ExitWatcher whose calls take 3 s.
type hangingExits struct{ lifecycle.ExitWatcher }

func (e hangingExits) Exited(id string) <-chan struct{} {
	<-time.After(3 * time.Second)
	return e.ExitWatcher.Exited(id)
}

// An ExitWatcher that is slow takes no time from the hook and the stop.
func TestASlowExitWatcherCostsNoTime(t *testing.T) {
	inLife(t, func(b *lifeBed) {
		b.runs("app", "a", lifecycletest.Script{ExitAfterTerm: time.Second})
		b.life.Terminate(b.ctx, lifecycle.Request{})
		synctest.Wait()
		b.requireHooks("a")
		b.requireStops("a")
		require.Zero(b, time.Since(b.began))
	}, func(b *lifeBed, o *lifecycle.TerminatorOptions) { o.Exits = hangingExits{b.rt} })
}

// The ID in the message of an event is replaced where it is an ID, not inside of other words.
func TestAnIDThatIsPartOfAName(t *testing.T) {
	inLife(t, func(b *lifeBed) {
		b.spec.Spec.Containers[0].Name = "redis-1"
		b.runs("redis-1", "1", lifecycletest.Script{})
		_, err := b.kill(lifecycle.Request{})
		require.NoError(b, err)
		require.Equal(b, "Stopping container redis-1", b.events.All()[0].Message)
	})
}

// errorCounter is a log of which only the errors are counted.
type errorCounter struct{ errors chan error }

func (errorCounter) Init(logr.RuntimeInfo)                 {}
func (errorCounter) Enabled(int) bool                      { return false }
func (errorCounter) Info(int, string, ...any)              {}
func (c errorCounter) Error(err error, _ string, _ ...any) { c.errors <- err }
func (c errorCounter) WithValues(...any) logr.LogSink      { return c }
func (c errorCounter) WithName(string) logr.LogSink        { return c }

// failingHooks is a HandlerRunner whose hooks fail.
type failingHooks struct{}

func (failingHooks) Run(context.Context, string, *v1.Pod, *v1.Container, *v1.LifecycleHandler) (string, error) {
	return "it failed", lifecycletest.ErrScripted
}

// A preStop hook that fails is an error in the log, and OnHook is told of it with the container.
func TestAFailedHookIsLoggedAndTold(t *testing.T) {
	told := make(chan lifecycle.HookResult, 10) // the hooks of two containers end at the same time
	log := errorCounter{make(chan error, 10)}
	inLife(t, func(b *lifeBed) {
		b.runs("app", "a", lifecycletest.Script{})
		b.runs("proxy", "p", lifecycletest.Script{})
		result, err := b.life.Kill(klog.NewContext(b.ctx, logr.New(log)), lifecycle.Request{})
		require.NoError(b, err)
		require.Equal(b, lifecycle.HookFailed, result.Containers[0].Hook.Outcome)
		synctest.Wait()
		require.Len(b, log.errors, 2)
		require.NotErrorIs(b, <-log.errors, lifecycletest.ErrScripted, "it may have output of the hook in it")
		require.Len(b, told, 2)
		require.ErrorIs(b, (<-told).Err, lifecycletest.ErrScripted)
	}, func(_ *lifeBed, o *lifecycle.TerminatorOptions) {
		o.Hooks = failingHooks{}
		o.OnHook = func(pod *v1.Pod, c lifecycle.Container, r lifecycle.HookResult) {
			if pod.Name == "pod" && c.ID != "" && c.Name != "" {
				told <- r
			}
		}
	})
}

// That exec hooks have no runner is in the log at any verbosity: no command has run whose output could be in it.
func TestAHookWithoutARunnerIsLoggedAsThat(t *testing.T) {
	log := errorCounter{make(chan error, 10)}
	inLife(t, func(b *lifeBed) {
		b.runs("app", "a", lifecycletest.Script{})
		result, err := b.life.Kill(klog.NewContext(b.ctx, logr.New(log)), lifecycle.Request{})
		require.NoError(b, err)
		synctest.Wait()
		require.Equal(b, result.Containers[0].Hook.Err, <-log.errors)
	}, func(_ *lifeBed, o *lifecycle.TerminatorOptions) { o.Hooks = nil })
}

// A function that is nil is refused where it is given.
func TestANilFunctionIsNoRuntime(t *testing.T) {
	_, err := lifecycle.NewTerminator(lifecycle.TerminatorOptions{Runtime: lifecycle.RuntimeFunc(nil)})
	require.ErrorContains(t, err, "Runtime")
}

// The outcomes are one table, from the best to the worst, and a value outside of it is no panic.
func TestTheOutcomesAreOneTable(t *testing.T) {
	handle, err := metrics.NewLifecycle(prometheus.NewPedanticRegistry(), metrics.Options{})
	require.NoError(t, err)
	result := lifecycle.Result{Containers: []lifecycle.ContainerResult{{Outcome: "Odd"}}}
	require.NotPanics(t, func() { result.Outcome() })
	for i, o := range lifecycle.Outcomes() {
		handle.PodTerminated(string(o), 1)
		for _, better := range lifecycle.Outcomes()[:i+1] {
			two := lifecycle.Result{Containers: []lifecycle.ContainerResult{{Outcome: better}, {Outcome: o}}}
			require.Equal(t, o, two.Outcome())
		}
	}
}

// A terminator keeps no lives for its callers: it gives a Pod, and kills for those who keep none.
func TestTheMethodsOfATerminator(t *testing.T) {
	var got []string
	for typ, i := reflect.TypeFor[*lifecycle.Terminator](), 0; i < typ.NumMethod(); i++ {
		if name := typ.Method(i).Name; name != "Tables" { // of these tests
			got = append(got, name)
		}
	}
	require.Equal(t, []string{"Close", "ForgetPod", "KillContainer", "KillPod", "Pod"}, got)
}
