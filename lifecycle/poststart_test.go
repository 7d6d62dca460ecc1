//go:build go1.25

package lifecycle_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/lifecycle"
	"github.com/kubegrace/kubegrace/lifecycle/lifecycletest"
)

// addPostStart adds and starts a main container with a postStart hook.
func (b *testBed) addPostStart(hook *v1.LifecycleHandler, script lifecycletest.Script) {
	b.addMain("app", nil, script)
	b.pod.Spec.Containers[0].Lifecycle = &v1.Lifecycle{PostStart: hook}
}

// A postStart hook runs like a preStop hook, without an event if it succeeds. A container without one
// returns at once.
func TestPostStartRunsThroughTheSameRunner(t *testing.T) {
	inBubble(t, graceSeconds(30), func(b *testBed) {
		b.addPostStart(sleepHandler(3), lifecycletest.Script{})
		require.NoError(b, b.PostStart(b.Context(), b.pod, containerNamed("app")))
		require.Equal(b, 3*time.Second, b.elapsed())
		require.Empty(b, b.events.All())
		b.addMain("plain", sleepHandler(3), lifecycletest.Script{})
		require.NoError(b, b.PostStart(b.Context(), b.pod, containerNamed("plain")))
		require.Equal(b, 3*time.Second, b.elapsed())
		require.Zero(b, b.Pods())
	})
}

// Invalid arguments are errors. They run no hook and kill nothing.
func TestPostStartRejectsInvalidArguments(t *testing.T) {
	inBubble(t, graceSeconds(30), func(b *testBed) {
		b.addPostStart(scriptedExec(), lifecycletest.Script{})
		for text, c := range map[string]lifecycle.Container{
			"the pod's spec has no such container":                                               containerNamed("other"),
			`container "app": ID: must be set`:                                                   {Name: "app"},
			`container "app": ID: must not have the prefix "containerd://", is "containerd://a"`: {Name: "app", ID: "containerd://a"},
		} {
			require.ErrorContains(b, b.PostStart(b.Context(), b.pod, c), text)
		}
		require.ErrorContains(b, b.PostStart(b.Context(), nil, containerNamed("app")), "the pod is nil")
		require.Empty(b, b.rt.Execs())
		require.Empty(b, b.rt.Stops())
	})
}

// A postStart hook fails: the event without the hook's output, and then the kill, as in the kubelet.
func TestFailedPostStartKillsItsContainer(t *testing.T) {
	inBubble(t, graceSeconds(30), func(b *testBed) {
		b.addPostStart(scriptedExec(), lifecycletest.Script{Exec: func(context.Context, []string) ([]byte, error) {
			return []byte("a secret"), lifecycletest.ErrScripted
		}})
		err := b.PostStart(b.Context(), b.pod, containerNamed("app"))
		require.ErrorIs(b, err, lifecycletest.ErrScripted)
		b.requireEvents("FailedPostStartHook", "Killing")
		require.Equal(b, "PostStartHook failed", b.events.All()[0].Message)
		require.Equal(b, v1.EventTypeWarning, b.events.All()[0].Type)
		require.Equal(b, "FailedPostStartHook", b.events.All()[1].Message)
		b.requireStop("app", 30, 0)
		<-b.rt.Exited("app")
	})
}

// A panic in a postStart hook counts as its failure, and kills the container.
func TestPanickingPostStartHasFailed(t *testing.T) {
	inBubble(t, graceSeconds(30), func(b *testBed) {
		b.addPostStart(scriptedExec(), lifecycletest.Script{})
		require.ErrorContains(b, b.PostStart(b.quietContext(), b.pod, containerNamed("app")), "the hook panicked: boom")
		b.requireEvents("FailedPostStartHook", "Killing")
	}, withHooks(func(context.Context) error { panic("boom") }))
}

