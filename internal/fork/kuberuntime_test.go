//go:build go1.25

package fork

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/graceperiod"
)

// The kubelet's TestKillContainerGracePeriod.
func TestTerminationGracePeriodVectors(t *testing.T) {
	cases := readVectors[struct {
		Container struct {
			Cases []struct {
				Name                string
				TGPS, Live, Startup *int64
				Reason              graceperiod.KillReason
				Want                int64
			}
		} `json:"set_termination_grace_period"`
	}](t, "graceperiod/testdata/vectors.yaml").Container.Cases
	require.Len(t, cases, 11)
	for _, c := range cases {
		t.Run(c.Name, func(t *testing.T) {
			onNode(t, 0, func(t *testing.T, n *node) {
				n.pod.Spec.TerminationGracePeriodSeconds = c.TGPS
				app := n.addMain("app", script{})
				app.LivenessProbe = &v1.Probe{TerminationGracePeriodSeconds: c.Live}
				app.StartupProbe = &v1.Probe{TerminationGracePeriodSeconds: c.Startup}
				require.Equal(t, c.Want, setTerminationGracePeriod(n.pod, app, c.Reason))
				require.NoError(t, n.killNamed(t, "app", c.Reason, nil))
				require.Equal(t, map[string]int64{"app": c.Want}, n.stopTimeouts())
			})
		})
	}
}

// The kubelet's TestKillContainer: the hook takes of the grace, an override replaces it, and
// two seconds are left for the stop.
func TestKillContainer(t *testing.T) {
	for name, c := range map[string]struct {
		override *int64
		want     int64
		took     time.Duration
	}{
		"its own grace":                {want: 20, took: 10 * time.Second},
		"a longer one":                 {override: seconds(60), want: 50, took: 10 * time.Second},
		"one that the hook uses up":    {override: seconds(5), want: 2, took: 5 * time.Second},
		"none, and no time for a hook": {override: seconds(0), want: 2},
	} {
		t.Run(name, func(t *testing.T) {
			onNode(t, 30, func(t *testing.T, n *node) {
				n.addMain("app", script{}).Lifecycle = sleeping(10)
				began := time.Now()
				require.NoError(t, n.killNamed(t, "app", graceperiod.ReasonUnknown, c.override))
				require.Equal(t, c.took, time.Since(began))
				require.Equal(t, map[string]int64{"app": c.want}, n.stopTimeouts())
				require.Equal(t, "Normal Killing Stopping container app", recordedEvents(n.events)[0])
			})
		})
	}
}

// The kubelet's TestLifeCycleHook: an exec hook runs in the container, which the runtime
// knows by its ID, and one that fails is an event; the container is stopped all the same.
func TestExecHookOfAContainer(t *testing.T) {
	onNode(t, 30, func(t *testing.T, n *node) {
		n.hooks.err = errors.New("it has failed")
		n.addMain("app", script{}).Lifecycle = &v1.Lifecycle{PreStop: &v1.LifecycleHandler{Exec: &v1.ExecAction{Command: []string{"PreStop.sh"}}}}
		require.NoError(t, n.killNamed(t, "app", graceperiod.ReasonUnknown, nil))
		require.Equal(t, []string{"containerd://app PreStop.sh"}, n.hooks.ran)
		require.Equal(t, map[string]int64{"app": 30}, n.stopTimeouts())
		require.Equal(t, []string{"Normal Killing Stopping container app", "Warning FailedPreStopHook PreStopHook failed"}, recordedEvents(n.events))
	})
}

// Stopping a container that does not exist succeeds.
func TestKillContainerThatIsGone(t *testing.T) {
	onNode(t, 30, func(t *testing.T, n *node) {
		n.addMain("app", script{})
		n.runtime.remove("app")
		require.NoError(t, n.killNamed(t, "app", graceperiod.ReasonUnknown, nil))
	})
}

// The grace period of a container whose pod the kubelet does not know any more comes from the
// container's labels.
func TestKillContainerWithoutAPod(t *testing.T) {
	onNode(t, 30, func(t *testing.T, n *node) {
		n.addMain("app", script{}).Lifecycle = sleeping(3)
		n.addMain("proxy", script{}).Lifecycle = sleeping(2)
		n.addMain("logs", script{}).Lifecycle = sleeping(4)
		n.restoreSpecs = func(_ context.Context, id ContainerID) (*v1.Pod, *v1.Container, error) {
			pod := n.pod.DeepCopy()
			pod.Spec.Containers = nil
			for i := range n.pod.Spec.Containers {
				if c := &n.pod.Spec.Containers[i]; c.Name == id.ID {
					return pod, c, nil
				}
			}
			return nil, nil, errors.New("it has no labels")
		}
		require.NoError(t, n.killContainer(t.Context(), nil, ContainerID{"containerd", "app"}, "app", "", graceperiod.ReasonUnknown, nil))
		require.Equal(t, map[string]int64{"app": 27}, n.stopTimeouts())
		n.running.Containers = n.running.Containers[1:]
		result := n.killPodWithSyncResult(t.Context(), nil, n.running, seconds(7))
		require.NoError(t, result.Error())
		require.Equal(t, map[string]int64{"app": 27, "proxy": 5, "logs": 3}, n.stopTimeouts())

		require.EqualError(t, n.killContainer(t.Context(), nil, ContainerID{"containerd", "unknown"}, "unknown", "", graceperiod.ReasonUnknown, nil), "it has no labels")
		n.addRunning("unknown", script{})
		n.addMain("late", script{})
		require.ErrorContains(t, errorOf(n.killPodWithSyncResult(t.Context(), nil, n.running, seconds(7))), "it has no labels")
		require.Contains(t, n.stopTimeouts(), "late", "one without labels keeps no other from being killed")
		require.NotContains(t, n.stopTimeouts(), "unknown")
	})
}

