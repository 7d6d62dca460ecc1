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
	"k8s.io/apimachinery/pkg/runtime"

	kubecontainer "k8s.io/kubernetes/pkg/kubelet/container"
	"k8s.io/kubernetes/pkg/kubelet/kubegrace"
	"k8s.io/kubernetes/pkg/vectors"
)

// The cases of the kubelet's TestKillContainerGracePeriod: the reason of the kill decides whether the grace period is
// that of the pod or of a probe. The container is stopped with that grace period.
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
		subtestWithGracePeriod(t, c.Name, 0, func(t *testing.T, n *node) {
			n.pod.Spec.TerminationGracePeriodSeconds = c.TGPS
			var noOverride *int64
			app := n.addMain("app", script{})
			app.LivenessProbe = &v1.Probe{TerminationGracePeriodSeconds: c.Live}
			app.StartupProbe = &v1.Probe{TerminationGracePeriodSeconds: c.Startup}
			require.Equal(t, c.Want, gracePeriodOf(n.pod, app, c.Reason))
			require.NoError(t, n.killNamed(t, "app", c.Reason, noOverride))
			require.Equal(t, map[string]int64{"app": c.Want}, n.stopTimeouts())
		})
	}
}

// The cases of the kubelet's TestKillContainer. The hook takes 10 s. Of the grace period of 30 s it leaves 20 s for the
// stop, and of an override of 60 s it leaves 50 s. An override of less than 10 s cuts the hook, and the stop then has
// the minimum of 2 s.
func TestKillContainer(t *testing.T) {
	for name, c := range map[string]struct {
		override    *int64        // of the grace period, in seconds
		stopTimeout int64         // in seconds
		hookTakes   time.Duration // the whole kill takes no longer: the container exits at once
	}{
		"no override":                                 {stopTimeout: 20, hookTakes: 10 * time.Second},
		"a longer override":                           {override: vectors.Seconds(60), stopTimeout: 50, hookTakes: 10 * time.Second},
		"an override shorter than the hook":           {override: vectors.Seconds(5), stopTimeout: 2, hookTakes: 5 * time.Second},
		"an override of 0, without time for the hook": {override: vectors.Seconds(0), stopTimeout: 2},
	} {
		subtestWithGracePeriod(t, name, 30, func(t *testing.T, n *node) {
			n.addMain("app", script{}).Lifecycle = sleeping(10)
			began := time.Now()
			require.NoError(t, n.killNamed(t, "app", reasonUnknown, c.override))
			require.Equal(t, c.hookTakes, time.Since(began))
			require.Equal(t, map[string]int64{"app": c.stopTimeout}, n.stopTimeouts())
			require.Equal(t, "Normal Killing Stopping container app", vectors.Events(n.events)[0])
		})
	}
}

// As in the kubelet's TestLifeCycleHook, an exec hook gets the container's ID with its Type. If the hook
// fails, an event says so, and the container is stopped anyway, with its 30 s.
func TestAFailedExecHookIsAnEvent(t *testing.T) {
	withGracePeriod(t, 30, func(t *testing.T, n *node) {
		n.hooks.err = errors.New("the hook failed")
		n.addMain("app", script{}).Lifecycle = &v1.Lifecycle{PreStop: &v1.LifecycleHandler{Exec: &v1.ExecAction{Command: []string{"PreStop.sh"}}}}
		require.NoError(t, n.kill(t, "app"))
		require.Equal(t, []string{"containerd://app"}, n.hooks.ran)
		require.Equal(t, map[string]int64{"app": 30}, n.stopTimeouts())
		require.Equal(t, []string{"Normal Killing Stopping container app", "Warning FailedPreStopHook PreStopHook failed"}, vectors.Events(n.events))
	})
}

// The kubelet believes that the container app runs, but the runtime does not have it (remove): StopContainer answers
// NotFound. The kill of the container succeeds.
func TestAMissingContainerIsNoError(t *testing.T) {
	withGracePeriod(t, 30, func(t *testing.T, n *node) {
		n.addMain("app", script{})
		n.runtime.remove("app")
		require.NoError(t, n.kill(t, "app"))
	})
}