// The container exits during a postStart sleep. The sleep ends at once and has not failed.
func TestPostStartSleepEndsWithItsContainer(t *testing.T) {
	inBubble(t, graceSeconds(30), func(b *testBed) {
		b.addPostStart(sleepHandler(20), lifecycletest.Script{ExitAfter: 2 * time.Second})
		require.NoError(b, b.PostStart(b.Context(), b.pod, containerNamed("app")))
		require.Equal(b, 2*time.Second, b.elapsed())
		require.Empty(b, b.events.All())
	})
}

// A postStart hook continues during the termination, and ends with the grace period (KEP-4438).
func TestPostStartEndsWithTheGrace(t *testing.T) {
	for name, begin := range map[string]bool{"started before": false, "started during": true} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, graceSeconds(10), func(b *testBed) {
				b.addPostStart(scriptedExec(), lifecycletest.Script{Exec: commandTaking(time.Hour), IgnoreTerm: true})
				b.pod.Spec.Containers[0].Lifecycle.PreStop = sleepHandler(60) // it is stopped after its grace
				terminate := func() { b.Terminate(b.Context(), b.pod, lifecycle.Request{}) }
				if begin {
					terminate()
				}
				var wg sync.WaitGroup
				wg.Go(func() {
					err := b.PostStart(b.Context(), b.pod, containerNamed("app"))
					require.ErrorIs(b, err, lifecycle.CauseGraceSpent)
					require.Equal(b, 10*time.Second, b.elapsed())
				})
				synctest.Wait()
				if !begin {
					terminate()
				}
				wg.Wait()
				b.killPod()
				require.Len(b, b.rt.Stops(), 1)
				b.requireEvents("Killing") // no FailedPostStartHook
			})
		})
	}
}

// Close cancels a postStart hook. The container has done nothing wrong, so it is not killed.
func TestCloseEndsPostStartWithoutAKill(t *testing.T) {
	inBubble(t, graceSeconds(10), func(b *testBed) {
		b.addPostStart(scriptedExec(), lifecycletest.Script{Exec: commandTaking(time.Hour)})
		var wg sync.WaitGroup
		wg.Go(func() {
			require.ErrorIs(b, b.PostStart(b.Context(), b.pod, containerNamed("app")), lifecycle.ErrClosed)
		})
		synctest.Wait()
		require.NoError(b, b.Close(b.Context()))
		wg.Wait()
		require.Empty(b, b.events.All())
		require.ErrorIs(b, b.PostStart(b.Context(), b.pod, containerNamed("app")), lifecycle.ErrClosed)
	})
}

// A cancelled postStart hook has not failed, whatever error it returns: there is no FailedPostStartHook event
// and no additional stop. It is cancelled by the stop of its container or by Close, and PostStart then returns
// its error.
func TestCancelledPostStartHasNotFailed(t *testing.T) {
	failsWhenCancelled := withHooks(func(ctx context.Context) error { <-ctx.Done(); return errors.New("exit status 143") })
	for name, end := range map[string]func(*testBed){
		"with its agent": func(b *testBed) { require.NoError(b, b.Close(b.Context())) },
		"with its pod":   func(b *testBed) { b.killPod() },
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, graceSeconds(10), func(b *testBed) {
				b.addPostStart(scriptedExec(), lifecycletest.Script{ExitAfterTerm: 3 * time.Second})
				var wg sync.WaitGroup
				wg.Go(func() {
					require.ErrorContains(b, b.PostStart(b.Context(), b.pod, containerNamed("app")), "exit status 143")
					require.LessOrEqual(b, b.elapsed(), 3*time.Second, "it ends with its container's stop")
				})
				synctest.Wait()
				end(b)
				wg.Wait()
				for _, event := range b.events.All() {
					require.Equal(b, "Killing", event.Reason)
				}
				require.LessOrEqual(b, len(b.rt.Stops()), 1)
			}, failsWhenCancelled)
		})
	}
	// A sleep is also cancelled when its container exits. PostStart then returns no error.
	inBubble(t, graceSeconds(10), func(b *testBed) {
		b.addPostStart(sleepHandler(20), lifecycletest.Script{ExitAfter: time.Second})
		require.NoError(b, b.PostStart(b.Context(), b.pod, containerNamed("app")))
		require.Empty(b, b.events.All())
	}, failsWhenCancelled)
}

