package criruntime_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/lifecycle"
	"github.com/kubegrace/kubegrace/lifecycle/criruntime/containerdtest"
	"github.com/kubegrace/kubegrace/lifecycle/lifecycletest"
)

// countingRunner counts the commands that it runs.
type countingRunner struct {
	lifecycle.CommandRunner

	runs atomic.Int32
}

func (c *countingRunner) RunInContainer(ctx context.Context, id string, command []string, timeout time.Duration) ([]byte, error) {
	c.runs.Add(1)
	return c.CommandRunner.RunInContainer(ctx, id, command, timeout)
}

// containerd is killed during a stop and is back 2 s later. A container that ends 6 s after TERM still ends by itself,
// and one that ignores TERM is killed at its deadline of 8 s. The hook runs once, there is one event of a failed stop,
// and a pod that was not stopped runs on.
func TestContainerdIsKilledDuringAStop(t *testing.T) {
	containerdtest.Each(t, testContainerdIsKilledDuringAStop)
}

// testContainerdIsKilledDuringAStop runs TestContainerdIsKilledDuringAStop with one version of containerd.
func testContainerdIsKilledDuringAStop(t *testing.T, build containerdtest.Build) {
	c := newContainerd(t, build)
	for name, test := range map[string]struct { // by the name of the image
		grace   int64 // in seconds
		outcome lifecycle.Outcome
		code    int32         // the exit code: 7 after TERM, or 128 + 9 after SIGKILL
		atLeast time.Duration // how long the termination takes: slow exits 6 s after TERM, stubborn at the deadline
	}{
		"slow":     {grace: 30, outcome: lifecycle.OutcomeGraceful, code: 7, atLeast: 6 * time.Second},
		"stubborn": {grace: 8, outcome: lifecycle.OutcomeGraceExceeded, code: 137, atLeast: 8 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			hook := v1.LifecycleHandler{Exec: &v1.ExecAction{Command: []string{"/bin/true"}}}
			pod, id := c.startReady(t, name, name+":1", withHook(hook), func(pod *v1.Pod) { *pod.Spec.TerminationGracePeriodSeconds = test.grace })
			survivor, survives := c.startReady(t, "survivor-of-"+name, "slow:1")

			hooks, events := &countingRunner{CommandRunner: c.runtime}, &lifecycletest.Events{}
			terminator, err := lifecycle.NewTerminator(lifecycle.TerminatorOptions{Runtime: c.runtime, Commands: hooks, Exits: c.runtime, Events: events})
			require.NoError(t, err)
			began := time.Now()
			termination := terminator.Terminate(t.Context(), pod, lifecycle.Request{})
			require.Eventually(t, func() bool {
				containers := termination.Result().Containers
				return len(containers) > 0 && containers[0].Phase == lifecycle.PhaseStopping && time.Since(began) > time.Second
			}, waitAtMost, pollEvery)
			c.server.Kill(t)

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
			require.Equal(t, test.code, c.status(t, id).GetExitCode())

			require.NotNil(t, c.listed(t, survivor), "the pod that survived is listed")
			require.Equal(t, []string{survives}, runningIDs(t, c.runtime, survivor))
			require.NoError(t, c.runtime.StopContainer(t.Context(), survives, 0))
			require.NoError(t, terminator.Close(t.Context()))
		})
	}
}