// killOrphan kills a container whose pod the kubelet does not know.
func (n *node) killOrphan(t *testing.T, name string) error {
	t.Helper()
	var (
		noPod      *v1.Pod
		noOverride *int64
	)
	id := kubecontainer.ContainerID{Type: "containerd", ID: name}
	return n.killContainer(t.Context(), noPod, id, name, defaultMessage, reasonUnknown, noOverride, noOrdering())
}

// The kubelet no longer knows the pod of a container. The container's labels have the grace period of 30 s and the
// hook, which takes 3 s: 27 s remain for the stop. The kill of a container without labels fails.
func TestAContainerWithoutAPodIsKilledByItsLabels(t *testing.T) {
	withGracePeriod(t, 30, func(t *testing.T, n *node) {
		n.addMain("app", script{}).Lifecycle = sleeping(3)
		n.restored = func(_ context.Context, id kubecontainer.ContainerID) (*v1.Pod, *v1.Container, error) {
			if id.ID != "app" {
				return nil, nil, errors.New("the container has no labels")
			}
			pod := n.pod.DeepCopy()
			pod.Spec.Containers = nil
			return pod, &n.pod.Spec.Containers[0], nil
		}
		require.NoError(t, n.killOrphan(t, "app"))
		require.Equal(t, map[string]int64{"app": 27}, n.stopTimeouts())
		require.EqualError(t, n.killOrphan(t, "unlabelled"), "the container has no labels")
	})
}

// A pod has two containers and a sandbox. As in the kubelet's TestKillPod, the containers are stopped, each with the pod's
// 30 s, and then the sandbox. The result has an entry for each of the three. The terminator then forgets the pod.
func TestKillPodStopsContainersAndSandboxes(t *testing.T) {
	withGracePeriod(t, 30, func(t *testing.T, n *node) {
		n.addMain("app", script{})
		n.addMain("proxy", script{takes: 3 * time.Second})
		result := n.killRunning(t.Context(), n.running)
		require.NoError(t, result.Error())
		require.Equal(t, map[string]int64{"app": 30, "proxy": 30}, n.stopTimeouts())
		require.Equal(t, []string{"sandbox"}, n.runtime.sandboxes)
		require.Equal(t, []*kubecontainer.SyncResult{
			kubecontainer.NewSyncResult(kubecontainer.KillContainer, "app"),
			kubecontainer.NewSyncResult(kubecontainer.KillContainer, "proxy"),
			kubecontainer.NewSyncResult(kubecontainer.KillPodSandbox, n.pod.UID),
		}, result.SyncResults)
		_, isRemembered := n.kubegrace().Termination(n.pod)
		require.False(t, isRemembered, "a killed pod is forgotten")
	})
}

// An override replaces the grace period of a pod, as in an eviction. The hook would take 10 s. An override of 60 s
// leaves 50 s for the stop. One of 7 s cuts the hook, one of 0 s leaves it no time, and the stop then has the minimum
// of 2 s.
func TestAnOverrideReplacesTheGracePeriod(t *testing.T) {
	for override, stopTimeout := range map[int64]int64{60: 50, 7: 2, 0: 2} {
		subtestWithGracePeriod(t, fmt.Sprint(override, " s"), 30, func(t *testing.T, n *node) {
			n.addMain("app", script{}).Lifecycle = sleeping(10)
			began := time.Now()
			result := n.killPodWithSyncResult(t.Context(), n.pod, n.running, &override)
			require.NoError(t, result.Error())
			require.Equal(t, map[string]int64{"app": stopTimeout}, n.stopTimeouts())
			hookTakes := time.Second * time.Duration(min(override, 10))
			require.Equal(t, hookTakes, time.Since(began), "the container exits at once after the hook")
		})
	}
}

// A pod has a sandbox, but no containers. Its kill stops the sandbox. The runtime first answers that it does not have the
// sandbox, which is no error. Then it answers with another error, which is in the result.
func TestThePodsSandboxIsStoppedWithoutContainers(t *testing.T) {
	withGracePeriod(t, 30, func(t *testing.T, n *node) {
		n.runtime.sandboxErr = status.Error(codes.NotFound, "no such sandbox")
		require.NoError(t, n.killPod(t))
		require.Equal(t, []string{"sandbox"}, n.runtime.sandboxes)

		n.runtime.sandboxErr = errors.New("the sandbox is busy")
		require.EqualError(t, n.killPod(t), `failed to "KillPodSandbox" for "u-1" with KillPodSandboxError: "the sandbox is busy"`)
	})
}