// An agent may cancel the context of PostStart before it calls Terminate.
func TestPostStartOfATerminatingPodHasNotFailed(t *testing.T) {
	inBubble(t, graceSeconds(10), func(b *testBed) {
		b.addPostStart(scriptedExec(), lifecycletest.Script{Exec: commandTaking(time.Hour), ExitAfterTerm: 3 * time.Second})
		ctx, cancel := context.WithCancel(b.Context())
		var wg sync.WaitGroup
		wg.Go(func() { require.ErrorIs(b, b.PostStart(ctx, b.pod, containerNamed("app")), context.Canceled) })
		synctest.Wait()
		termination := b.Terminate(b.Context(), b.pod, lifecycle.Request{})
		cancel()
		wg.Wait()
		<-termination.Done()
		b.requireEvents("Killing")
	})
}

// PostStart is called inside Start and is still running when the pod is terminated. The grace period ends
// it.
func TestPostStartHookThatOutlivesItsStartEndsAtTheDeadline(t *testing.T) {
	inBubble(t, graceSeconds(5), func(b *testBed) {
		b.addStopped("app")
		b.pod.Spec.Containers[0].Lifecycle = &v1.Lifecycle{PostStart: scriptedExec(), PreStop: scriptedExec()} // it is stopped after its grace
		var wg sync.WaitGroup
		require.NoError(b, b.Start(b.Context(), b.pod, "app", func(context.Context) error {
			b.rt.Start(b.pod, "app", "app", lifecycletest.Script{IgnoreTerm: true})
			wg.Go(func() {
				require.ErrorIs(b, b.PostStart(b.Context(), b.pod, containerNamed("app")), lifecycle.CauseGraceSpent)
				require.Equal(b, 5*time.Second, b.elapsed())
			})
			synctest.Wait()
			return nil
		}))
		b.killPod()
		wg.Wait()
	}, withHooks(func(ctx context.Context) error { <-ctx.Done(); return context.Cause(ctx) }))
}

// A postStart hook fails at 2 s, while KillContainer has been stopping the container since 1 s. No second
// kill, and no event that blames the hook.
func TestPostStartFailureDuringAKillCausesNoSecondKill(t *testing.T) {
	inBubble(t, graceSeconds(30), func(b *testBed) {
		b.addPostStart(scriptedExec(), lifecycletest.Script{ExitAfterTerm: 5 * time.Second})
		var wg sync.WaitGroup
		wg.Go(func() { require.ErrorContains(b, b.PostStart(b.Context(), b.pod, containerNamed("app")), "sorry") })
		<-time.After(time.Second)
		_, err := b.KillContainer(b.Context(), b.pod, containerNamed("app"), lifecycle.ContainerRequest{})
		require.NoError(b, err)
		wg.Wait()
		b.requireEvents("Killing")
	}, withHooks(func(context.Context) error { <-time.After(2 * time.Second); return errors.New("sorry") }))
}

// A hook that ends with the caller's context has not failed: no kill, no event.
func TestCallersContextEndsAPostStartHook(t *testing.T) {
	inBubble(t, graceSeconds(30), func(b *testBed) {
		b.addPostStart(scriptedExec(), lifecycletest.Script{Exec: commandTaking(10 * time.Second)})
		ctx, cancel := context.WithTimeout(b.Context(), time.Second)
		defer cancel()
		require.ErrorIs(b, b.PostStart(ctx, b.pod, containerNamed("app")), context.DeadlineExceeded)
		require.Empty(b, b.rt.Stops())
		require.Empty(b, b.events.All())
	})
}
