//go:build go1.25

package lifecycle_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/lifecycle"
	"github.com/kubegrace/kubegrace/lifecycle/lifecycletest"
)

// startNow starts a container that the runtime has at once.
func (b *bed) startNow(name, id string, script lifecycletest.Script) {
	b.Helper()
	require.NoError(b, b.Start(b.Context(), b.pod, name, func(context.Context) (string, error) {
		b.rt.Start(id, script)
		return id, nil
	}))
}

func TestHandlesOfALifeAreEqual(t *testing.T) {
	inBubble(t, 30, func(b *bed) {
		b.addWaitingContainer("app")
		one := b.Pod(b.pod)
		require.True(b, one == b.Pod(b.pod), "before it begins")
		require.Zero(b, b.Tables())
		b.startNow("app", "app", lifecycletest.Script{})
		require.True(b, one == b.Pod(b.pod))
		one.Forget()
		require.False(b, one == b.Pod(b.pod))
		require.ErrorIs(b, one.Start(b.Context(), "app", nil), lifecycle.ErrForgotten)
		require.ErrorIs(b, one.PostStart(b.Context(), named("app")), lifecycle.ErrForgotten)
		_, err := one.Kill(b.Context(), lifecycle.Request{})
		require.ErrorIs(b, err, lifecycle.ErrForgotten)
		_, err = one.KillContainer(b.Context(), named("app"), lifecycle.ContainerRequest{})
		require.ErrorIs(b, err, lifecycle.ErrForgotten)
		_, found := one.Termination()
		require.False(b, found)
		one.Forget()
		synctest.Wait()
		require.Zero(b, b.Tables())
	})
}

// A container that was started again while the one before runs is stopped with it, and so is
// the one before, with its hook if it is known to run.
func TestBothAttemptsOfASlotAreStopped(t *testing.T) {
	for name, watched := range map[string]bool{"watched": true, "not watched": false} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, 30, func(b *bed) {
				b.addWaitingContainer("app")
				b.pod.Spec.Containers[0].Lifecycle = &v1.Lifecycle{PreStop: exec()}
				b.startNow("app", "one", lifecycletest.Script{})
				b.startNow("app", "two", lifecycletest.Script{})
				require.Equal(b, lifecycle.Graceful, b.kill().Outcome())
				require.Len(b, b.rt.Exits(), 2)
				require.Len(b, b.rt.Execs(), map[bool]int{true: 2, false: 1}[watched])
			}, func(o *lifecycle.TerminatorOptions) {
				if !watched {
					o.Exits = nil
				}
			})
		})
	}
}

// The request names the ID of a Start that has not returned.
func TestAnIDThatIsNamedBeforeItsStartReturns(t *testing.T) {
	for name, early := range map[string]bool{"it runs": false, "it does not run yet": true} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, 30, func(b *bed) {
				b.addWaitingContainer("app")
				b.pod.Spec.Containers[0].Lifecycle = &v1.Lifecycle{PreStop: exec()}
				var wg sync.WaitGroup
				wg.Go(func() {
					err := b.Start(b.Context(), b.pod, "app", func(context.Context) (string, error) {
						if early {
							<-time.After(2 * time.Second)
						}
						b.rt.Start("app", lifecycletest.Script{})
						<-time.After(5 * time.Second)
						return "app", nil
					})
					require.ErrorIs(b, err, lifecycle.ErrTerminating)
				})
				<-time.After(time.Second)
				result, err := b.KillPod(b.Context(), b.pod, lifecycle.Request{Containers: []lifecycle.Container{named("app")}})
				require.NoError(b, err)
				wg.Wait()
				require.Len(b, result.Containers, 1)
				require.LessOrEqual(b, len(b.rt.Execs()), 1)
				require.Len(b, b.rt.Exits(), 1)
				b.requireAnyEvents(map[bool][]string{false: {"Killing"}, true: {"Killing", "FailedPreStopHook"}}[early]...)
			})
		})
	}
}

// Without a watcher an ID that is named again is asked about again, without a hook.
func TestAnIDThatIsUsedAgain(t *testing.T) {
	inBubble(t, 30, func(b *bed) {
		b.addMain("app", exec(), lifecycletest.Script{})
		for i := range 3 {
			b.rt.Start("app", lifecycletest.Script{})
			result, err := b.KillContainer(b.Context(), b.pod, named("app"), lifecycle.ContainerRequest{})
			require.NoError(b, err)
			require.Equal(b, lifecycle.Graceful, result.Outcome)
			require.Len(b, b.rt.Stops(), i+1)
		}
		require.Len(b, b.rt.Execs(), 1)
		b.rt.Start("app", lifecycletest.Script{})
		require.Equal(b, lifecycle.Graceful, b.kill().Outcome())
		require.Len(b, b.rt.Stops(), 4)
	}, func(o *lifecycle.TerminatorOptions) { o.Exits = nil })
}