// A pod has a container "stuck", whose stop fails. The result of its kill has the runtime's error, and the other container
// and the sandbox are stopped anyway.
func TestTheOthersAreStoppedIfAStopFails(t *testing.T) {
	withGracePeriod(t, 30, func(t *testing.T, n *node) {
		n.addMain("stuck", script{fails: true})
		n.addMain("app", script{})
		results := n.killRunning(t.Context(), n.running).SyncResults
		require.Len(t, results, 3)
		stuck, app, sandbox := results[0], results[1], results[2]
		require.ErrorIs(t, stuck.Error, kubecontainer.ErrKillContainer)
		require.Equal(t, "the runtime is unavailable", stuck.Message, "the unchanged error of the runtime")
		require.NoError(t, app.Error)
		require.NoError(t, sandbox.Error)
		require.Equal(t, []string{"sandbox"}, n.runtime.sandboxes)
	})
}

// The kill of a pod fails after the hook of its container has run. The container then ends. The second kill succeeds, and
// does not run the hook again.
func TestARepeatedKillRunsNoHookAgain(t *testing.T) {
	withGracePeriod(t, 30, func(t *testing.T, n *node) {
		n.addMain("app", script{fails: true}).Lifecycle = sleeping(3)
		require.ErrorContains(t, n.killPod(t), "the runtime is unavailable")
		n.runtime.remove("app")
		require.NoError(t, n.killPod(t))
		require.Equal(t, []string{"containerd://app"}, n.hooks.ran, "the hook of app, once")
	})
}

// A kill takes 10 s, and its context ends after 1 s. The end of the context ends only the wait for the kill: the call
// returns an error, and the kill continues. A second call waits for the end of the kill, and does not stop the
// container again.
func TestAKillContinuesAfterItsContextEnds(t *testing.T) {
	withGracePeriod(t, 30, func(t *testing.T, n *node) {
		n.addMain("app", script{takes: 10 * time.Second})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		result := n.killRunning(ctx, n.running)
		require.ErrorContains(t, result.Error(), "timeout waiting to kill pod: containers that have not ended: shop/web/app")

		require.NoError(t, n.killPod(t))
		require.Len(t, n.runtime.recordedStops(), 1, "stops of the container")
	})
}

// orderingCase is one of the kubelet's cases for the stop order.
type orderingCase struct {
	Test string
	In   struct {
		Sidecars, Main []string
		Waits          map[string]int64 // the grace period of each container, in seconds; empty: Grace is set
		MainExitAfter  float64          `json:"main_exit_after"`
		Grace          int64            `json:"grace_each"`
		ExitAfter      float64          `json:"each_exits_after_its_turn"`
	}
	Want map[string]int64 // seconds from the beginning of the kill until each container is stopped
}

// The kubelet's cases for the stop order. The main containers are stopped at once. When they have exited, the sidecars
// are stopped in reverse order, each when the previously stopped one has exited. When the grace period is over, all
// that still wait are stopped. All containers of a case take the same time to exit.
func TestTerminationOrderVectors(t *testing.T) {
	cases := vectors.Read[struct {
		Cases []orderingCase `json:"termination_ordering"`
	}](t, "lifecycle/testdata/ordering.yaml").Cases
	require.Len(t, cases, 3)
	for _, c := range cases {
		t.Run(c.Test, func(t *testing.T) {
			grace := max(c.In.Grace, c.In.Waits["init"]) // a case has one of them
			withGracePeriod(t, grace, func(t *testing.T, n *node) {
				exitTime := time.Duration(max(c.In.ExitAfter, c.In.MainExitAfter) * float64(time.Second)) // a case has one of them
				for _, name := range c.In.Sidecars {
					n.addSidecar(name, script{takes: exitTime})
				}
				for _, name := range c.In.Main {
					n.addMain(name, script{takes: exitTime})
				}
				began := time.Now()
				require.NoError(t, n.killPod(t))
				stopped := map[string]int64{}
				for _, stop := range n.runtime.recordedStops() {
					stopped[stop.id] = int64(stop.at.Sub(began).Seconds())
				}
				require.Equal(t, c.Want, stopped)
			})
		})
	}
}

