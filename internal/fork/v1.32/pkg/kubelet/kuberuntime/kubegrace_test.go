package kuberuntime

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	kubecontainer "k8s.io/kubernetes/pkg/kubelet/container"
	"k8s.io/kubernetes/pkg/kubelet/kubegrace"
	"k8s.io/kubernetes/pkg/vectors"
)

// The kubelet's TestKillContainerGracePeriod.
func TestTerminationGracePeriodVectors(t *testing.T) {
	cases := vectors.Read[struct {
		Container struct {
			Cases []struct {
				Name                string
				TGPS, Live, Startup *int64
				Reason              containerKillReason
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
				require.Equal(t, c.Want, gracePeriodOf(n.pod, app, c.Reason))
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
		"a longer one":                 {override: vectors.Seconds(60), want: 50, took: 10 * time.Second},
		"one that the hook uses up":    {override: vectors.Seconds(5), want: 2, took: 5 * time.Second},
		"none, and no time for a hook": {override: vectors.Seconds(0), want: 2},
	} {
		t.Run(name, func(t *testing.T) {
			onNode(t, 30, func(t *testing.T, n *node) {
				n.addMain("app", script{}).Lifecycle = sleeping(10)
				began := time.Now()
				require.NoError(t, n.killNamed(t, "app", reasonUnknown, c.override))
				require.Equal(t, c.took, time.Since(began))
				require.Equal(t, map[string]int64{"app": c.want}, n.stopTimeouts())
				require.Equal(t, "Normal Killing Stopping container app", vectors.Events(n.events)[0])
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
		require.NoError(t, n.killNamed(t, "app", reasonUnknown, nil))
		require.Equal(t, []string{"containerd://app"}, n.hooks.ran)
		require.Equal(t, map[string]int64{"app": 30}, n.stopTimeouts())
		require.Equal(t, []string{"Normal Killing Stopping container app", "Warning FailedPreStopHook PreStopHook failed"}, vectors.Events(n.events))
	})
}

// Stopping a container that does not exist succeeds.
func TestKillContainerThatIsGone(t *testing.T) {
	onNode(t, 30, func(t *testing.T, n *node) {
		n.addMain("app", script{})
		n.runtime.remove("app")
		require.NoError(t, n.killNamed(t, "app", reasonUnknown, nil))
	})
}

// The grace period and the hook of a container whose pod the kubelet does not know any more come from the
// container's labels.
func TestKillContainerWithoutAPod(t *testing.T) {
	onNode(t, 30, func(t *testing.T, n *node) {
		n.addMain("app", script{}).Lifecycle = sleeping(3)
		n.restored = func(_ context.Context, id kubecontainer.ContainerID) (*v1.Pod, *v1.Container, error) {
			if id.ID != "app" {
				return nil, nil, errors.New("it has no labels")
			}
			pod := n.pod.DeepCopy()
			pod.Spec.Containers = nil
			return pod, &n.pod.Spec.Containers[0], nil
		}
		kill := func(name string) error {
			return n.killContainer(t.Context(), nil, kubecontainer.ContainerID{Type: "containerd", ID: name}, name, "", reasonUnknown, nil, nil)
		}
		require.NoError(t, kill("app"))
		require.Equal(t, map[string]int64{"app": 27}, n.stopTimeouts())
		require.EqualError(t, kill("unknown"), "it has no labels")
	})
}

func errorOf(result kubecontainer.PodSyncResult) error { return result.Error() }

// The kubelet's TestKillPod: all containers, then the sandbox.
func TestKillPod(t *testing.T) {
	onNode(t, 30, func(t *testing.T, n *node) {
		n.addMain("app", script{})
		n.addMain("proxy", script{takes: 3 * time.Second})
		result := n.killPodWithSyncResult(t.Context(), n.pod, n.running, nil)
		require.NoError(t, result.Error())
		require.Equal(t, map[string]int64{"app": 30, "proxy": 30}, n.stopTimeouts())
		require.Equal(t, []string{"sandbox"}, n.runtime.sandboxes)
		require.Equal(t, []*kubecontainer.SyncResult{kubecontainer.NewSyncResult(kubecontainer.KillContainer, "app"), kubecontainer.NewSyncResult(kubecontainer.KillContainer, "proxy"), kubecontainer.NewSyncResult(kubecontainer.KillPodSandbox, n.pod.UID)}, result.SyncResults)
		_, kept := n.kubegrace().Termination(n.pod)
		require.False(t, kept, "a pod that is gone is forgotten")
	})
}

// An override replaces the grace period of a pod, as an eviction does; 0 leaves no time for a hook.
func TestKillPodWithAnOverride(t *testing.T) {
	for override, want := range map[int64]int64{60: 50, 7: 2, 0: 2} {
		onNode(t, 30, func(t *testing.T, n *node) {
			n.addMain("app", script{}).Lifecycle = sleeping(10)
			began := time.Now()
			require.NoError(t, errorOf(n.killPodWithSyncResult(t.Context(), n.pod, n.running, &override)))
			require.Equal(t, map[string]int64{"app": want}, n.stopTimeouts())
			require.Equal(t, time.Second*time.Duration(min(override, 10)), time.Since(began))
		})
	}
}

// The sandbox of a pod without containers is stopped. A sandbox that does not exist is no error.
func TestKillPodWithoutContainers(t *testing.T) {
	onNode(t, 30, func(t *testing.T, n *node) {
		n.runtime.sandboxErr = status.Error(codes.NotFound, "no such sandbox")
		require.NoError(t, errorOf(n.killPodWithSyncResult(t.Context(), n.pod, n.running, nil)))
		require.Equal(t, []string{"sandbox"}, n.runtime.sandboxes)
		n.runtime.sandboxErr = errors.New("it is busy")
		require.EqualError(t, errorOf(n.killPodWithSyncResult(t.Context(), n.pod, n.running, nil)),
			`failed to "KillPodSandbox" for "u-1" with KillPodSandboxError: "it is busy"`)
	})
}

// The result names a container that cannot be stopped, and the sandbox is stopped all the same.
// The next try stops the container and does not run its hook again.
func TestKillPodThatFails(t *testing.T) {
	onNode(t, 30, func(t *testing.T, n *node) {
		n.addMain("stuck", script{fails: true}).Lifecycle = sleeping(3)
		n.addMain("app", script{})
		result := n.killPodWithSyncResult(t.Context(), n.pod, n.running, nil)
		require.ErrorIs(t, result.SyncResults[0].Error, kubecontainer.ErrKillContainer)
		require.Equal(t, "the runtime is away", result.SyncResults[0].Message, "the error of the runtime, as it is")
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
	cases := vectors.Read[struct {
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

// With the gate off the kubelet's own code kills, also after kubegrace's has.
func TestGateOfTermination(t *testing.T) {
	onNode(t, 30, func(t *testing.T, n *node) {
		n.addMain("app", script{})
		vectors.SetGate(t, kubegrace.Termination, false)
		require.ErrorIs(t, n.killNamed(t, "app", reasonUnknown, nil), errStock)
		require.ErrorContains(t, errorOf(n.killPodWithSyncResult(t.Context(), n.pod, n.running, nil)), errStock.Error())
	})
}

// A runtime that refuses costs one call, and the caller gets its error at once.
func TestKillContainerOfARefusingRuntime(t *testing.T) {
	onNode(t, 30, func(t *testing.T, n *node) {
		n.addMain("app", script{fails: true})
		began := time.Now()
		require.EqualError(t, n.killNamed(t, "app", reasonUnknown, nil), "the runtime is away")
		require.EqualError(t, errorOf(n.killPodWithSyncResult(t.Context(), n.pod, n.running, nil)),
			`failed to "KillContainer" for "app" with KillContainerError: "the runtime is away"`)
		require.Zero(t, time.Since(began))
		require.Len(t, n.runtime.recordedStops(), 2)
	})
}

// Each try of a stop that fails is one Killing event and nothing else: FailedKillPod is
// SyncTerminatingPod's. The next try has the whole grace period again.
func TestEachTryIsAsTheFirst(t *testing.T) {
	onNode(t, 30, func(t *testing.T, n *node) {
		n.addMain("app", script{fails: true})
		require.Error(t, errorOf(n.killPodWithSyncResult(t.Context(), n.pod, n.running, nil)))
		<-time.After(10 * time.Second)
		require.Error(t, errorOf(n.killPodWithSyncResult(t.Context(), n.pod, n.running, nil)))
		require.Equal(t, []string{"Normal Killing Stopping container app", "Normal Killing Stopping container app"}, vectors.Events(n.events))
		for _, stop := range n.runtime.recordedStops() {
			require.EqualValues(t, 30, stop.timeout)
		}
	})
}

// A sidecar waits for a container that could not be stopped, as that still runs.
func TestSidecarOfAContainerThatCannotBeStopped(t *testing.T) {
	onNode(t, 30, func(t *testing.T, n *node) {
		n.addSidecar("proxy", script{})
		n.addMain("app", script{fails: true})
		began := time.Now()
		require.ErrorContains(t, errorOf(n.killPodWithSyncResult(t.Context(), n.pod, n.running, nil)), "the runtime is away")
		require.Equal(t, map[string]int64{"app": 30, "proxy": 2}, n.stopTimeouts())
		require.Equal(t, 30*time.Second, time.Since(began))
	})
}

// A grace period of 0, as of a pod whose sandbox has changed, leaves no time for the hook and the
// turn. Without any grace period there are two seconds for both.
func TestKillPodWithoutTime(t *testing.T) {
	for name, c := range map[string]struct {
		grace *int64
		took  time.Duration
		hooks []string
	}{
		"a grace period of 0": {grace: vectors.Seconds(0)},
		"no grace period":     {took: 2 * time.Second, hooks: []string{"containerd://app"}},
	} {
		t.Run(name, func(t *testing.T) {
			onNode(t, 0, func(t *testing.T, n *node) {
				n.pod.Spec.TerminationGracePeriodSeconds = c.grace
				n.addSidecar("proxy", script{})
				n.addMain("app", script{fails: true}).Lifecycle = sleeping(10)
				began := time.Now()
				require.Error(t, errorOf(n.killPodWithSyncResult(t.Context(), n.pod, n.running, nil)))
				require.Equal(t, map[string]int64{"app": 2, "proxy": 2}, n.stopTimeouts())
				require.Equal(t, c.took, time.Since(began))
				require.Equal(t, c.hooks, n.hooks.ran)
			})
		})
	}
}

// A runner that is set later runs the hooks of the kills that begin later.
func TestRunnerThatIsSetLater(t *testing.T) {
	onNode(t, 30, func(t *testing.T, n *node) {
		n.addMain("app", script{}).Lifecycle = sleeping(1)
		n.addMain("proxy", script{}).Lifecycle = sleeping(1)
		require.NoError(t, n.killNamed(t, "app", reasonUnknown, nil))
		later := &hookFake{}
		n.runner = later
		require.NoError(t, n.killNamed(t, "proxy", reasonUnknown, nil))
		require.Equal(t, []string{"containerd://app"}, n.hooks.ran)
		require.Equal(t, []string{"containerd://proxy"}, later.ran)
	})
}

// A shortened grace period applies at once to a kill that is under way.
func TestShortenGracePeriod(t *testing.T) {
	onNode(t, 600, func(t *testing.T, n *node) {
		n.addMain("app", script{takes: time.Hour})
		began := time.Now()
		time.AfterFunc(5*time.Second, func() { n.ShortenGracePeriod(n.pod, 1) })
		require.NoError(t, errorOf(n.killPodWithSyncResult(t.Context(), n.pod, n.running, nil)))
		require.Less(t, time.Since(began), 10*time.Second)
		n.ShortenGracePeriod(&v1.Pod{ObjectMeta: metav1.ObjectMeta{UID: "another"}}, 1)
	})
}

// A StopContainer that does not return ends when the CRI client gives up. Its error is the kill's, and the
// next try has the whole grace period, as in the kubelet.
func TestStopThatDoesNotReturn(t *testing.T) {
	onNode(t, 30, func(t *testing.T, n *node) {
		n.addMain("app", script{hangs: true})
		for range 2 {
			began := time.Now()
			require.EqualError(t, n.killNamed(t, "app", reasonUnknown, nil), "rpc error: code = DeadlineExceeded desc = context deadline exceeded")
			require.Equal(t, 150*time.Second, time.Since(began))
		}
		stops := n.runtime.recordedStops()
		require.Len(t, stops, 2)
		require.EqualValues(t, 30, stops[1].timeout)
		require.Equal(t, []string{"Normal Killing Stopping container app", "Normal Killing Stopping container app"}, vectors.Events(n.events))
	})
}

// A sleep hook goes on when its container has exited, because the terminator has no ExitWatcher.
func TestSleepOfAContainerThatHasExited(t *testing.T) {
	onNode(t, 30, func(t *testing.T, n *node) {
		n.addMain("app", script{}).Lifecycle = sleeping(10)
		time.AfterFunc(time.Second, func() { n.runtime.remove("app") })
		began := time.Now()
		require.NoError(t, errorOf(n.killPodWithSyncResult(t.Context(), n.pod, n.running, nil)))
		require.Equal(t, 10*time.Second, time.Since(began))
	})
}

// A hook that uses up the grace period is cancelled, which is no failure.
func TestHookAtTheEndOfItsGrace(t *testing.T) {
	onNode(t, 5, func(t *testing.T, n *node) {
		n.addMain("app", script{}).Lifecycle = sleeping(60)
		require.NoError(t, errorOf(n.killPodWithSyncResult(t.Context(), n.pod, n.running, nil)))
		require.Equal(t, []error{context.Canceled}, n.hooks.cancelled())
		require.Equal(t, map[string]int64{"app": 2}, n.stopTimeouts())
		require.Equal(t, []string{"Normal Killing Stopping container app"}, vectors.Events(n.events))
	})
}

// A container that the spec lacks is stopped, with no hook and no error.
func TestContainerThatTheSpecLacks(t *testing.T) {
	onNode(t, 30, func(t *testing.T, n *node) {
		n.addRunning("gone", script{})
		require.NoError(t, errorOf(n.killPodWithSyncResult(t.Context(), n.pod, n.running, nil)))
		require.Equal(t, map[string]int64{"gone": 30}, n.stopTimeouts())
		require.NoError(t, n.killNamed(t, "gone", reasonUnknown, nil))
	})
}

// The first of three sidecars waits for the last one, though the one between them does not run.
func TestOrderAcrossASidecarThatDoesNotRun(t *testing.T) {
	onNode(t, 30, func(t *testing.T, n *node) {
		n.addSidecar("first", script{})
		n.addSidecar("between", script{})
		n.addSidecar("last", script{takes: 5 * time.Second})
		n.addMain("app", script{})
		n.running.Containers = append(n.running.Containers[:1], n.running.Containers[2:]...)
		require.NoError(t, errorOf(n.killPodWithSyncResult(t.Context(), n.pod, n.running, nil)))
		require.Equal(t, map[string]int64{"app": 30, "last": 30, "first": 25}, n.stopTimeouts())
	})
}

// The time that a hook and the turn have used is truncated once: 1.6 and 1.6 seconds are three.
func TestUsedTimeIsTruncatedOnce(t *testing.T) {
	onNode(t, 30, func(t *testing.T, n *node) {
		n.hooks.takes = 1600 * time.Millisecond
		n.addSidecar("proxy", script{})
		n.pod.Spec.InitContainers[0].Lifecycle = sleeping(0)
		n.addMain("app", script{takes: 3200 * time.Millisecond})
		require.NoError(t, errorOf(n.killPodWithSyncResult(t.Context(), n.pod, n.running, nil)))
		require.Equal(t, map[string]int64{"app": 30, "proxy": 27}, n.stopTimeouts())
	})
}

// A container that was started after its pod's termination began is stopped by the next kill.
func TestContainerThatIsStartedLate(t *testing.T) {
	onNode(t, 30, func(t *testing.T, n *node) {
		n.addMain("app", script{takes: 10 * time.Second})
		killed := make(chan error, 1)
		running := n.running
		go func() { killed <- errorOf(n.killPodWithSyncResult(t.Context(), n.pod, running, nil)) }()
		<-time.After(time.Second)
		n.addMain("late", script{})
		require.NoError(t, <-killed)
		require.NotContains(t, n.stopTimeouts(), "late")
		require.NoError(t, errorOf(n.killPodWithSyncResult(t.Context(), n.pod, n.running, nil)))
		require.EqualValues(t, 30, n.stopTimeouts()["late"])
	})
}

// The Killing event of a container whose pod the kubelet does not know has the container's place in the
// spec that was restored.
func TestEventOfAContainerWithoutAPod(t *testing.T) {
	onNode(t, 30, func(t *testing.T, n *node) {
		n.addMain("app", script{})
		var objects []any
		n.recorder = recorderOf(n.events, func(object runtime.Object) { objects = append(objects, object) })
		n.restored = func(context.Context, kubecontainer.ContainerID) (*v1.Pod, *v1.Container, error) {
			return n.pod.DeepCopy(), &v1.Container{Name: "app"}, nil
		}
		require.NoError(t, n.killContainer(t.Context(), nil, kubecontainer.ContainerID{Type: "containerd", ID: "app"}, "app", "", reasonUnknown, nil, nil))
		require.Equal(t, "spec.containers{app}", objects[0].(*v1.ObjectReference).FieldPath)
	})
}
