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

// A RuntimeFunc cannot list. A request without Containers fails at once. A request with Containers succeeds, and so does
// KillContainer: a StopContainer call that returns nil proves that the container has ended.
func TestRuntimeThatCannotListNeedsContainers(t *testing.T) {
	var stops int // calls of StopContainer
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
		require.Equal(b, lifecycle.OutcomeGraceful, killed.Outcome, "StopContainer has returned nil")
		require.Equal(b, 2, stops)
	}, func(o *lifecycle.TerminatorOptions) {
		stops = 0
		o.Runtime = lifecycle.RuntimeFunc(func(context.Context, string, int64) error { stops++; return nil })
	})
}

// A container was killed and started again with its old ID. Then a KillContainer and a Terminate name its first run. The first
// run has ended, so it is NotFound. The second run has the same ID, but must not be stopped for these requests: only a
// termination of the whole pod stops it, once.
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
		require.Equal(b, []stopCall{
			{timeoutSeconds: 60, atMilliseconds: 0},    // of the first run
			{timeoutSeconds: 60, atMilliseconds: 1000}, // of the second, by the termination
		}, b.stopCalls("app"))
		require.Len(b, result.Containers, 2)
		require.Equal(b, lifecycle.OutcomeNotFound, result.Containers[0].Outcome)
		require.Equal(b, second.Began, result.Containers[1].Began)
		require.Equal(b, lifecycle.OutcomeGraceful, result.Containers[1].Outcome)
	})
}

// The runtime's list does not say when a run began, but the container that KillContainer gets does (Began). KillContainer must
// stop the listed container with the same ID: a container that is listed is never NotFound.
func TestKillContainerFindsARunWhoseBeganIsNotListed(t *testing.T) {
	listed := containerNamed("app")
	m := newMisused(listed)
	inBubble(t, graceSeconds(10), func(b *testBed) {
		b.addStopped("app")
		listed.Began = time.Now()
		killed, err := b.KillContainer(b.Context(), b.pod, listed, lifecycle.ContainerRequest{})
		require.NoError(b, err)
		require.Equal(b, lifecycle.OutcomeGraceful, killed.Outcome)
	}, func(o *lifecycle.TerminatorOptions) { o.Runtime = m })
}
