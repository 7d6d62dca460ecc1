//go:build go1.25

package lifecycle_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kubegrace/kubegrace/lifecycle"
	"github.com/kubegrace/kubegrace/lifecycle/lifecycletest"
)

// A RuntimeFunc cannot list. A request without Containers fails at once; one with them works, because
// StopContainer is trusted.
func TestRuntimeThatCannotListNeedsContainers(t *testing.T) {
	stops := 0
	inBubble(t, graceSeconds(10), func(b *testBed) {
		b.addStopped("app")
		result, err := b.KillPod(b.quietContext(), b.pod, lifecycle.Request{})
		require.ErrorIs(b, err, errors.ErrUnsupported)
		require.Equal(b, lifecycle.OutcomeRuntimeStuck, result.Outcome())
		require.Less(b, b.elapsed(), time.Second)
		result, err = b.KillPod(b.Context(), b.pod, lifecycle.Request{Containers: []lifecycle.Container{containerNamed("app")}})
		require.NoError(b, err)
		require.Equal(b, lifecycle.OutcomeGraceful, result.Outcome())
		killed, err := b.KillContainer(b.Context(), b.pod, containerNamed("app"), lifecycle.ContainerRequest{})
		require.NoError(b, err)
		require.Equal(b, lifecycle.OutcomeGraceful, killed.Outcome, "its StopContainer is trusted")
		require.Equal(b, 2, stops)
	}, func(o *lifecycle.TerminatorOptions) {
		stops = 0
		o.Runtime = lifecycle.RuntimeFunc(func(context.Context, string, int64) error { stops++; return nil })
	})
}

// Neither an exact request nor KillContainer for an earlier run of an ID stops the current run.
func TestRequestForAnEarlierRunStopsNothing(t *testing.T) {
	inBubble(t, graceSeconds(60), func(b *testBed) {
		first := b.addMain("app", nil, lifecycletest.Script{})
		_, err := b.KillContainer(b.Context(), b.pod, first, lifecycle.ContainerRequest{})
		require.NoError(b, err)
		b.sleepUntil(time.Second)
		second := b.rt.Start(b.pod, "app", "app", lifecycletest.Script{ExitAfterTerm: 10 * time.Second})
		killed, err := b.KillContainer(b.Context(), b.pod, first, lifecycle.ContainerRequest{})
		require.NoError(b, err)
		require.Equal(b, lifecycle.OutcomeNotFound, killed.Outcome)
		termination := b.Terminate(b.Context(), b.pod, lifecycle.Request{})
		b.sleepUntil(2 * time.Second)
		b.Terminate(b.Context(), b.pod, lifecycle.Request{Containers: []lifecycle.Container{first}})
		result, err := termination.Wait(b.Context())
		require.NoError(b, err)
		require.Equal(b, []stopCall{{60, 0}, {60, 1000}}, b.stopCalls("app"))
		require.Len(b, result.Containers, 2)
		require.Equal(b, lifecycle.OutcomeNotFound, result.Containers[0].Outcome)
		require.Equal(b, second.Began, result.Containers[1].Began)
		require.Equal(b, lifecycle.OutcomeGraceful, result.Containers[1].Outcome)
	})
}