// The gate is off, so that the kubelet's own code kills containers and pods. In this module that code is only a stand-in,
// which fails with errStock.
func TestTheGateSelectsTheKill(t *testing.T) {
	withGracePeriod(t, 30, func(t *testing.T, n *node) {
		n.addMain("app", script{})
		vectors.SetGate(t, kubegrace.Termination, false)
		require.ErrorIs(t, n.kill(t, "app"), errStock)
		require.ErrorContains(t, n.killPod(t), errStock.Error())
	})
}

// StopContainer fails. The kill of the container returns the error at once, without a second StopContainer, and so does
// the kill of its pod.
func TestAFailedStopIsNotRepeated(t *testing.T) {
	withGracePeriod(t, 30, func(t *testing.T, n *node) {
		n.addMain("app", script{fails: true})
		began := time.Now()
		require.EqualError(t, n.kill(t, "app"), "the runtime is unavailable")
		require.EqualError(t, n.killPod(t), `failed to "KillContainer" for "app" with KillContainerError: "the runtime is unavailable"`)
		require.Zero(t, time.Since(began))
		require.Len(t, n.runtime.recordedStops(), 2, "one for each kill")
	})
}

// The kill of a pod fails, and is repeated after 10 s. Each kill has the whole grace period of 30 s and records a
// Killing event. Neither records FailedKillPod: the kubelet's SyncTerminatingPod does.
func TestARepeatedKillHasTheWholeGracePeriod(t *testing.T) {
	withGracePeriod(t, 30, func(t *testing.T, n *node) {
		n.addMain("app", script{fails: true})
		require.Error(t, n.killPod(t))
		<-time.After(10 * time.Second)
		require.Error(t, n.killPod(t))

		require.Equal(t, []string{"Normal Killing Stopping container app", "Normal Killing Stopping container app"}, vectors.Events(n.events))
		for _, stop := range n.runtime.recordedStops() {
			require.EqualValues(t, 30, stop.timeout, "seconds, the whole grace period")
		}
	})
}

// The main container cannot be stopped, so the sidecar is not stopped before the grace period of 30 s is over. It then
// has the minimum of 2 s.
func TestASidecarWaitsForAContainerThatCannotBeStopped(t *testing.T) {
	withGracePeriod(t, 30, func(t *testing.T, n *node) {
		n.addSidecar("proxy", script{})
		n.addMain("app", script{fails: true})
		began := time.Now()
		require.ErrorContains(t, n.killPod(t), "the runtime is unavailable")
		require.Equal(t, map[string]int64{"app": 30, "proxy": 2}, n.stopTimeouts())
		require.Equal(t, 30*time.Second, time.Since(began))
	})
}

// A pod with a grace period of 0, as after a sandbox change, has no time: no hook runs, and the sidecar does not wait
// for the main container. A pod whose spec has no grace period has 2 s, in which the hook begins and is cut. In both cases
// each container is stopped with the kubelet's minimum of 2 s.
func TestKillPodWithoutAGracePeriod(t *testing.T) {
	for name, c := range map[string]struct {
		specGrace  *int64 // in seconds
		killTakes  time.Duration
		begunHooks []string // the IDs of their containers
	}{
		"a grace period of 0": {specGrace: vectors.Seconds(0)},
		"no grace period":     {killTakes: 2 * time.Second, begunHooks: []string{"containerd://app"}},
	} {
		subtestWithGracePeriod(t, name, 0, func(t *testing.T, n *node) {
			n.pod.Spec.TerminationGracePeriodSeconds = c.specGrace
			n.addSidecar("proxy", script{})
			n.addMain("app", script{fails: true}).Lifecycle = sleeping(10)
			began := time.Now()
			require.ErrorContains(t, n.killPod(t), "the runtime is unavailable")
			require.Equal(t, map[string]int64{"app": 2, "proxy": 2}, n.stopTimeouts())
			require.Equal(t, c.killTakes, time.Since(began))
			require.Equal(t, c.begunHooks, n.hooks.ran)
		})
	}
}

