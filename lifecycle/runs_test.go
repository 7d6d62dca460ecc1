//go:build go1.25

package lifecycle_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kubegrace/kubegrace/lifecycle"
	"github.com/kubegrace/kubegrace/lifecycle/lifecycletest"
)

// If an ID is reused before KillContainer returns, the new run is not stopped with the old one, and has
// its own hook when it is killed.
func TestIDReusedDuringAKillIsANewRun(t *testing.T) {
	inBubble(t, graceSeconds(60), func(b *testBed) {
		first := b.addMain("app", scriptedExec(), lifecycletest.Script{StopReturnsLate: 10 * time.Second})
		killed := startCall(func() error {
			_, err := b.KillContainer(b.Context(), b.pod, first, lifecycle.ContainerRequest{})
			return err
		})
		b.sleepUntil(5 * time.Second)
		second := b.rt.Start(b.pod, "app", "app", lifecycletest.Script{})
		require.NoError(b, killed())
		require.Len(b, b.rt.Exits(), 1, "the new run keeps running")
		require.Len(b, b.rt.Execs(), 1)

		result, err := b.KillContainer(b.Context(), b.pod, second, lifecycle.ContainerRequest{})
		require.NoError(b, err)
		require.Equal(b, lifecycle.HookCompleted, result.Hook.Outcome)
		require.Equal(b, lifecycle.OutcomeGraceful, result.Outcome)
		require.Len(b, b.rt.Execs(), 2)
		require.Len(b, b.rt.Exits(), 2)
	})
}

// A sidecar exits and is started again under the same ID. The result has both runs, with different Began.
func TestTwoRunsWithOneIDHaveTwoResults(t *testing.T) {
	inBubble(t, graceSeconds(60), func(b *testBed) {
		b.addSidecar("proxy", nil, lifecycletest.Script{ExitAfter: time.Second})
		b.addMain("app", nil, lifecycletest.Script{ExitAfterTerm: 5 * time.Second})
		termination := b.Terminate(b.Context(), b.pod, lifecycle.Request{})
		b.sleepUntil(2 * time.Second)
		require.NoError(b, b.startContainer("proxy", "proxy", lifecycletest.Script{ExitAfterTerm: time.Second}))
		result, err := termination.Wait(b.Context())
		require.NoError(b, err)
		require.Len(b, result.Containers, 3)
		first, second := result.Containers[1], result.Containers[2]
		require.Equal(b, b.start, first.Began)
		require.Equal(b, b.start.Add(2*time.Second), second.Began)
		require.Equal(b, 6*time.Second, b.elapsed(), "the second run is stopped in its turn")
	})
}

// Without Began, a new run with the same ID can be recognized only by a list without that ID in between.
// After one, the container is a new run, with its own hook and grace period.
func TestRunWithoutBeganEndsWhenAListLacksIt(t *testing.T) {
	inBubble(t, graceSeconds(60), func(b *testBed) {
		b.addMain("app", scriptedExec(), lifecycletest.Script{})
		for range 2 {
			result, err := b.KillContainer(b.Context(), b.pod, containerNamed("app"), lifecycle.ContainerRequest{})
			require.NoError(b, err)
			require.Equal(b, lifecycle.HookCompleted, result.Hook.Outcome)
			b.sleepUntil(b.elapsed() + 5*time.Minute)
			b.rt.Start(b.pod, "app", "app", lifecycletest.Script{})
		}
		require.Len(b, b.rt.Execs(), 2)
		require.Equal(b, []stopCall{{60, 0}, {60, 300000}}, b.stopCalls("app"))
	})
}

// A container that is killed without Began and listed with it is one run: its hook runs once.
func TestRunKilledWithoutBeganIsTheListedRun(t *testing.T) {
	inBubble(t, graceSeconds(60), func(b *testBed) {
		b.addMain("app", scriptedExec(), withHookTaking(5*time.Second, lifecycletest.Script{ExitAfterTerm: time.Second}))
		b.rt.SetLists(lifecycletest.Lists{Err: lifecycletest.ErrAway})
		time.AfterFunc(2*time.Second, func() { b.rt.SetLists(lifecycletest.Lists{}) })
		killed := startCall(func() error {
			_, err := b.KillContainer(b.quietContext(), b.pod, containerNamed("app"), lifecycle.ContainerRequest{})
			return err
		})
		b.sleepUntil(3 * time.Second)
		result := b.killPod()
		require.NoError(b, killed())
		require.Len(b, result.Containers, 1)
		require.Len(b, b.rt.Execs(), 1)
		require.Len(b, b.rt.Stops(), 1)
	})
}

// An exact request for an earlier run of an ID does not stop the current run.
func TestExactRequestForAnEarlierRunStopsNothing(t *testing.T) {
	inBubble(t, graceSeconds(60), func(b *testBed) {
		first := b.addMain("app", nil, lifecycletest.Script{})
		_, err := b.KillContainer(b.Context(), b.pod, first, lifecycle.ContainerRequest{})
		require.NoError(b, err)
		b.sleepUntil(time.Second)
		second := b.rt.Start(b.pod, "app", "app", lifecycletest.Script{ExitAfterTerm: 10 * time.Second})
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

// A list requested for another container shows that this one has ended, while its stop waits for the
// next attempt. It is not stopped again, because its ID may belong to another run.
func TestUnlistedContainerIsNotStoppedAgain(t *testing.T) {
	inBubble(t, graceSeconds(60), func(b *testBed) {
		b.addMain("app", nil, lifecycletest.Script{FailStops: 10, ExitAfter: time.Second})
		b.addMain("web", nil, lifecycletest.Script{ExitAfterTerm: 1200 * time.Millisecond})
		result, err := b.KillPod(b.quietContext(), b.pod, lifecycle.Request{})
		require.NoError(b, err)
		require.ErrorIs(b, result.Containers[0].Err, lifecycletest.ErrScripted)
		require.Equal(b, lifecycle.OutcomeGraceful, result.Containers[0].Outcome)
		require.Equal(b, []stopCall{{60, 0}, {60, 100}, {60, 300}, {60, 700}}, b.stopCalls("app"))
	})
}
