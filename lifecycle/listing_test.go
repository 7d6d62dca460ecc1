//go:build go1.25

package lifecycle_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/lifecycle"
	"github.com/kubegrace/kubegrace/lifecycle/lifecycletest"
)

// The runtime lists nothing of the pod. Each container of the spec is NotFound, and nothing is stopped or
// recorded.
func TestPodWithoutListedContainersIsNotFound(t *testing.T) {
	inBubble(t, graceSeconds(30), func(b *testBed) {
		b.addStopped("app", "web")
		b.rt.Start(&v1.Pod{}, "app", "of-another-pod", lifecycletest.Script{})
		require.Equal(b, lifecycle.Result{GracePeriodSeconds: 30, Containers: []lifecycle.ContainerResult{
			{Name: "app", Phase: lifecycle.PhaseEnded, Outcome: lifecycle.OutcomeNotFound, GrantedSeconds: 30},
			{Name: "web", Phase: lifecycle.PhaseEnded, Outcome: lifecycle.OutcomeNotFound, GrantedSeconds: 30},
		}}, b.killPod())
		require.Empty(b, b.rt.Stops())
		require.Empty(b, b.events.All())
	})
}

// A container of the spec that does not run has no result next to one that does.
func TestOnlyListedContainersHaveResults(t *testing.T) {
	inBubble(t, graceSeconds(30), func(b *testBed) {
		b.addStopped("never")
		b.addMain("app", nil, lifecycletest.Script{})
		result := b.killPod()
		require.Equal(b, lifecycle.OutcomeGraceful, result.Outcome())
		require.Len(b, result.Containers, 1)
	})
}

// A list that fails, hangs or is late is repeated.
func TestFailedListDoesNotMeanThatNothingIsRunning(t *testing.T) {
	for name, lists := range map[string]lifecycletest.Lists{
		"it fails":                         {Err: lifecycletest.ErrScripted},
		"it hangs":                         {Hang: true},
		"it hangs and ignores its context": {HangIgnoresContext: true},
		"it takes longer than it may":      {Takes: time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, graceSeconds(60), func(b *testBed) {
				b.addMain("app", scriptedExec(), lifecycletest.Script{ExitAfterTerm: 2 * time.Second})
				b.rt.SetLists(lists)
				termination := b.Terminate(b.quietContext(), b.pod, lifecycle.Request{})
				b.sleepUntil(10 * time.Second)
				require.Empty(b, termination.Result().Containers)
				b.rt.SetLists(lifecycletest.Lists{})
				result, err := termination.Wait(b.Context())
				require.NoError(b, err)
				require.Equal(b, lifecycle.OutcomeGraceful, result.Outcome())
				require.Len(b, b.rt.Execs(), 1)
				require.LessOrEqual(b, b.elapsed(), 18*time.Second)
			})
		})
	}
}

// No list arrives until GiveUpAfter past the deadline. Then every container of the spec may be running, so
// all are RuntimeStuck. A later termination works again.
func TestContainersAreStuckIfListsFailUntilGiveUp(t *testing.T) {
	for name, lists := range map[string]lifecycletest.Lists{"it fails": {Err: lifecycletest.ErrScripted}, "it hangs": {Hang: true}} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, graceSeconds(10), func(b *testBed) {
				b.addMain("app", nil, lifecycletest.Script{})
				b.addStopped("web")
				b.rt.SetLists(lists)
				result, err := b.KillPod(b.quietContext(), b.pod, lifecycle.Request{})
				require.ErrorContains(b, err, "the runtime has not listed the pod's containers")
				require.Len(b, result.Containers, 2)
				for _, c := range result.Containers {
					require.Equal(b, lifecycle.OutcomeRuntimeStuck, c.Outcome)
				}
				require.InDelta(b, (10*time.Second + lifecycle.DefaultGiveUpAfter).Seconds(), b.elapsed().Seconds(), 6, "the list in progress times out")
				b.rt.SetLists(lifecycletest.Lists{})
				require.Equal(b, lifecycle.OutcomeGraceful, b.killPod().Outcome())
			})
		})
	}
}

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

