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

// A RuntimeFunc cannot list, so a KillPod whose request does not name the containers fails at once.
func TestRuntimeThatCannotListNeedsContainers(t *testing.T) {
	inBubble(t, graceSeconds(10), func(b *testBed) {
		b.addToSpec("app")
		result, err := b.KillPod(b.quietContext(), b.pod, lifecycle.Request{})
		require.ErrorIs(b, err, errors.ErrUnsupported)
		require.Equal(b, lifecycle.OutcomeRuntimeStuck, result.Outcome())
		require.Less(b, b.elapsed(), time.Second)
	}, func(o *lifecycle.TerminatorOptions) {
		o.Runtime = lifecycle.RuntimeFunc(func(context.Context, string, int64) error { return nil })
	})
}

// A RuntimeFunc cannot list, but a StopContainer call that returns nil proves that its container has ended. So KillContainer, and
// a KillPod whose request names the container, succeed after one call each.
func TestRuntimeThatCannotListProvesAnEndByItsStop(t *testing.T) {
	var stops int // calls of StopContainer
	inBubble(t, graceSeconds(10), func(b *testBed) {
		b.addToSpec("app")
		result, err := b.KillPod(b.Context(), b.pod, lifecycle.Request{Containers: []lifecycle.Container{containerNamed("app")}})
		require.NoError(b, err)
		require.Equal(b, lifecycle.OutcomeGraceful, result.Outcome())
		require.Equal(b, 1, stops)

		killed, err := b.KillContainer(b.Context(), b.pod, containerNamed("app"), lifecycle.ContainerRequest{})
		require.NoError(b, err)
		require.Equal(b, lifecycle.OutcomeGraceful, killed.Outcome)
		require.Equal(b, 2, stops)
	}, func(o *lifecycle.TerminatorOptions) {
		o.Runtime = lifecycle.RuntimeFunc(func(context.Context, string, int64) error { stops++; return nil })
	})
}

// A container has been killed and started again with its old ID. Requests that name its first run do not stop the second: for
// them the container is NotFound. A termination of the whole pod stops the second run, once.
func TestRequestForAnEarlierRunStopsNothing(t *testing.T) {
	inBubble(t, graceSeconds(60), func(b *testBed) {
		firstRun := b.addMain("app", lifecycletest.Script{})
		_, err := b.KillContainer(b.Context(), b.pod, firstRun, lifecycle.ContainerRequest{})
		require.NoError(b, err)
		b.sleepUntil(time.Second)
		secondRun := b.rt.Start(b.pod, "app", "app", lifecycletest.Script{ExitAfterTerm: 10 * time.Second})

		// KillContainer for the first run.
		killed, err := b.KillContainer(b.Context(), b.pod, firstRun, lifecycle.ContainerRequest{})
		require.NoError(b, err)
		require.Equal(b, lifecycle.OutcomeNotFound, killed.Outcome)

		// A termination of the pod, and a second request for the first run.
		termination := b.Terminate(b.Context(), b.pod, lifecycle.Request{})
		b.sleepUntil(2 * time.Second)
		b.Terminate(b.Context(), b.pod, lifecycle.Request{Containers: []lifecycle.Container{firstRun}})
		result, err := termination.Wait(b.Context())
		require.NoError(b, err)
		require.Len(b, result.Containers, 2)
		require.Equal(b, lifecycle.OutcomeNotFound, result.Containers[0].Outcome, "the first run")
		require.Equal(b, secondRun.Began, result.Containers[1].Began)
		require.Equal(b, lifecycle.OutcomeGraceful, result.Containers[1].Outcome, "the second run")
		require.Equal(b, []stopCall{
			{timeoutSeconds: 60, atMilliseconds: 0},    // of the first run
			{timeoutSeconds: 60, atMilliseconds: 1000}, // of the second, by the termination
		}, b.stopCalls("app"))
	})
}

// The runtime lists a container without Began. KillContainer is called for this container with Began set. It must stop the listed
// container, which has the same ID: a container that is listed is never NotFound.
func TestKillContainerFindsARunWhoseBeganIsNotListed(t *testing.T) {
	inBubble(t, graceSeconds(10), func(b *testBed) {
		b.addToSpec("app")
		withBegan := lifecycle.Container{Name: "app", ID: "app", Began: time.Now()}
		killed, err := b.KillContainer(b.Context(), b.pod, withBegan, lifecycle.ContainerRequest{})
		require.NoError(b, err)
		require.Equal(b, lifecycle.OutcomeGraceful, killed.Outcome)
	}, func(o *lifecycle.TerminatorOptions) { o.Runtime = runtimeRunning(containerNamed("app")) })
}
