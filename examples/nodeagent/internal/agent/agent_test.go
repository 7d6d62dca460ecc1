package agent_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/kubegrace/kubegrace/examples/nodeagent/internal/agent"
	"github.com/kubegrace/kubegrace/examples/nodeagent/internal/embedded"
	"github.com/kubegrace/kubegrace/lifecycle/lifecycletest"
	"github.com/kubegrace/kubegrace/shutdown/plan"
)

func TestDrainInOrder(t *testing.T) {
	inBubble(t, func(t *testing.T, b *testbed) {
		b.addPod("high", 1000, "exits 1s after TERM")
		b.addPod("low", 0, "exits 2s after TERM")
		b.addPod("stubborn", 10, "ignores TERM")
		b.run()
		require.Contains(t, b.output(), "3 of 3 pods run.")
		require.Equal(t, []string{"READY=1"}, b.notified)

		began := time.Now()
		require.NoError(t, b.terminate())
		require.InDelta(t, 6, time.Since(began).Seconds(), 0.2, "5 s for the stubborn one, 1 s for the next bucket")
		require.Contains(t, []string{"low/app stubborn/app high/app", "stubborn/app low/app high/app"}, b.stopOrder())
		for _, exit := range b.runtime.Exits() {
			killed := exit.By == lifecycletest.ByKill
			require.Equal(t, exit.ID == "stubborn/app", killed, exit.ID)
		}
		require.Contains(t, b.output(), "2 of 3 pods stopped in time.")
		require.Contains(t, b.output(), "ns/stubborn: container app did not end on SIGTERM and was killed 5.0 s later")
		require.Equal(t, []string{"READY=1", "STATUS=Shutting down\nEXTEND_TIMEOUT_USEC=35000000", "STOPPING=1"}, b.notified)
	})
}

func TestShutdownAfter(t *testing.T) {
	inBubble(t, func(t *testing.T, b *testbed) {
		b.addPod("web", 0, "")
		b.opts.ShutdownAfter = time.Minute
		b.run()
		b.advance(59 * time.Second)
		require.True(t, b.running())
		require.Empty(t, b.runtime.Stops())
		b.advance(2 * time.Second)
		require.NoError(t, b.waitEnd())
		require.Equal(t, "web/app", b.stopOrder())
	})
}

func TestHookRunsAndSidecarStopsLast(t *testing.T) {
	inBubble(t, func(t *testing.T, b *testbed) {
		pod := b.addPod("web", 0, "exec takes 1s, exits 1s after TERM")
		pod.Spec.InitContainers = []v1.Container{{Name: "proxy", RestartPolicy: ptr.To(v1.ContainerRestartPolicyAlways)}}
		pod.Spec.Containers[0].Lifecycle = &v1.Lifecycle{PreStop: &v1.LifecycleHandler{Exec: &v1.ExecAction{Command: []string{"drain"}}}}
		b.run()
		require.NoError(t, b.terminate())
		require.Equal(t, []string{"drain"}, b.runtime.Execs()[0].Cmd)
		require.Equal(t, "web/app web/proxy", b.stopOrder())
		require.Contains(t, b.output(), "stopped in time, the sidecar last, after a preStop hook of 1.0 s")
	})
}

func TestPodThatCannotStartDoesNotAffectOthers(t *testing.T) {
	inBubble(t, func(t *testing.T, b *testbed) {
		b.addPod("broken", 0, "dances")
		b.addPod("web", 0, "")
		b.run()
		require.Contains(t, b.output(), "1 of 2 pods run.")
		b.advance(time.Second)
		require.Contains(t, b.output(), `ns/broken                does not run: failed to start container app: annotation nodeagent.kubegrace.dev/script.app: "dances" is not understood`)
		require.NoError(t, b.terminate())
		require.Equal(t, "web/app", b.stopOrder())
	})
}

