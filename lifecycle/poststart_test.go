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

// A postStart hook of an hour begins before or during the termination. It continues during the termination, and
// is cancelled at the end of the grace period (KEP-4438). That is not a failure: there is no FailedPostStartHook
// event, and no second kill.
func TestPostStartEndsWithTheGrace(t *testing.T) {
	for name, isDuring := range map[string]bool{"started before": false, "started during": true} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, graceSeconds(10), func(b *testBed) {
				b.addPostStart(scriptedExec(), lifecycletest.Script{Exec: commandTaking(time.Hour), IgnoreTerm: true})
				b.pod.Spec.Containers[0].Lifecycle.PreStop = sleepHandler(60) // so that StopContainer is called only at the deadline
				terminate := func() { b.Terminate(b.Context(), b.pod, lifecycle.Request{}) }
				if isDuring {
					terminate()
				}
				var wg sync.WaitGroup
				wg.Go(func() {
					err := b.PostStart(b.Context(), b.pod, containerNamed("app"))
					require.ErrorIs(b, err, lifecycle.CauseGraceSpent)
					require.Equal(b, 10*time.Second, b.elapsed())
				})
				synctest.Wait()
				if !isDuring {
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

// An agent terminates a pod and then cancels the context of a PostStart in progress. PostStart returns that
// error; there is no FailedPostStartHook event.
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
		b.pod.Spec.Containers[0].Lifecycle = &v1.Lifecycle{PostStart: scriptedExec(), PreStop: scriptedExec()} // PreStop: so that StopContainer is called only at the deadline
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