// The manager's runner of hooks is replaced between two kills. Each kill uses the runner that the manager has when the
// kill begins.
func TestEachKillUsesTheCurrentRunner(t *testing.T) {
	withGracePeriod(t, 30, func(t *testing.T, n *node) {
		n.addMain("app", script{}).Lifecycle = sleeping(1)
		n.addMain("proxy", script{}).Lifecycle = sleeping(1)
		require.NoError(t, n.kill(t, "app"))
		newRunner := &hookFake{}
		n.runner = newRunner
		require.NoError(t, n.kill(t, "proxy"))
		require.Equal(t, []string{"containerd://app"}, n.hooks.ran)
		require.Equal(t, []string{"containerd://proxy"}, newRunner.ran)
	})
}

// A pod whose container takes an hour to exit is killed with a grace period of 600 s. After 5 s the grace period is
// shortened to 1 s: the kill ends soon, within 10 s of its beginning.
func TestAShortenedGracePeriodAppliesAtOnce(t *testing.T) {
	withGracePeriod(t, 600, func(t *testing.T, n *node) {
		n.addMain("app", script{takes: time.Hour})
		began := time.Now()
		time.AfterFunc(5*time.Second, func() { n.ShortenGracePeriod(n.pod, 1) })
		require.NoError(t, n.killPod(t))
		require.Less(t, time.Since(began), 10*time.Second)
	})
}

// The grace period of a pod is shortened to 1 s before the pod is killed. This does nothing: the kill has 30 s.
func TestAGracePeriodIsShortenedOnlyInAKill(t *testing.T) {
	withGracePeriod(t, 30, func(t *testing.T, n *node) {
		n.addMain("app", script{})
		n.ShortenGracePeriod(n.pod, 1)
		require.NoError(t, n.killPod(t))
		require.Equal(t, map[string]int64{"app": 30}, n.stopTimeouts())
	})
}

// StopContainer hangs. It fails when the CRI client gives up, 2 minutes after the stop's timeout of 30 s: after 150 s.
// The kill returns its error. The next kill has the whole grace period again, as in the kubelet.
func TestAStopThatTimesOutFailsTheKill(t *testing.T) {
	withGracePeriod(t, 30, func(t *testing.T, n *node) {
		n.addMain("app", script{hangs: true})
		for range 2 { // kills
			began := time.Now()
			require.EqualError(t, n.kill(t, "app"), "rpc error: code = DeadlineExceeded desc = context deadline exceeded")
			require.Equal(t, 30*time.Second+2*time.Minute, time.Since(began))
		}

		stops := n.runtime.recordedStops()
		require.Len(t, stops, 2)
		require.EqualValues(t, 30, stops[1].timeout, "seconds, the whole grace period")
		require.Equal(t, []string{"Normal Killing Stopping container app", "Normal Killing Stopping container app"}, vectors.Events(n.events))
	})
}

// The container exits after 1 s, during its sleep hook of 10 s. The kill still takes 10 s, because the terminator has
// no ExitWatcher that would tell it of the exit.
func TestASleepHookContinuesAfterItsContainerHasExited(t *testing.T) {
	withGracePeriod(t, 30, func(t *testing.T, n *node) {
		n.addMain("app", script{}).Lifecycle = sleeping(10)
		time.AfterFunc(time.Second, func() { n.runtime.remove("app") })
		began := time.Now()
		require.NoError(t, n.killPod(t))
		require.Equal(t, 10*time.Second, time.Since(began))
	})
}

// A hook that would take 60 s is cancelled at the end of the grace period of 5 s. The cancelled hook is no failure:
// there is no event FailedPreStopHook. The stop has the minimum of 2 s.
func TestAHookIsCancelledAtTheEndOfItsGracePeriod(t *testing.T) {
	withGracePeriod(t, 5, func(t *testing.T, n *node) {
		n.addMain("app", script{}).Lifecycle = sleeping(60)
		require.NoError(t, n.killPod(t))
		require.Equal(t, []error{context.Canceled}, n.hooks.cancelled())
		require.Equal(t, map[string]int64{"app": 2}, n.stopTimeouts())
		require.Equal(t, []string{"Normal Killing Stopping container app"}, vectors.Events(n.events))
	})
}

