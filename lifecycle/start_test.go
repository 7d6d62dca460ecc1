//go:build go1.25

package lifecycle_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kubegrace/kubegrace/lifecycle"
	"github.com/kubegrace/kubegrace/lifecycle/lifecycletest"
)

// A termination cancels a start in progress. The start function then returns an error or panics, but may have started its
// container. The runtime's list decides: a container that runs is stopped; if none runs, the container is NotFound. Start returns
// ErrTerminating and the error of the start function.
func TestTerminationCancelsAStart(t *testing.T) {
	pullErr := errors.New("pull cancelled")
	for name, test := range map[string]struct {
		runs   bool // the start function has started the container
		panics bool // the start function panics instead of returning an error
		want   lifecycle.Outcome
	}{
		"it fails, and nothing runs":        {want: lifecycle.OutcomeNotFound},
		"it fails, but its container runs":  {runs: true, want: lifecycle.OutcomeGraceful},
		"it panics, and nothing runs":       {panics: true, want: lifecycle.OutcomeNotFound},
		"it panics, but its container runs": {panics: true, runs: true, want: lifecycle.OutcomeGraceful},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, graceSeconds(30), func(b *testBed) {
				b.addToSpec("app")
				started := startCall(func() error {
					return b.Start(b.quietContext(), b.pod, "app", func(ctx context.Context) error {
						<-ctx.Done()
						require.Equal(b, lifecycle.ErrTerminating, context.Cause(ctx))
						if test.runs {
							b.rt.Start(b.pod, "app", "1", lifecycletest.Script{})
						}
						if test.panics {
							panic("boom")
						}
						return pullErr
					})
				})
				require.Equal(b, test.want, b.killPod().Outcome())
				require.Zero(b, b.elapsed())
				err := started()
				require.ErrorIs(b, err, lifecycle.ErrTerminating)
				if test.panics {
					require.ErrorContains(b, err, "the start panicked: boom")
				} else {
					require.ErrorIs(b, err, pullErr)
				}
			})
		})
	}
}

// A termination cancels a call of Start, which then returns. Each list of containers fails until the termination gives up, so
// the container may be running: its outcome is RuntimeStuck, and its error is that of the list.
func TestACancelledStartIsStuckIfNoListSucceeds(t *testing.T) {
	inBubble(t, graceSeconds(1), func(b *testBed) {
		b.addToSpec("app")
		started := startCall(func() error {
			return b.Start(b.quietContext(), b.pod, "app", func(ctx context.Context) error {
				<-ctx.Done()
				return context.Cause(ctx)
			})
		})
		b.rt.SetLists(lifecycletest.Lists{Err: lifecycletest.ErrAway})
		result, err := b.KillPod(b.quietContext(), b.pod, lifecycle.Request{})
		require.Error(b, started())
		require.Equal(b, lifecycle.OutcomeRuntimeStuck, result.Outcome())
		require.EqualError(b, err, `failed to stop container "app": the runtime has not listed the pod's containers: the runtime is unavailable`)
	})
}