func errorOf(result PodSyncResult) error { return result.Error() }

// The kubelet's TestKillPod: all containers, then the sandbox.
func TestKillPod(t *testing.T) {
	onNode(t, 30, func(t *testing.T, n *node) {
		n.addMain("app", script{})
		n.addMain("proxy", script{takes: 3 * time.Second})
		result := n.killPodWithSyncResult(t.Context(), n.pod, n.running, nil)
		require.NoError(t, result.Error())
		require.Equal(t, map[string]int64{"app": 30, "proxy": 30}, n.stopTimeouts())
		require.Equal(t, []string{"sandbox"}, n.runtime.sandboxes)
		require.Equal(t, []*SyncResult{NewSyncResult(KillContainer, "app"), NewSyncResult(KillContainer, "proxy"), NewSyncResult(KillPodSandbox, n.pod.UID)}, result.SyncResults)
		_, kept := n.terminator.Pod(n.pod).Termination()
		require.False(t, kept, "a pod that is gone is forgotten")
	})
}

// The sandbox of a pod without containers is stopped. A sandbox that does not exist is no error.
func TestKillPodWithoutContainers(t *testing.T) {
	onNode(t, 30, func(t *testing.T, n *node) {
		n.runtime.sandboxErr = status.Error(codes.NotFound, "no such sandbox")
		require.NoError(t, errorOf(n.killPodWithSyncResult(t.Context(), nil, n.running, nil)))
		require.Equal(t, []string{"sandbox"}, n.runtime.sandboxes)
		n.runtime.sandboxErr = errors.New("it is busy")
		require.EqualError(t, errorOf(n.killPodWithSyncResult(t.Context(), n.pod, n.running, nil)),
			`failed to "KillPodSandbox" for "u-1" with KillPodSandboxError: "it is busy"`)
	})
}

// The result names a container that cannot be stopped, and the sandbox is stopped all the same.
// The next attempt stops the container and does not run its hook again.
func TestKillPodThatFails(t *testing.T) {
	onNode(t, 30, func(t *testing.T, n *node) {
		n.addMain("stuck", script{fails: true}).Lifecycle = sleeping(3)
		n.addMain("app", script{})
		result := n.killPodWithSyncResult(t.Context(), n.pod, n.running, nil)
		require.ErrorIs(t, result.SyncResults[0].Error, ErrKillContainer)
		require.NoError(t, result.SyncResults[1].Error)
		require.NoError(t, result.SyncResults[2].Error)
		require.Equal(t, []string{"sandbox"}, n.runtime.sandboxes)

		n.runtime.remove("stuck")
		began := time.Now()
		result = n.killPodWithSyncResult(t.Context(), n.pod, n.running, nil)
		require.NoError(t, result.Error())
		require.Less(t, time.Since(began), 3*time.Second)
	})
}

// The end of a sync's context ends the wait for a kill, and not the kill.
func TestKillPodIsNotWaitedFor(t *testing.T) {
	onNode(t, 30, func(t *testing.T, n *node) {
		n.addMain("app", script{takes: 10 * time.Second})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		result := n.killPodWithSyncResult(ctx, n.pod, n.running, nil)
		require.ErrorContains(t, result.Error(), "timeout waiting to kill pod: containers that have not ended: shop/web/app")
		result = n.killPodWithSyncResult(t.Context(), n.pod, n.running, nil)
		require.NoError(t, result.Error())
		require.Len(t, n.runtime.recordedStops(), 1)
	})
}

// orderingCase is one of the kubelet's cases for the order in which containers stop.
type orderingCase struct {
	Test string
	In   struct {
		Sidecars, Main []string
		Waits          map[string]int64
		MainExitAfter  float64 `json:"main_exit_after"`
		Grace          int64   `json:"grace_each"`
		ExitAfter      float64 `json:"each_exits_after_its_turn"`
	}
	Want map[string]int64 // how long each waits for its turn
}

func TestTerminationOrderVectors(t *testing.T) {
	cases := readVectors[struct {
		Cases []orderingCase `json:"termination_ordering"`
	}](t, "lifecycle/testdata/ordering.yaml").Cases
	require.Len(t, cases, 3)
	for _, c := range cases {
		t.Run(c.Test, func(t *testing.T) {
			onNode(t, max(c.In.Grace, c.In.Waits["init"]), func(t *testing.T, n *node) {
				how := script{takes: time.Duration(max(c.In.ExitAfter, c.In.MainExitAfter) * float64(time.Second))}
				for _, name := range c.In.Sidecars {
					n.addSidecar(name, how)
				}
				for _, name := range c.In.Main {
					n.addMain(name, how)
				}
				began := time.Now()
				require.NoError(t, errorOf(n.killPodWithSyncResult(t.Context(), n.pod, n.running, nil)))
				waited := map[string]int64{}
				for _, stop := range n.runtime.recordedStops() {
					waited[stop.id] = int64(stop.at.Sub(began).Seconds())
				}
				require.Equal(t, c.Want, waited)
			})
		})
	}
}
