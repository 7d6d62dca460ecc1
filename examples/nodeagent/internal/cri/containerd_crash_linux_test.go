package cri_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/kubegrace/kubegrace/examples/nodeagent/internal/containerdtest"
	"github.com/kubegrace/kubegrace/examples/nodeagent/internal/cri"
	"github.com/kubegrace/kubegrace/lifecycle"
	"github.com/kubegrace/kubegrace/lifecycle/lifecycletest"
)

// slow exits with 7, 6 s after TERM.
const slow = `trap 'sleep 6; exit 7' TERM; touch /tmp/ready; while :; do sleep 1000 & wait; done`

// countingRunner counts the commands that it runs.
type countingRunner struct {
	lifecycle.CommandRunner

	runs atomic.Int32
}

func (c *countingRunner) RunInContainer(ctx context.Context, id string, command []string, timeout time.Duration) ([]byte, error) {
	c.runs.Add(1)
	return c.CommandRunner.RunInContainer(ctx, id, command, timeout)
}

// containerd is killed in the middle of a stop and is back 2 s later. The container keeps
// the rest of its grace, its hook runs once, and result, events and status are right.
func TestContainerdIsKilledInTheMiddleOfAStop(t *testing.T) {
	containerdtest.Each(t, testContainerdIsKilledInTheMiddleOfAStop)
}

func testContainerdIsKilledInTheMiddleOfAStop(t *testing.T, build containerdtest.Build) {
	server := build.Start(t,
		containerdtest.Image{Name: "slow:1", Command: []string{"/bin/sh", "-c", slow}},
		containerdtest.Image{Name: "stubborn:1", Command: []string{"/bin/sh", "-c", stubborn}})
	c := &containerd{server: server, runtime: connect(t, server, cri.Options{})}
	for name, test := range map[string]struct {
		grace   int64
		outcome lifecycle.Outcome
		code    int32
		atLeast time.Duration
	}{
		"slow":     {grace: 30, outcome: lifecycle.Graceful, code: 7, atLeast: 6 * time.Second},
		"stubborn": {grace: 8, outcome: lifecycle.GraceExceeded, code: 137, atLeast: 8 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			pod := realPod(name, v1.Container{Name: "main", Image: name + ":1"})
			pod.Spec.TerminationGracePeriodSeconds = ptr.To(test.grace)
			pod.Spec.Containers[0].Lifecycle = &v1.Lifecycle{PreStop: &v1.LifecycleHandler{Exec: &v1.ExecAction{Command: []string{"/bin/true"}}}}
			containers := c.startReady(t, pod)
			survivor := realPod("survivor-of-"+name, v1.Container{Name: "main", Image: "slow:1"})
			survivors := c.startReady(t, survivor)

			hooks, events := &countingRunner{CommandRunner: c.runtime}, &lifecycletest.Events{}
			terminator, err := lifecycle.NewTerminator(lifecycle.TerminatorOptions{Runtime: c.runtime, Commands: hooks, Exits: c.runtime, Events: events})
			require.NoError(t, err)
			began := time.Now()
			termination := terminator.Pod(pod).Terminate(t.Context(), lifecycle.Request{Containers: containers})
			require.Eventually(t, func() bool {
				return termination.Result().Containers[0].Phase == lifecycle.PhaseStopping && time.Since(began) > time.Second
			}, waitAtMost, pollEvery)
			server.Kill(t)

			result, err := termination.Wait(t.Context())
			require.NoError(t, err)
			require.Equal(t, test.outcome, result.Outcome(), "%v", result.Containers[0].Err)
			require.GreaterOrEqual(t, time.Since(began), test.atLeast)
			require.EqualValues(t, 1, hooks.runs.Load())
			var reasons []string
			for _, event := range events.All() {
				reasons = append(reasons, event.Reason)
			}
			require.Equal(t, []string{"Killing", "FailedKillPod"}, reasons)
			status, err := c.runtime.ContainerStatus(t.Context(), containers[0].ID)
			require.NoError(t, err)
			require.Equal(t, test.code, status.State.Terminated.ExitCode)

			found, ok, err := c.runtime.Adopt(t.Context(), survivor)
			require.NoError(t, err)
			require.True(t, ok)
			require.Equal(t, survivors, found, "the pod that survived is adopted")
			require.NoError(t, c.runtime.StopContainer(t.Context(), survivors[0].ID, 0))
			require.NoError(t, terminator.Close(t.Context()))
		})
	}
}
