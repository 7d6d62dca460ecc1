//go:build go1.25

package podkiller_test

import (
	"context"
	"errors"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/kubegrace/kubegrace/lifecycle"
	"github.com/kubegrace/kubegrace/lifecycle/lifecycletest"
	"github.com/kubegrace/kubegrace/shutdown"
	"github.com/kubegrace/kubegrace/shutdown/podkiller"
	"github.com/kubegrace/kubegrace/shutdown/shutdowntest"
)

// podOnRuntime is a pod with one container in a fake runtime, and its killer.
type podOnRuntime struct {
	*testing.T

	rt     *lifecycletest.Runtime
	pod    *v1.Pod
	killer shutdown.PodKiller
}

// webPod returns the pod web of priority 0, whose spec has this grace period in seconds.
func webPod(graceSeconds int64) *v1.Pod { return shutdowntest.Pod("web", 0, graceSeconds) }

// inBubble runs a test in a synctest bubble, with a pod whose container behaves like script, and a killer
// with Options.Status.
func inBubble(t *testing.T, script lifecycletest.Script, test func(*podOnRuntime)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := &podOnRuntime{T: t, rt: lifecycletest.NewRuntime(), pod: webPod(60)}
		s.rt.Start(s.pod, "web", "id", script)
		terminator, err := lifecycle.NewTerminator(lifecycle.TerminatorOptions{Runtime: s.rt, GiveUpAfter: time.Second})
		require.NoError(t, err)
		s.killer = podkiller.New(terminator, podkiller.Options{Status: s.status})
		test(s)
		require.NoError(t, terminator.Close(t.Context()))
	})
}

// status is an Options.Status that reads the exit code of the container. It is an error of the killer to call it before the
// container has ended.
func (s *podOnRuntime) status(context.Context, *v1.Pod) *v1.PodStatus {
	code, exited := s.rt.ExitCode("id")
	require.True(s, exited, "called after the container has ended")
	return &v1.PodStatus{Phase: v1.PodRunning, ContainerStatuses: []v1.ContainerStatus{{
		Name: "web", ContainerID: "cri://id", State: v1.ContainerState{Terminated: &v1.ContainerStateTerminated{ExitCode: code}},
	}}}
}

// The container ignores SIGTERM, so it is killed at the end of the eviction's 20 s and exits with 137 (128 + 9, the
// number of SIGKILL). The final status has that code, and the phase that the eviction sets.
func TestTheFinalStatusHasTheExitCode(t *testing.T) {
	inBubble(t, lifecycletest.Script{IgnoreTerm: true}, func(s *podOnRuntime) {
		began := time.Now()
		result, err := s.killer.KillPod(s.Context(), s.pod, podkiller.SoftEviction(s.pod, 20, "low"))
		require.NoError(s, err)
		require.Equal(s, "GraceExceeded", result.Outcome)
		require.Equal(s, 20*time.Second, time.Since(began))
		require.EqualValues(s, 137, result.Status.ContainerStatuses[0].State.Terminated.ExitCode)
		require.Equal(s, v1.PodFailed, result.Status.Phase)
		require.Empty(s, s.pod.Status.ContainerStatuses, "the pod is not changed")
	})
}

// The runtime is away for 10 s. The first kill gives up a second after its deadline (GiveUpAfter), and fails. It returns no
// final status, since the pod may run. The second kill comes when the runtime is back, and succeeds.
func TestAFailedKillReturnsNoFinalStatus(t *testing.T) {
	inBubble(t, lifecycletest.Script{}, func(s *podOnRuntime) {
		const fromNow = 0
		s.rt.Away(fromNow, 10*time.Second)
		result, err := s.killer.KillPod(s.Context(), s.pod, podkiller.HardEviction("low"))
		require.ErrorIs(s, err, lifecycletest.ErrAway)
		require.Equal(s, "RuntimeStuck", result.Outcome)
		require.Nil(s, result.Status)

		<-time.After(10 * time.Second) // the runtime is back
		result, err = s.killer.KillPod(s.Context(), s.pod, podkiller.HardEviction("low"))
		require.NoError(s, err)
		require.Equal(s, "Graceful", result.Outcome, "the first kill sent no signal")
		require.Equal(s, v1.PodFailed, result.Status.Phase)
	})
}