func TestPodThatCannotStopIsAnError(t *testing.T) {
	inBubble(t, func(t *testing.T, b *testbed) {
		b.addPod("stuck", 0, "StopContainer fails")
		b.addPod("web", 1000, "")
		b.run()
		err := b.terminate()
		require.ErrorContains(t, err, "pod ns/stuck was not stopped: ")
		require.Contains(t, b.output(), "1 of 2 pods stopped in time.")
		require.Contains(t, b.output(), "stopped waiting: containers that have not ended: ns/stuck/app", "it is asked for again as long as the host waits")
		require.Contains(t, b.stopOrder(), "web/app", "the others are stopped all the same")
	})
}

// failingStopPod is a runtime whose first calls of StopPod fail.
type failingStopPod struct {
	*embedded.Runtime

	failures int
}

func (r *failingStopPod) StopPod(ctx context.Context, pod *v1.Pod) error {
	if r.failures--; r.failures >= 0 {
		return errors.New("device or resource busy")
	}
	return r.Runtime.StopPod(ctx, pod)
}

// A kill that has failed is tried again. The grace period and the time that the summary
// shows are those of both attempts together.
func TestKillThatFailedIsTriedAgain(t *testing.T) {
	inBubble(t, func(t *testing.T, b *testbed) {
		b.opts.Runtime = &failingStopPod{b.runtime, 1}
		b.addPod("web", 0, "exits 2s after TERM")
		b.run()
		require.NoError(t, b.terminate())
		require.Equal(t, "web/app", b.stopOrder(), "no container is stopped twice")
		require.Regexp(t, `ns/web +0 +0\+ +5 s +3\.0 s  stopped in time`, b.output())
	})
}

func TestPodThatEndedByItself(t *testing.T) {
	inBubble(t, func(t *testing.T, b *testbed) {
		b.addPod("job", 0, "exits by itself after 3s").Spec.RestartPolicy = v1.RestartPolicyNever
		b.run()
		b.advance(4 * time.Second)
		require.Contains(t, b.output(), "has ended by itself")
		require.NoError(t, b.terminate())
		require.Contains(t, b.output(), "had ended by itself before")
	})
}

// A shutdown cancels the start of a pod, and stops the containers that have started.
func TestStartIsAbandonedInAShutdown(t *testing.T) {
	inBubble(t, func(t *testing.T, b *testbed) {
		pod := b.addPod("slow", 0, "")
		pod.Annotations["nodeagent.kubegrace.dev/script.init"] = "exits by itself after 1h"
		pod.Spec.InitContainers = []v1.Container{{Name: "proxy", RestartPolicy: ptr.To(v1.ContainerRestartPolicyAlways)}, {Name: "init"}}
		b.run()
		b.advance(time.Second)
		require.Contains(t, b.output(), "is being started")
		require.NoError(t, b.terminate())
		require.Len(t, b.runtime.Exits(), 2, "the sidecar and the init container")
	})
}

func TestPodsHaveTheirOwnGracePeriodWithoutAConfiguration(t *testing.T) {
	inBubble(t, func(t *testing.T, b *testbed) {
		b.addPod("stubborn", 0, "ignores TERM")
		b.opts.Config = plan.Config{}
		b.run()
		began := time.Now()
		require.NoError(t, b.terminate())
		require.InDelta(t, 5, time.Since(began).Seconds(), 0.2)
		require.Contains(t, b.output(), "it may take up to 30.0 s")
	})
}

func TestEndOfTheContextLeavesThePodsRunning(t *testing.T) {
	inBubble(t, func(t *testing.T, b *testbed) {
		b.addPod("web", 0, "")
		a, err := agent.New(b.opts)
		require.NoError(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		require.NoError(t, a.Run(ctx))
		require.Empty(t, b.runtime.Stops())
	})
}

func TestNotifyErrorIsNoFailure(t *testing.T) {
	inBubble(t, func(t *testing.T, b *testbed) {
		b.addPod("web", 0, "")
		b.opts.Notify = func(string) error { return errors.New("connection refused") }
		b.run()
		require.NoError(t, b.terminate())
	})
}

func TestBadConfigurationIsRefused(t *testing.T) {
	inBubble(t, func(t *testing.T, b *testbed) {
		b.opts.Config.ShutdownGracePeriod.Duration = time.Minute
		_, err := agent.New(b.opts)
		require.ErrorContains(t, err, "Cannot specify both")
	})
}
