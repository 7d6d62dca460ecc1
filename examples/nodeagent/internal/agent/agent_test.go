package agent_test

import (
	"context"
	"errors"
	"syscall"
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
	inBubble(t, func(t *testing.T, b *bench) {
		b.pod("high", 1000, "exits 1s after TERM")
		b.pod("low", 0, "exits 2s after TERM")
		b.pod("stubborn", 10, "ignores TERM")
		b.run()
		require.Contains(t, b.output(), "3 of 3 pods run.")
		require.Equal(t, []string{"READY=1"}, b.told)

		began := time.Now()
		b.signals <- syscall.SIGTERM
		require.NoError(t, b.end())
		require.InDelta(t, 6, time.Since(began).Seconds(), 0.2, "5 s for the stubborn one, 1 s for the next bucket")
		require.Contains(t, []string{"low/app stubborn/app high/app", "stubborn/app low/app high/app"}, b.order())
		for _, exit := range b.runtime.Exits() {
			killed := exit.By == lifecycletest.ByKill
			require.Equal(t, exit.ID == "stubborn/app", killed, exit.ID)
		}
		require.Contains(t, b.output(), "2 of 3 pods stopped in time.")
		require.Contains(t, b.output(), "ns/stubborn: container app did not end on SIGTERM and was killed 5.0 s later")
		require.Equal(t, []string{"READY=1", "STATUS=Shutting down\nEXTEND_TIMEOUT_USEC=35000000", "STOPPING=1"}, b.told)
	})
}

func TestShutdownAfter(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bench) {
		b.pod("web", 0, "")
		b.opts.ShutdownAfter = time.Minute
		b.run()
		b.pass(59 * time.Second)
		require.True(t, b.running())
		require.Empty(t, b.runtime.Stops())
		b.pass(2 * time.Second)
		require.NoError(t, b.end())
		require.Equal(t, "web/app", b.order())
	})
}

func TestHookRunsAndSidecarStopsLast(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bench) {
		pod := b.pod("web", 0, "exec takes 1s, exits 1s after TERM")
		pod.Spec.InitContainers = []v1.Container{{Name: "proxy", RestartPolicy: ptr.To(v1.ContainerRestartPolicyAlways)}}
		pod.Spec.Containers[0].Lifecycle = &v1.Lifecycle{PreStop: &v1.LifecycleHandler{Exec: &v1.ExecAction{Command: []string{"drain"}}}}
		b.run()
		b.signals <- syscall.SIGTERM
		require.NoError(t, b.end())
		require.Equal(t, []string{"drain"}, b.runtime.Execs()[0].Cmd)
		require.Equal(t, "web/app web/proxy", b.order())
		require.Contains(t, b.output(), "stopped in time, the sidecar last, after a preStop hook of 1.0 s")
	})
}

func TestPodThatCannotStartDoesNotHinderOthers(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bench) {
		b.pod("broken", 0, "dances")
		b.pod("web", 0, "")
		b.run()
		require.Contains(t, b.output(), "1 of 2 pods run.")
		b.pass(time.Second)
		require.Contains(t, b.output(), `ns/broken                does not run: failed to start container app: annotation nodeagent.kubegrace.dev/script.app: "dances" is not understood`)
		b.signals <- syscall.SIGTERM
		require.NoError(t, b.end())
		require.Equal(t, "web/app", b.order())
	})
}

func TestPodThatCannotStopIsAnError(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bench) {
		b.pod("stuck", 0, "StopContainer fails")
		b.pod("web", 1000, "")
		b.run()
		b.signals <- syscall.SIGTERM
		err := b.end()
		require.ErrorContains(t, err, "pod ns/stuck was not stopped: ")
		require.Contains(t, b.output(), "1 of 2 pods stopped in time.")
		require.Contains(t, b.output(), "stopped waiting: containers that have not ended: ns/stuck/app", "it is asked for again as long as the host waits")
		require.Contains(t, b.order(), "web/app", "the others are stopped all the same")
	})
}

// clumsy fails to remove what is left of a pod, so many times.
type clumsy struct {
	*embedded.Runtime

	failures int
}

func (c *clumsy) StopPod(ctx context.Context, pod *v1.Pod) error {
	if c.failures--; c.failures >= 0 {
		return errors.New("device or resource busy")
	}
	return c.Runtime.StopPod(ctx, pod)
}

// A kill that has failed is tried again: the time that it took, and what the pod was
// given, are those of both attempts together.
func TestKillThatFailedIsTriedAgain(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bench) {
		b.opts.Runtime = &clumsy{b.runtime, 1}
		b.pod("web", 0, "exits 2s after TERM")
		b.run()
		b.signals <- syscall.SIGTERM
		require.NoError(t, b.end())
		require.Equal(t, "web/app", b.order(), "no container is stopped twice")
		require.Regexp(t, `ns/web +0 +0\+ +5 s +3\.0 s  stopped in time`, b.output())
	})
}

func TestPodThatEndedByItself(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bench) {
		b.pod("job", 0, "exits by itself after 3s").Spec.RestartPolicy = v1.RestartPolicyNever
		b.run()
		b.pass(4 * time.Second)
		require.Contains(t, b.output(), "has ended by itself")
		b.signals <- syscall.SIGTERM
		require.NoError(t, b.end())
		require.Contains(t, b.output(), "had ended by itself before")
	})
}

// A pod that is being started when the shutdown begins is not let start, and what
// runs of it is stopped.
func TestStartIsAbandonedInAShutdown(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bench) {
		pod := b.pod("slow", 0, "")
		pod.Annotations["nodeagent.kubegrace.dev/script.init"] = "exits by itself after 1h"
		pod.Spec.InitContainers = []v1.Container{{Name: "proxy", RestartPolicy: ptr.To(v1.ContainerRestartPolicyAlways)}, {Name: "init"}}
		b.run()
		b.pass(time.Second)
		require.Contains(t, b.output(), "is being started")
		b.signals <- syscall.SIGTERM
		require.NoError(t, b.end())
		require.Len(t, b.runtime.Exits(), 2, "the sidecar and the init container")
	})
}

func TestWithoutConfigurationPodsHaveTheirOwnGrace(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bench) {
		b.pod("stubborn", 0, "ignores TERM")
		b.opts.Config = plan.Config{}
		b.run()
		began := time.Now()
		b.signals <- syscall.SIGTERM
		require.NoError(t, b.end())
		require.InDelta(t, 5, time.Since(began).Seconds(), 0.2)
		require.Contains(t, b.output(), "it may take up to 30.0 s")
	})
}

func TestEndOfItsContextLeavesThePods(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bench) {
		b.pod("web", 0, "")
		a, err := agent.New(b.opts)
		require.NoError(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		require.NoError(t, a.Run(ctx))
		require.Empty(t, b.runtime.Stops())
	})
}

func TestServiceManagerThatCannotBeToldIsNoFailure(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bench) {
		b.pod("web", 0, "")
		b.opts.Notify = func(string) error { return errors.New("nobody listens") }
		b.run()
		b.signals <- syscall.SIGTERM
		require.NoError(t, b.end())
	})
}

func TestBadConfigurationIsRefused(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bench) {
		b.opts.Config.ShutdownGracePeriod.Duration = time.Minute
		_, err := agent.New(b.opts)
		require.ErrorContains(t, err, "Cannot specify both")
	})
}
