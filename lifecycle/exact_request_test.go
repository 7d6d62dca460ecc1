//go:build go1.25

package lifecycle_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/utils/ptr"

	"github.com/kubegrace/kubegrace/lifecycle"
	"github.com/kubegrace/kubegrace/lifecycle/lifecycletest"
)

// exactRequest returns a request for exactly these containers, as a kubelet fork makes it.
func exactRequest(grace *int64, names ...string) lifecycle.Request {
	req := lifecycle.Request{GracePeriodSeconds: grace, Containers: []lifecycle.Container{}}
	for _, name := range names {
		req.Containers = append(req.Containers, containerNamed(name))
	}
	return req
}

// A grace period of 0, as after a sandbox change, runs no hook and gives the minimum of 2 s, as in the
// kubelet.
func TestExactRequestWithGraceZeroSkipsTheHook(t *testing.T) {
	inBubble(t, graceSeconds(30), func(b *testBed) {
		b.addMain("app", scriptedExec(), lifecycletest.Script{IgnoreTerm: true})
		result, err := b.KillPod(b.Context(), b.pod, exactRequest(ptr.To(int64(0)), "app"))
		require.NoError(b, err)
		require.Equal(b, lifecycle.HookSkipped, result.Containers[0].Hook.Outcome)
		require.Empty(b, b.rt.Execs())
		b.requireStop("app", 2, 0)
		require.Equal(b, 2*time.Second, b.elapsed())
	})
}

// Without a grace period, sidecars wait for 2 s, as in the kubelet.
func TestExactRequestWithoutGraceUsesTwoSeconds(t *testing.T) {
	inBubble(t, graceSeconds(0), func(b *testBed) {
		b.pod.Spec.TerminationGracePeriodSeconds = nil
		b.addSidecar("proxy", nil, lifecycletest.Script{})
		b.addMain("app", sleepHandler(10), lifecycletest.Script{})
		result, err := b.KillPod(b.Context(), b.pod, exactRequest(nil, "app", "proxy"))
		require.NoError(b, err)
		require.EqualValues(b, 2, result.GracePeriodSeconds)
		b.requireStop("proxy", 2, 2*time.Second)
	})
}

// The request names app and one that does not exist. Exactly these are stopped, and StopContainer is
// trusted: no list is needed, although lists would fail. A later request without names finds web.
func TestExactRequestTrustsStopContainer(t *testing.T) {
	inBubble(t, graceSeconds(30), func(b *testBed) {
		b.addMain("app", nil, lifecycletest.Script{ExitAfterTerm: time.Second})
		b.addMain("web", nil, lifecycletest.Script{})
		b.rt.SetLists(lifecycletest.Lists{Err: lifecycletest.ErrScripted})
		result, err := b.KillPod(b.Context(), b.pod, exactRequest(nil, "app", "gone"))
		require.NoError(b, err)
		require.Equal(b, lifecycle.OutcomeGraceful, result.Containers[0].Outcome)
		require.Equal(b, lifecycle.OutcomeNotFound, result.Containers[1].Outcome)
		require.Len(b, b.rt.Exits(), 1)
		b.rt.SetLists(lifecycletest.Lists{})
		require.Equal(b, lifecycle.OutcomeGraceful, b.killPod().Outcome())
		require.Len(b, b.rt.Exits(), 2)
	})
}

// An empty list of containers means that nothing is running; nil means that the runtime lists them.
func TestEmptyExactRequestStopsNothing(t *testing.T) {
	inBubble(t, graceSeconds(30), func(b *testBed) {
		b.addMain("app", nil, lifecycletest.Script{})
		result, err := b.KillPod(b.Context(), b.pod, exactRequest(nil))
		require.NoError(b, err)
		require.Equal(b, lifecycle.OutcomeNotFound, result.Outcome())
		require.Empty(b, b.rt.Stops())
	})
}

// A second request at 1 s also names web. It joins the termination in progress, and web gets the rest of
// its grace period.
func TestLaterExactRequestAddsContainers(t *testing.T) {
	inBubble(t, graceSeconds(30), func(b *testBed) {
		b.addMain("app", nil, lifecycletest.Script{ExitAfterTerm: 5 * time.Second})
		b.addMain("web", nil, lifecycletest.Script{})
		termination := b.Terminate(b.Context(), b.pod, exactRequest(nil, "app"))
		b.sleepUntil(time.Second)
		require.Same(b, termination, b.Terminate(b.Context(), b.pod, exactRequest(nil, "app", "web")))
		result, err := termination.Wait(b.Context())
		require.NoError(b, err)
		require.Len(b, result.Containers, 2)
		b.requireStop("web", 29, time.Second)
		require.Len(b, b.rt.Stops(), 2)
	})
}
