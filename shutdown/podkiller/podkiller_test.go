//go:build go1.25

package podkiller_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/lifecycle"
	"github.com/kubegrace/kubegrace/lifecycle/lifecycletest"
	"github.com/kubegrace/kubegrace/shutdown"
	"github.com/kubegrace/kubegrace/shutdown/podkiller"
	"github.com/kubegrace/kubegrace/shutdown/shutdowntest"
)

// podOnRuntime is a pod with one container on a fake runtime, and its killer.
type podOnRuntime struct {
	*testing.T

	rt     *lifecycletest.Runtime
	pod    *v1.Pod
	killer shutdown.PodKiller
}

func inBubble(t *testing.T, script lifecycletest.Script, test func(*podOnRuntime)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := &podOnRuntime{T: t, rt: lifecycletest.NewRuntime(), pod: shutdowntest.Pod("web", 0, 60)}
		s.rt.Start("id", script)
		terminator, err := lifecycle.NewTerminator(lifecycle.TerminatorOptions{Runtime: s.rt, GiveUp: time.Second})
		require.NoError(t, err)
		s.killer = podkiller.New(terminator, podkiller.Options{Status: s.status})
		test(s)
		require.NoError(t, terminator.Close(t.Context()))
	})
}

func (s *podOnRuntime) status(context.Context, *v1.Pod) *v1.PodStatus {
	status := v1.ContainerStatus{Name: "web", ContainerID: "cri://id", State: v1.ContainerState{Running: &v1.ContainerStateRunning{}}}
	if code, exited := s.rt.ExitCode("id"); exited {
		status.State = v1.ContainerState{Terminated: &v1.ContainerStateTerminated{ExitCode: code}}
	}
	return &v1.PodStatus{Phase: v1.PodRunning, ContainerStatuses: []v1.ContainerStatus{status}}
}

func TestTheFinalStatusHasTheExitCode(t *testing.T) {
	inBubble(t, lifecycletest.Script{IgnoreTerm: true}, func(s *podOnRuntime) {
		began := time.Now()
		result, err := s.killer.KillPod(s.Context(), s.pod, podkiller.SoftEviction(s.pod, 20, "low"))
		require.NoError(s, err)
		require.Equal(s, "GraceExceeded", result.Outcome)
		require.Equal(s, 20*time.Second, time.Since(began))
		require.EqualValues(s, 137, result.Status.ContainerStatuses[0].State.Terminated.ExitCode)
		require.Equal(s, v1.PodFailed, result.Status.Phase)
		require.Empty(s, s.pod.Status.ContainerStatuses, "nothing of the caller's is changed")
	})
}

// A pod that may run has no final status, and may be killed again.
func TestAPodThatMayRunHasNoFinalStatus(t *testing.T) {
	inBubble(t, lifecycletest.Script{}, func(s *podOnRuntime) {
		s.rt.Away(0, 10*time.Second)
		result, err := s.killer.KillPod(s.Context(), s.pod, podkiller.HardEviction("low"))
		require.ErrorIs(s, err, lifecycletest.ErrAway)
		require.Equal(s, "RuntimeStuck", result.Outcome)
		require.Nil(s, result.Status)
		<-time.After(10 * time.Second)
		result, err = s.killer.KillPod(s.Context(), s.pod, podkiller.HardEviction("low"))
		require.NoError(s, err)
		require.Equal(s, "Forced", result.Outcome)
		require.Equal(s, v1.PodFailed, result.Status.Phase)
	})
}

func TestAPodWithoutAStatusIsNotSaidToHaveEnded(t *testing.T) {
	inBubble(t, lifecycletest.Script{}, func(s *podOnRuntime) {
		terminator, err := lifecycle.NewTerminator(lifecycle.TerminatorOptions{Runtime: s.rt})
		require.NoError(s, err)
		s.pod.Spec.Containers = []v1.Container{{Name: "web"}}
		_, err = podkiller.New(terminator, podkiller.Options{}).KillPod(s.Context(), s.pod, shutdown.KillRequest{})
		require.ErrorIs(s, err, lifecycle.ErrUnknownContainers)
		_, err = podkiller.New(terminator, podkiller.Options{}).KillPod(s.Context(), nil, shutdown.KillRequest{})
		require.ErrorContains(s, err, "the pod is nil")
	})
}