// unitRuntime stops all containers of a fake runtime at once.
type unitRuntime struct {
	*lifecycletest.Runtime

	ids   []string
	fails int
	calls []int64
}

func (r *unitRuntime) StopPod(ctx context.Context, _ *v1.Pod, seconds int64) error {
	r.calls = append(r.calls, seconds)
	if len(r.calls) <= r.fails {
		return errors.New("away")
	}
	for _, id := range r.ids {
		if err := r.StopContainer(ctx, id, seconds); err != nil {
			return err
		}
	}
	return nil
}

func TestAUnitStopsOnceAfterAllHooks(t *testing.T) {
	for name, test := range map[string]struct {
		hook  int64
		fails int
		calls []int64
		took  time.Duration
	}{
		"in time":         {hook: 10, calls: []int64{20}, took: 10 * time.Second},
		"at the deadline": {hook: 60, calls: []int64{2}, took: 30 * time.Second},
		"after a failure": {hook: 10, fails: 1, calls: []int64{20, 20}, took: 10100 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			unit := &unitRuntime{ids: []string{"app", "web", "proxy"}, fails: test.fails}
			inBubble(t, 30, func(b *bed) {
				unit.Runtime = b.rt
				b.addMain("app", sleep(3), lifecycletest.Script{})
				b.addMain("web", sleep(test.hook), lifecycletest.Script{})
				b.addSidecar("proxy", nil, lifecycletest.Script{})
				result, err := b.KillPod(b.silentContext(), b.pod, lifecycle.Request{})
				require.NoError(b, err)
				require.Equal(b, lifecycle.Graceful, result.Outcome())
				require.Len(b, result.Containers, 3)
				require.Equal(b, test.calls, unit.calls)
				require.Equal(b, test.took, b.at())
				require.Equal(b, lifecycle.HookCompleted, result.Containers[0].Hook.Outcome)
				_, err = b.KillContainer(b.Context(), b.pod, named("app"), lifecycle.ContainerRequest{})
				require.ErrorIs(b, err, lifecycle.ErrUnit)
			}, func(o *lifecycle.TerminatorOptions) { o.Runtime, o.Pods = nil, unit })
		})
	}
}

func TestOneAttempt(t *testing.T) {
	inBubble(t, 30, func(b *bed) {
		b.addMain("app", exec(), lifecycletest.Script{FailStops: 2})
		for range 2 {
			_, err := b.KillPod(b.silentContext(), b.pod, lifecycle.Request{OneAttempt: true})
			require.ErrorIs(b, err, lifecycletest.ErrScripted)
			<-time.After(time.Minute)
		}
		_, err := b.KillPod(b.silentContext(), b.pod, lifecycle.Request{OneAttempt: true})
		require.NoError(b, err)
		require.Equal(b, [][2]time.Duration{{30, 0}, {30, 60000}, {30, 120000}}, b.stopsOf("app"))
		require.Len(b, b.rt.Execs(), 1)
	})
}

func TestOnHookIsToldOfEachHook(t *testing.T) {
	var told atomic.Int32
	inBubble(t, 30, func(b *bed) {
		b.addMain("app", sleep(3), lifecycletest.Script{})
		b.addMain("web", nil, lifecycletest.Script{})
		b.kill()
		require.EqualValues(b, 1, told.Load())
	}, func(o *lifecycle.TerminatorOptions) {
		o.OnHook = func(_ *v1.Pod, c lifecycle.Container, r lifecycle.HookResult) {
			if c.Name == "app" && r.Outcome == lifecycle.HookCompleted && r.Took == 3*time.Second {
				told.Add(1)
			}
		}
	})
}

// A PostStart inside of the function that starts the container has the same attempt.
func TestPostStartInsideOfStart(t *testing.T) {
	inBubble(t, 30, func(b *bed) {
		b.addWaitingContainer("app")
		b.pod.Spec.Containers[0].Lifecycle = &v1.Lifecycle{PostStart: exec(), PreStop: exec()}
		require.NoError(b, b.Start(b.Context(), b.pod, "app", func(ctx context.Context) (string, error) {
			b.rt.Start("app", lifecycletest.Script{})
			return "app", b.PostStart(ctx, b.pod, named("app"))
		}))
		result := b.kill()
		require.Len(b, result.Containers, 1)
		require.Len(b, b.rt.Execs(), 2)
		require.Len(b, b.rt.Stops(), 1)
	})
}
