//go:build go1.25

package lifecycle_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kubegrace/kubegrace/lifecycle"
	"github.com/kubegrace/kubegrace/lifecycle/lifecycletest"
)

// A runtime that returns before its container has ended is not believed alone: the container has
// ended when the ExitWatcher says it too. It is no failure.
func TestAnEndIsNotBelievedFromTheRuntimeAlone(t *testing.T) {
	for name, answer := range map[string]error{"nil": nil, "not found": lifecycle.ErrContainerNotFound} {
		t.Run(name, func(t *testing.T) {
			inLife(t, func(b *lifeBed) {
				b.runs("app", "a", lifecycletest.Script{ExitAfterTerm: 20500 * time.Millisecond})
				b.runs("proxy", "p", lifecycletest.Script{})
				outcome, err := b.kill(lifecycle.Request{})
				require.NoError(b, err)
				require.True(b, hasEnded(outcome), outcome)
				require.Equal(b, 20500*time.Millisecond, time.Since(b.began))
				for _, s := range b.rt.Stops() {
					require.False(b, s.ID == "p" && s.At.Sub(b.began) < 20500*time.Millisecond, "the sidecar's turn")
				}
				require.Len(b, b.events.All(), 2, "a Killing event for each")
				require.Less(b, len(b.rt.Stops()), 25, "it is asked again each second")
				b.requireHooks("a", "p")
			}, watched, func(b *lifeBed, o *lifecycle.TerminatorOptions) {
				o.Runtime = lifecycle.RuntimeFunc(func(ctx context.Context, id string, seconds int64) error {
					if _, exited := b.rt.ExitCode(id); !exited {
						go func() { _ = b.rt.StopContainer(ctx, id, seconds) }()
					}
					return answer
				})
			})
		})
	}
}

// A runtime that says that it had to kill is believed, whatever the time.
func TestErrKilledIsBelievedAtAnyTime(t *testing.T) {
	inLife(t, func(b *lifeBed) {
		c := lifecycle.Container{Name: "app", ID: "c1"}
		r, err := b.life.KillContainer(b.ctx, c, lifecycle.ContainerRequest{})
		require.NoError(b, err)
		require.Equal(b, lifecycle.GraceExceeded, r.Outcome)
		require.Zero(b, time.Since(b.began))
	}, func(_ *lifeBed, o *lifecycle.TerminatorOptions) {
		o.Runtime = lifecycle.RuntimeFunc(func(context.Context, string, int64) error { return lifecycle.ErrKilled })
	})
}

// A watcher that does not know a container before its stop is asked again after it.
func TestAWatcherThatLearnsOfAContainerLater(t *testing.T) {
	asked := 0
	inBubble(t, 30, func(b *bed) {
		b.addMain("app", nil, lifecycletest.Script{ExitAfterTerm: time.Second})
		b.kill()
		require.Equal(b, 5*time.Second, b.at())
	}, func(o *lifecycle.TerminatorOptions) {
		exited := make(chan struct{})
		time.AfterFunc(5*time.Second, func() { close(exited) })
		o.Exits = exitFunc(func(string) <-chan struct{} {
			if asked++; asked == 1 {
				return nil
			}
			return exited
		})
	})
}

// An answer of the watcher that comes late is of the container that had the ID before.
func TestALateAnswerIsOfTheFormerContainer(t *testing.T) {
	asked := 0
	inBubble(t, 30, func(b *bed) {
		for range 2 {
			require.NoError(b, b.startAfter("app", 0, lifecycletest.Script{ExitAfterTerm: time.Second})())
			<-time.After(time.Second)
		}
		<-time.After(5 * time.Second)
		_, err := b.KillPod(b.Context(), b.pod, lifecycle.Request{})
		require.NoError(b, err)
		require.Len(b, b.rt.Stops(), 1)
	}, func(o *lifecycle.TerminatorOptions) {
		former, exited := make(chan struct{}), make(chan struct{})
		close(former)
		time.AfterFunc(8*time.Second, func() { close(exited) })
		o.Exits = exitFunc(func(string) <-chan struct{} {
			if asked++; asked > 1 {
				return exited
			}
			<-time.After(3 * time.Second)
			return former
		})
	})
}

// The watcher is asked once about a container that runs, however often it is named.
func TestTheWatcherIsAskedOnce(t *testing.T) {
	asked := 0
	inLife(t, func(b *lifeBed) {
		b.runs("app", "a", lifecycletest.Script{ExitAfterTerm: 5 * time.Second})
		termination := b.life.Terminate(b.ctx, lifecycle.Request{})
		for range 3 {
			b.life.Terminate(b.ctx, lifecycle.Request{Containers: only("app", "a"), Complete: true})
		}
		_, err := termination.Wait(b.ctx)
		require.NoError(b, err)
		require.Equal(b, 1, asked)
	}, func(b *lifeBed, o *lifecycle.TerminatorOptions) {
		o.Exits = exitFunc(func(id string) <-chan struct{} {
			asked++
			return b.rt.Exited(id)
		})
	})
}