// An ID with the prefix that IDs in a pod's status have is rejected everywhere.
func TestPrefixedIDIsRejected(t *testing.T) {
	const text = `container "app": ID: must not have the prefix "containerd://", is "containerd://x"`
	inBubble(t, graceSeconds(10), func(b *testBed) {
		prefixed := lifecycle.Container{Name: "app", ID: "containerd://x"}
		b.addStopped("app")
		_, err := b.KillPod(b.Context(), b.pod, lifecycle.Request{Containers: []lifecycle.Container{prefixed}})
		require.ErrorContains(b, err, text)
		_, err = b.KillContainer(b.Context(), b.pod, prefixed, lifecycle.ContainerRequest{})
		require.ErrorContains(b, err, text)
		b.pod.Spec.Containers[0].Lifecycle = &v1.Lifecycle{PostStart: scriptedExec()}
		require.ErrorContains(b, b.PostStart(b.Context(), b.pod, prefixed), text)

		b.rt.Start(b.pod, "app", "containerd://x", lifecycletest.Script{})
		result, err := b.KillPod(b.quietContext(), b.pod, lifecycle.Request{})
		require.ErrorContains(b, err, "the runtime's list: "+text)
		require.Equal(b, lifecycle.OutcomeRuntimeStuck, result.Outcome())
		require.Empty(b, b.rt.Stops())
	}, giveUpAfterOneSecond)
}

// A container without an ID is an error of the request, and no termination begins.
func TestEmptyIDIsRejected(t *testing.T) {
	inBubble(t, graceSeconds(10), func(b *testBed) {
		nameless := lifecycle.Container{Name: "app"}
		_, err := b.KillPod(b.Context(), b.pod, lifecycle.Request{Containers: []lifecycle.Container{nameless}})
		require.ErrorContains(b, err, `failed to terminate pod "pod_ns(uid)": Containers: container "app": ID: must be set`)
		_, err = b.KillContainer(b.Context(), b.pod, nameless, lifecycle.ContainerRequest{})
		require.ErrorContains(b, err, `container "app": ID: must be set`)
	})
}

// Every method gets a nil pod: an error or no effect, but no panic.
func TestNilPodIsAnError(t *testing.T) {
	inBubble(t, graceSeconds(10), func(b *testBed) {
		result, err := b.KillPod(b.Context(), nil, lifecycle.Request{})
		require.ErrorContains(b, err, "the pod is nil")
		require.Equal(b, lifecycle.OutcomeRuntimeStuck, result.Outcome())
		_, err = b.KillContainer(b.Context(), nil, containerNamed("app"), lifecycle.ContainerRequest{})
		require.ErrorContains(b, err, "the pod is nil")
		_, found := b.Termination(nil)
		require.False(b, found)
		b.Forget(nil)
	})
}

// KillContainer with a wrong ID stops nothing, and is not Graceful.
func TestKillContainerOfAnUnlistedRunIsNotFound(t *testing.T) {
	inBubble(t, graceSeconds(10), func(b *testBed) {
		app := b.addMain("app", nil, lifecycletest.Script{})
		result, err := b.KillContainer(b.Context(), b.pod, containerNamed("wrong"), lifecycle.ContainerRequest{})
		require.NoError(b, err)
		require.Equal(b, lifecycle.OutcomeNotFound, result.Outcome)
		app.Began = app.Began.Add(-time.Second)
		result, err = b.KillContainer(b.Context(), b.pod, app, lifecycle.ContainerRequest{})
		require.NoError(b, err)
		require.Equal(b, lifecycle.OutcomeNotFound, result.Outcome, "an earlier run with this ID")
		require.Empty(b, b.rt.Stops())
		synctest.Wait()
		require.Zero(b, b.Pods())
	})
}
