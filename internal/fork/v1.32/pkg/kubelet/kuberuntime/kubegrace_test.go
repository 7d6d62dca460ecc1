package kuberuntime

import (
	"context"
	"errors"
	"fmt"
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

// The cases of the kubelet's TestKillContainerGracePeriod: the reason of the kill decides whether the grace period is that
// of the pod or of a probe. The container is stopped with that grace period.
func TestTerminationGracePeriodVectors(t *testing.T) {
	cases := vectors.Read[struct {
		Container struct {
			Cases []struct {
				Name                string
				TGPS, Live, Startup *int64 // the grace periods of the pod and of its probes
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

// The cases of the kubelet's TestKillContainer. The hook takes 10 s of the grace period of 30 s, or of the override: 30 -
// 10 = 20 s or 60 - 10 = 50 s remain for the stop, which has at least 2 s. A hook is cut at the end of a shorter override.
func TestKillContainer(t *testing.T) {
	for name, c := range map[string]struct {
		override *int64
		want     int64         // the timeout of the stop
		took     time.Duration // by the hook; the container exits at once
	}{
		"no override":                                 {want: 20, took: 10 * time.Second},
		"a longer override":                           {override: vectors.Seconds(60), want: 50, took: 10 * time.Second},
		"an override shorter than the hook":           {override: vectors.Seconds(5), want: 2, took: 5 * time.Second},
		"an override of 0, without time for the hook": {override: vectors.Seconds(0), want: 2},
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

// As in the kubelet's TestLifeCycleHook, an exec hook gets the container's ID with the runtime's name, its failure is an
// event, and the container is stopped anyway.
func TestAFailedExecHookIsAnEvent(t *testing.T) {
	onNode(t, 30, func(t *testing.T, n *node) {
		n.hooks.err = errors.New("the hook failed")
		n.addMain("app", script{}).Lifecycle = &v1.Lifecycle{PreStop: &v1.LifecycleHandler{Exec: &v1.ExecAction{Command: []string{"PreStop.sh"}}}}
		require.NoError(t, n.killNamed(t, "app", reasonUnknown, nil))
		require.Equal(t, []string{"containerd://app"}, n.hooks.ran)
		require.Equal(t, map[string]int64{"app": 30}, n.stopTimeouts())
		require.Equal(t, []string{"Normal Killing Stopping container app", "Warning FailedPreStopHook PreStopHook failed"}, vectors.Events(n.events))
	})
}

// The kubelet believes that a container runs which the runtime does not have. Its kill succeeds.
func TestAMissingContainerIsNoError(t *testing.T) {
	onNode(t, 30, func(t *testing.T, n *node) {
		n.addMain("app", script{})
		n.runtime.remove("app")
		require.NoError(t, n.killNamed(t, "app", reasonUnknown, nil))
	})
}

// If the kubelet no longer knows the pod, the container's labels have its grace period of 30 s and its hook, which takes 3 s:
// 27 s remain for the stop. Without labels the kill fails.
func TestAContainerWithoutAPodIsKilledByItsLabels(t *testing.T) {
	onNode(t, 30, func(t *testing.T, n *node) {
		n.addMain("app", script{}).Lifecycle = sleeping(3)
		n.restored = func(_ context.Context, id kubecontainer.ContainerID) (*v1.Pod, *v1.Container, error) {
			if id.ID != "app" {
				return nil, nil, errors.New("the container has no labels")
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
		require.EqualError(t, kill("unknown"), "the container has no labels")
	})
}

// errorOf returns the error of a result. The method Error cannot be called on the result of a call.
func errorOf(result kubecontainer.PodSyncResult) error { return result.Error() }

// As in the kubelet's TestKillPod, the containers are stopped, then the sandbox, and the result has all three. The
// terminator then forgets the pod.
func TestKillPodStopsContainersAndSandboxes(t *testing.T) {
	onNode(t, 30, func(t *testing.T, n *node) {
		n.addMain("app", script{})
		n.addMain("proxy", script{takes: 3 * time.Second})
		result := n.killPodWithSyncResult(t.Context(), n.pod, n.running, nil)
		require.NoError(t, result.Error())
		require.Equal(t, map[string]int64{"app": 30, "proxy": 30}, n.stopTimeouts())
		require.Equal(t, []string{"sandbox"}, n.runtime.sandboxes)
		require.Equal(t, []*kubecontainer.SyncResult{kubecontainer.NewSyncResult(kubecontainer.KillContainer, "app"), kubecontainer.NewSyncResult(kubecontainer.KillContainer, "proxy"), kubecontainer.NewSyncResult(kubecontainer.KillPodSandbox, n.pod.UID)}, result.SyncResults)
		_, kept := n.kubegrace().Termination(n.pod)
		require.False(t, kept, "a killed pod is forgotten")
	})
}

// An override replaces the grace period of a pod, as in an eviction. The hook would take 10 s: 60 - 10 = 50 s remain for the
// stop, 7 s cut the hook, and 0 leaves no time for it. The stop has at least 2 s.
func TestAnOverrideReplacesTheGracePeriod(t *testing.T) {
	for override, want := range map[int64]int64{60: 50, 7: 2, 0: 2} {
		t.Run(fmt.Sprint(override, " s"), func(t *testing.T) {
			onNode(t, 30, func(t *testing.T, n *node) {
				n.addMain("app", script{}).Lifecycle = sleeping(10)
				began := time.Now()
				require.NoError(t, errorOf(n.killPodWithSyncResult(t.Context(), n.pod, n.running, &override)))
				require.Equal(t, map[string]int64{"app": want}, n.stopTimeouts())
				require.Equal(t, time.Second*time.Duration(min(override, 10)), time.Since(began))
			})
		})
	}
}

// The sandbox of a pod without containers is stopped. A missing sandbox is no error. Another error of the runtime is in the
// result.
func TestThePodsSandboxIsStoppedWithoutContainers(t *testing.T) {
	onNode(t, 30, func(t *testing.T, n *node) {
		n.runtime.sandboxErr = status.Error(codes.NotFound, "no such sandbox")
		require.NoError(t, errorOf(n.killPodWithSyncResult(t.Context(), n.pod, n.running, nil)))
		require.Equal(t, []string{"sandbox"}, n.runtime.sandboxes)
		n.runtime.sandboxErr = errors.New("the sandbox is busy")
		require.EqualError(t, errorOf(n.killPodWithSyncResult(t.Context(), n.pod, n.running, nil)),
			`failed to "KillPodSandbox" for "u-1" with KillPodSandboxError: "the sandbox is busy"`)
	})
}

// If a container cannot be stopped, the result names it and the sandbox is stopped anyway. The next kill does not run the
// container's hook of 3 s again.
func TestARepeatedKillRunsNoHookAgain(t *testing.T) {
	onNode(t, 30, func(t *testing.T, n *node) {
		n.addMain("stuck", script{fails: true}).Lifecycle = sleeping(3)
		n.addMain("app", script{})
		result := n.killPodWithSyncResult(t.Context(), n.pod, n.running, nil)
		// The results are those of stuck, of app and of the sandbox.
		require.ErrorIs(t, result.SyncResults[0].Error, kubecontainer.ErrKillContainer)
		require.Equal(t, "the runtime is unavailable", result.SyncResults[0].Message, "the unchanged error of the runtime")
		require.NoError(t, result.SyncResults[1].Error)
		require.NoError(t, result.SyncResults[2].Error)
		require.Equal(t, []string{"sandbox"}, n.runtime.sandboxes)

		n.runtime.remove("stuck")
		began := time.Now()
		result = n.killPodWithSyncResult(t.Context(), n.pod, n.running, nil)
		require.NoError(t, result.Error())
		require.Less(t, time.Since(began), 3*time.Second, "the hook would take 3 s")
	})
}

// The context ends 1 s after the begin of a kill that takes 10 s. That ends the wait for the kill, but not the kill. A second
// kill waits for the end of the first, and does not stop the container again.
func TestAKillContinuesAfterItsContextEnds(t *testing.T) {
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

// orderingCase is one of the kubelet's cases for the stop order.
type orderingCase struct {
	Test string
	In   struct {
		Sidecars, Main []string
		Waits          map[string]int64
		MainExitAfter  float64 `json:"main_exit_after"`
		Grace          int64   `json:"grace_each"`
		ExitAfter      float64 `json:"each_exits_after_its_turn"`
	}
	Want map[string]int64 // seconds from the begin of the kill until each container is stopped
}

// The kubelet's cases for the stop order: the main containers are stopped at once, and then the sidecars, the last one
// first, each after the one before has exited, or when the grace period is over. All containers of a case take the same
// time to exit.
func TestTerminationOrderVectors(t *testing.T) {
	cases := vectors.Read[struct {
		Cases []orderingCase `json:"termination_ordering"`
	}](t, "lifecycle/testdata/ordering.yaml").Cases
	require.Len(t, cases, 3)
	for _, c := range cases {
		t.Run(c.Test, func(t *testing.T) {
			grace := max(c.In.Grace, c.In.Waits["init"]) // a case has one of them
			onNode(t, grace, func(t *testing.T, n *node) {
				how := script{takes: time.Duration(max(c.In.ExitAfter, c.In.MainExitAfter) * float64(time.Second))}
				for _, name := range c.In.Sidecars {
					n.addSidecar(name, how)
				}
				for _, name := range c.In.Main {
					n.addMain(name, how)
				}
				began := time.Now()
				require.NoError(t, errorOf(n.killPodWithSyncResult(t.Context(), n.pod, n.running, nil)))
				stopped := map[string]int64{}
				for _, stop := range n.runtime.recordedStops() {
					stopped[stop.id] = int64(stop.at.Sub(began).Seconds())
				}
				require.Equal(t, c.Want, stopped)
			})
		})
	}
}

// If the gate is off, the kubelet's own code kills: here a stand-in that fails with errStock.
func TestTheGateSelectsTheKill(t *testing.T) {
	onNode(t, 30, func(t *testing.T, n *node) {
		n.addMain("app", script{})
		vectors.SetGate(t, kubegrace.Termination, false)
		require.ErrorIs(t, n.killNamed(t, "app", reasonUnknown, nil), errStock)
		require.ErrorContains(t, errorOf(n.killPodWithSyncResult(t.Context(), n.pod, n.running, nil)), errStock.Error())
	})
}

// A failed StopContainer is not repeated. Its error is returned at once.
func TestAFailedStopIsNotRepeated(t *testing.T) {
	onNode(t, 30, func(t *testing.T, n *node) {
		n.addMain("app", script{fails: true})
		began := time.Now()
		require.EqualError(t, n.killNamed(t, "app", reasonUnknown, nil), "the runtime is unavailable")
		require.EqualError(t, errorOf(n.killPodWithSyncResult(t.Context(), n.pod, n.running, nil)),
			`failed to "KillContainer" for "app" with KillContainerError: "the runtime is unavailable"`)
		require.Zero(t, time.Since(began))
		require.Len(t, n.runtime.recordedStops(), 2, "one for each kill")
	})
}

// A kill that follows a failed one has the whole grace period and records a Killing event. There is no event FailedKillPod:
// the kubelet's SyncTerminatingPod records that.
func TestARepeatedKillHasTheWholeGracePeriod(t *testing.T) {
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

// The main container cannot be stopped, so the sidecar is not stopped before the grace period of 30 s is over. It then has
// the minimum of 2 s.
func TestASidecarWaitsForAContainerThatCannotBeStopped(t *testing.T) {
	onNode(t, 30, func(t *testing.T, n *node) {
		n.addSidecar("proxy", script{})
		n.addMain("app", script{fails: true})
		began := time.Now()
		require.ErrorContains(t, errorOf(n.killPodWithSyncResult(t.Context(), n.pod, n.running, nil)), "the runtime is unavailable")
		require.Equal(t, map[string]int64{"app": 30, "proxy": 2}, n.stopTimeouts())
		require.Equal(t, 30*time.Second, time.Since(began))
	})
}

// A grace period of 0, as after a sandbox change, leaves no time: no hook runs, and the sidecar does not wait for the main
// container. A pod without a grace period has the minimum of 2 s, in which the hook begins and is cut. The runtime fails
// to stop app, so the result has its error; it is asked with the kubelet's minimum of 2 s in both cases.
func TestKillPodWithoutAGracePeriod(t *testing.T) {
	for name, c := range map[string]struct {
		grace *int64        // of the pod's spec
		took  time.Duration // by the kill
		hooks []string      // that have begun
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

// A kill runs its hooks with the runner that the manager has when the kill begins.
func TestEachKillUsesTheCurrentRunner(t *testing.T) {
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

// The kill of a container that ignores SIGTERM begins with 600 s. After 5 s the grace period is shortened to 1 s, and the
// kill ends soon after: within 10 s in all. Shortening that of an unknown pod does nothing.
func TestAShortenedGracePeriodAppliesAtOnce(t *testing.T) {
	onNode(t, 600, func(t *testing.T, n *node) {
		n.addMain("app", script{takes: time.Hour})
		began := time.Now()
		time.AfterFunc(5*time.Second, func() { n.ShortenGracePeriod(n.pod, 1) })
		require.NoError(t, errorOf(n.killPodWithSyncResult(t.Context(), n.pod, n.running, nil)))
		require.Less(t, time.Since(began), 10*time.Second)
		n.ShortenGracePeriod(&v1.Pod{ObjectMeta: metav1.ObjectMeta{UID: "another"}}, 1)
	})
}

// A StopContainer that hangs returns when the CRI client gives up, 2 minutes after the timeout of 30 s: after 150 s. Its error
// is that of the kill. The next kill has the whole grace period again, as in the kubelet.
func TestAStopThatTimesOutFailsTheKill(t *testing.T) {
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

// The container exits after 1 s, during its sleep hook of 10 s. The kill still takes 10 s, because the terminator has no
// ExitWatcher that would tell it of the exit.
func TestASleepHookContinuesAfterItsContainerHasExited(t *testing.T) {
	onNode(t, 30, func(t *testing.T, n *node) {
		n.addMain("app", script{}).Lifecycle = sleeping(10)
		time.AfterFunc(time.Second, func() { n.runtime.remove("app") })
		began := time.Now()
		require.NoError(t, errorOf(n.killPodWithSyncResult(t.Context(), n.pod, n.running, nil)))
		require.Equal(t, 10*time.Second, time.Since(began))
	})
}

// A hook that would take 60 s uses up the grace period of 5 s and is cancelled. That is no failure. The stop has the minimum
// of 2 s.
func TestAHookIsCancelledAtTheEndOfItsGracePeriod(t *testing.T) {
	onNode(t, 5, func(t *testing.T, n *node) {
		n.addMain("app", script{}).Lifecycle = sleeping(60)
		require.NoError(t, errorOf(n.killPodWithSyncResult(t.Context(), n.pod, n.running, nil)))
		require.Equal(t, []error{context.Canceled}, n.hooks.cancelled())
		require.Equal(t, map[string]int64{"app": 2}, n.stopTimeouts())
		require.Equal(t, []string{"Normal Killing Stopping container app"}, vectors.Events(n.events))
	})
}

// A container runs that is not in the pod's spec, so its hook is unknown. The kill of the pod stops it with the pod's whole
// grace period. A kill of that container alone succeeds too.
func TestAContainerThatTheSpecLacksIsStopped(t *testing.T) {
	onNode(t, 30, func(t *testing.T, n *node) {
		n.addRunning("gone", script{})
		require.NoError(t, errorOf(n.killPodWithSyncResult(t.Context(), n.pod, n.running, nil)))
		require.Equal(t, map[string]int64{"gone": 30}, n.stopTimeouts())
		require.NoError(t, n.killNamed(t, "gone", reasonUnknown, nil))
	})
}

// Of three sidecars the second is not running. The first still waits for the last, which takes 5 s to exit: 30 - 5 = 25 s
// remain for the first.
func TestTheOrderHoldsAcrossASidecarThatIsNotRunning(t *testing.T) {
	onNode(t, 30, func(t *testing.T, n *node) {
		n.addSidecar("first", script{})
		n.addSidecar("between", script{})
		n.addSidecar("last", script{takes: 5 * time.Second})
		n.addMain("app", script{})
		n.running.Containers = append(n.running.Containers[:1], n.running.Containers[2:]...) // without "between"
		require.NoError(t, errorOf(n.killPodWithSyncResult(t.Context(), n.pod, n.running, nil)))
		require.Equal(t, map[string]int64{"app": 30, "last": 30, "first": 25}, n.stopTimeouts())
	})
}

// A sidecar's hook takes 1.6 s, and the sidecar then waits another 1.6 s for the main container. The sum of 3.2 s is truncated
// to 3 s, so 27 s remain. If each was truncated, 28 s would remain.
func TestUsedTimeIsTruncatedOnce(t *testing.T) {
	onNode(t, 30, func(t *testing.T, n *node) {
		n.hooks.extra = 1600 * time.Millisecond // which the sleep hook of 0 s takes
		n.addSidecar("proxy", script{})
		n.pod.Spec.InitContainers[0].Lifecycle = sleeping(0)
		n.addMain("app", script{takes: 3200 * time.Millisecond})
		require.NoError(t, errorOf(n.killPodWithSyncResult(t.Context(), n.pod, n.running, nil)))
		require.Equal(t, map[string]int64{"app": 30, "proxy": 27}, n.stopTimeouts())
	})
}

// The kubelet names the containers of a kill. One that starts 1 s later is stopped not by that kill, but by the next one,
// with the whole grace period of 30 s.
func TestAContainerThatStartedLateIsStoppedByTheNextKill(t *testing.T) {
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

// If the kubelet does not know the pod, the Killing event has the container's field path in the restored spec.
func TestTheEventOfAContainerWithoutAPodHasItsFieldPath(t *testing.T) {
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