// A runtime that cannot list containers needs Options.Containers. The containers that it returns are stopped with the
// grace period of the request, but at least 2 s, or else with that of the pod's spec, 60 s.
func TestARuntimeThatCannotListNeedsOptionsContainers(t *testing.T) {
	var stops []string
	rt := lifecycle.RuntimeFunc(func(_ context.Context, id string, seconds int64) error {
		stops = append(stops, id+" "+strconv.FormatInt(seconds, 10))
		return nil
	})
	listErr := errors.New("failed to read the list")
	failingList := func(context.Context, *v1.Pod) ([]lifecycle.Container, error) { return nil, listErr }
	for name, test := range map[string]struct {
		containers func(context.Context, *v1.Pod) ([]lifecycle.Container, error)
		grace      *int64
		outcome    string
		stops      []string // the ID and the grace period of each container that is stopped
		err        error
	}{
		"Options.Containers is nil":             {outcome: "RuntimeStuck", err: errors.ErrUnsupported},
		"it lists one container":                {containers: listing("id"), outcome: "Graceful", stops: []string{"id 60"}},
		"it lists no container":                 {containers: listing(), outcome: "NotFound"},
		"it fails":                              {containers: failingList, err: listErr},
		"the request has a grace period of 0 s": {containers: listing("id"), grace: ptr.To[int64](0), outcome: "Graceful", stops: []string{"id 2"}},
	} {
		t.Run(name, func(t *testing.T) {
			stops = nil
			terminator, err := lifecycle.NewTerminator(lifecycle.TerminatorOptions{Runtime: rt})
			require.NoError(t, err)
			killer := podkiller.New(terminator, podkiller.Options{Containers: test.containers})
			result, err := killer.KillPod(t.Context(), webPod(60), shutdown.KillRequest{GracePeriodSeconds: test.grace})
			require.ErrorIs(t, err, test.err)
			require.Equal(t, test.outcome, result.Outcome)
			require.Equal(t, test.stops, stops)
			require.NoError(t, terminator.Close(t.Context()))
		})
	}
}

// listing returns an Options.Containers that lists containers with these IDs.
func listing(ids ...string) func(context.Context, *v1.Pod) ([]lifecycle.Container, error) {
	return func(context.Context, *v1.Pod) (containers []lifecycle.Container, _ error) {
		for _, id := range ids {
			containers = append(containers, lifecycle.Container{Name: "web", ID: id})
		}
		return containers, nil
	}
}

// The functions of Options get the context of the kill, and their results are not modified.
func TestTheFunctionsGetTheContextOfTheKill(t *testing.T) {
	type key struct{}
	given := &v1.PodStatus{Phase: v1.PodRunning}
	terminator, err := lifecycle.NewTerminator(lifecycle.TerminatorOptions{Runtime: lifecycletest.NewRuntime()})
	require.NoError(t, err)
	killer := podkiller.New(terminator, podkiller.Options{
		Containers: func(ctx context.Context, _ *v1.Pod) ([]lifecycle.Container, error) {
			require.Equal(t, "kill", ctx.Value(key{}))
			return nil, nil
		},
		Status: func(ctx context.Context, _ *v1.Pod) *v1.PodStatus {
			require.Equal(t, "kill", ctx.Value(key{}))
			return given
		},
	})
	ctx := context.WithValue(t.Context(), key{}, "kill")
	result, err := killer.KillPod(ctx, webPod(30), podkiller.HardEviction("low"))
	require.NoError(t, err)
	require.Equal(t, v1.PodFailed, result.Status.Phase, "set by the eviction")
	require.Equal(t, v1.PodRunning, given.Phase, "the result of Status is not modified")
	require.NoError(t, terminator.Close(t.Context()))
}

// Options.Status returns nil, because the agent has no status of the pod. The result of the kill has no status.
func TestAPodWithoutAStatusHasNoFinalStatus(t *testing.T) {
	terminator, err := lifecycle.NewTerminator(lifecycle.TerminatorOptions{Runtime: lifecycletest.NewRuntime()})
	require.NoError(t, err)
	killer := podkiller.New(terminator, podkiller.Options{Status: func(context.Context, *v1.Pod) *v1.PodStatus { return nil }})
	result, err := killer.KillPod(t.Context(), webPod(30), podkiller.HardEviction("low"))
	require.NoError(t, err)
	require.Nil(t, result.Status)
	require.NoError(t, terminator.Close(t.Context()))
}