// A running container is not in the pod's spec, so its hook is unknown. The kill of the pod stops the container with
// the pod's whole grace period. A kill of the container alone succeeds too.
func TestAContainerThatTheSpecLacksIsStopped(t *testing.T) {
	withGracePeriod(t, 30, func(t *testing.T, n *node) {
		n.addRunning("gone", script{})
		require.NoError(t, n.killPod(t))
		require.Equal(t, map[string]int64{"gone": 30}, n.stopTimeouts())

		require.NoError(t, n.kill(t, "gone"))
	})
}

// Of three sidecars the second is not running. The first sidecar still waits for the last one, which takes 5 s to exit:
// 25 s of its 30 s remain for the first one.
func TestTheOrderHoldsAcrossASidecarThatIsNotRunning(t *testing.T) {
	withGracePeriod(t, 30, func(t *testing.T, n *node) {
		n.addSidecar("first", script{})
		n.addSidecar("between", script{})
		n.addSidecar("last", script{takes: 5 * time.Second})
		n.addMain("app", script{})
		n.running.Containers = append(n.running.Containers[:1], n.running.Containers[2:]...) // without "between"
		require.NoError(t, n.killPod(t))
		require.Equal(t, map[string]int64{"app": 30, "last": 30, "first": 25}, n.stopTimeouts())
	})
}

// A sidecar's hook takes 1.6 s, and the sidecar then waits another 1.6 s for the main container. The sum of 3.2 s is
// truncated to 3 s, so 27 s of 30 s remain. If each part were truncated to 1 s, 28 s would remain.
func TestUsedTimeIsTruncatedOnce(t *testing.T) {
	withGracePeriod(t, 30, func(t *testing.T, n *node) {
		n.hooks.extra = 1600 * time.Millisecond // so long does the sleep hook of 0 s take
		n.addSidecar("proxy", script{})
		n.pod.Spec.InitContainers[0].Lifecycle = sleeping(0)
		n.addMain("app", script{takes: 3200 * time.Millisecond})
		require.NoError(t, n.killPod(t))
		require.Equal(t, map[string]int64{"app": 30, "proxy": 27}, n.stopTimeouts())
	})
}

// The kubelet lists the containers to stop when a kill begins. A container that starts 1 s later is not stopped by this
// kill. The next kill stops it, with the whole grace period of 30 s.
func TestAContainerThatStartedLateIsStoppedByTheNextKill(t *testing.T) {
	withGracePeriod(t, 30, func(t *testing.T, n *node) {
		n.addMain("app", script{takes: 10 * time.Second})
		killed := make(chan error, 1)
		running := n.running
		go func() {
			result := n.killRunning(t.Context(), running)
			killed <- result.Error()
		}()

		<-time.After(time.Second)
		n.addMain("late", script{})
		require.NoError(t, <-killed)
		require.NotContains(t, n.stopTimeouts(), "late")

		require.NoError(t, n.killPod(t))
		require.EqualValues(t, 30, n.stopTimeouts()["late"], "seconds")
	})
}

// The kubelet does not know the pod of a container, and restores the pod's spec from the container's labels (restored). The
// Killing event refers to the container by its field path in that spec, spec.containers{app}.
func TestTheEventOfAContainerWithoutAPodHasItsFieldPath(t *testing.T) {
	withGracePeriod(t, 30, func(t *testing.T, n *node) {
		n.addMain("app", script{})
		var objects []any
		n.recorder = recorderOf(n.events, func(object runtime.Object) { objects = append(objects, object) })
		n.restored = func(context.Context, kubecontainer.ContainerID) (*v1.Pod, *v1.Container, error) {
			return n.pod.DeepCopy(), &v1.Container{Name: "app"}, nil
		}
		require.NoError(t, n.killOrphan(t, "app"))
		require.Equal(t, "spec.containers{app}", objects[0].(*v1.ObjectReference).FieldPath)
	})
}
