//go:build go1.25

package virtualkubelet_test

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/lifecycle/lifecycletest"
	"github.com/kubegrace/kubegrace/lifecycle/virtualkubelet"
	"github.com/kubegrace/kubegrace/shutdown"
)

// restartAgent closes the provider, and makes another one that adopts the pod.
func (b *testbed) restartAgent(adopted virtualkubelet.Adopted) {
	require.NoError(b, b.Close(b.Context()))
	b.Provider = b.newProvider()
	require.NoError(b, b.Adopt(b.Context(), adopted))
	synctest.Wait()
}

// currentPod returns the pod from its provider.
func (b *testbed) currentPod() *v1.Pod {
	pod, err := b.GetPod(b.Context(), "ns", "pod")
	require.NoError(b, err)
	return pod
}

// A pod with a sleep hook of 20 s is deleted with a grace period of 30 s, and the agent restarts at 17 s. The new agent runs
// the hook again, but does not start the grace period again, however often DeletePod is called: the hook is cut at 30 s, and
// the container, which ignores its stop signal, is killed after the minimum of 2 s, at 32 s.
func TestAnAdoptedDeletionHasTheRemainingTime(t *testing.T) {
	inBubble(t, func(b *testbed) {
		b.rt.scripts["app"] = lifecycletest.Script{IgnoreTerm: true}
		pod := podOf(withSleepHook("app", 20))
		b.create(pod)
		terminating := deleted(pod, 30, time.Now())
		require.NoError(b, b.DeletePod(b.Context(), terminating))
		wait(17 * second)
		b.restartAgent(virtualkubelet.Adopted{Pod: b.currentPod()})
		require.Empty(b, b.rt.Stops(), "the restart stops nothing")

		for range 3 {
			require.NoError(b, b.DeletePod(b.Context(), terminating))
			wait(second)
		}
		wait(time.Minute)
		require.Equal(b, []stop{{id: "uid/app", timeout: 2, at: 30 * second}}, b.stops())
		require.Equal(b, 32*second, b.lastNotification().at)
	})
}

// A pod is deleted with a grace period of 30 s. Its exec hook ends at once, so the container is stopped with 30 s, but ignores
// the stop signal. The agent restarts at 10 s. The runtime's list says that the hook has run (listsHooksAsDone), so the new
// agent runs no hook, and stops the container with the remaining 20 s.
func TestAnAdoptedPodDoesNotRepeatItsHook(t *testing.T) {
	inBubble(t, func(b *testbed) {
		b.rt.scripts["app"] = lifecycletest.Script{IgnoreTerm: true}
		pod := podOf(withExecHook("app"))
		b.create(pod)
		terminating := deleted(pod, 30, time.Now())
		require.NoError(b, b.DeletePod(b.Context(), terminating))
		wait(10 * second)
		b.rt.listsHooksAsDone = true
		b.restartAgent(virtualkubelet.Adopted{Pod: b.currentPod()})
		require.NoError(b, b.DeletePod(b.Context(), terminating))
		wait(time.Minute)
		require.Len(b, b.rt.Execs(), 1, "the hook ran once")
		require.Equal(b, []stop{{id: "uid/app", timeout: 30, at: 0}, {id: "uid/app", timeout: 20, at: 10 * second}}, b.stops(), "the stops of both agents")
	})
}

// An adopted pod is deleted with a grace period of 30 s. By its deletionTimestamp it was deleted 20 s ago, and only 10 s are
// left. If it may have been deleted before the agent started, it gets 10 s. If the agent has learnt since that the pod was
// not deleted, from Adopted.Alive or from a call of UpdatePod or CreatePod, only a difference of the clocks explains the
// timestamp: the pod gets 30 s.
func TestAnAdoptedPodKnownAsNotDeletedHasItsWholeGracePeriod(t *testing.T) {
	for name, test := range map[string]struct {
		alive         bool                          // Adopted.Alive
		betweenCall   func(*testbed, *v1.Pod) error // a call between Adopt and DeletePod that gets the pod as not deleted; nil: none
		wantedSeconds int64                         // the timeout of the stop
	}{
		"it may have been deleted earlier": {wantedSeconds: 10},
		"Adopted.Alive":                    {alive: true, wantedSeconds: 30},
		"UpdatePod": {betweenCall: func(b *testbed, pod *v1.Pod) error {
			return b.UpdatePod(b.Context(), pod)
		}, wantedSeconds: 30},
		"CreatePod": {betweenCall: func(b *testbed, pod *v1.Pod) error {
			return b.CreatePod(b.Context(), pod)
		}, wantedSeconds: 30},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(b *testbed) {
				b.rt.scripts["app"] = lifecycletest.Script{IgnoreTerm: true}
				pod := podOf(container("app"))
				b.create(pod)
				b.restartAgent(virtualkubelet.Adopted{Pod: b.currentPod(), Alive: test.alive})
				if test.betweenCall != nil {
					require.NoError(b, test.betweenCall(b, pod))
				}
				require.NoError(b, b.DeletePod(b.Context(), deleted(pod, 30, time.Now().Add(-20*second))))
				wait(time.Minute)
				require.Equal(b, []stop{{id: "uid/app", timeout: test.wantedSeconds, at: 0}}, b.stops())
			})
		})
	}
}

// A pod has two containers. "one" has ended with exit code 0. "two" vanishes from the runtime while no agent runs. Adopt takes
// the end of "one" from the pod's status. It reports "two" with an unknown exit code, so that the pod has failed. A second Adopt
// changes nothing.
func TestAdoptOfAPodThatHasEnded(t *testing.T) {
	inBubble(t, func(b *testbed) {
		b.rt.scripts["one"] = lifecycletest.Script{ExitAfter: second}
		pod := podOf(container("one"), container("two"))
		b.create(pod)
		wait(second)
		adopted := virtualkubelet.Adopted{Pod: b.currentPod()}
		require.NoError(b, b.Close(b.Context())) // no agent runs from now on
		b.rt.Remove("uid/two")

		b.restartAgent(adopted)
		status := b.lastStatus()
		require.Equal(b, v1.PodFailed, status.Phase)
		require.Equal(b, "Completed", terminatedState(b, status, "one").Reason)
		require.Equal(b, "ContainerStatusUnknown", terminatedState(b, status, "two").Reason)

		require.NoError(b, b.Adopt(b.Context(), virtualkubelet.Adopted{Pod: pod}))
		require.Equal(b, status, b.currentPod().Status)
	})
}

// A container is adopted 5 s after its start. Its status keeps the time of the start.
func TestAnAdoptedContainerKeepsItsStartTime(t *testing.T) {
	inBubble(t, func(b *testbed) {
		b.create(podOf(container("app")))
		before := b.currentPod()
		wait(5 * second)
		b.restartAgent(virtualkubelet.Adopted{Pod: before})
		require.Equal(b, before.Status.ContainerStatuses, b.currentPod().Status.ContainerStatuses)
	})
}

// The init container of an adopted pod is still running. The regular container waits for its end, and so has not
// started after a minute.
func TestAdoptWaitsForARunningInitContainer(t *testing.T) {
	inBubble(t, func(b *testbed) {
		pod := restartingPod(container("app"))
		pod.Spec.InitContainers = []v1.Container{container("init")}
		b.rt.Start(pod, "init", "uid/init", lifecycletest.Script{})
		pod.Status.InitContainerStatuses = []v1.ContainerStatus{{
			Name: "init", ContainerID: "virtual-kubelet://uid/init", State: v1.ContainerState{Running: &v1.ContainerStateRunning{}},
		}}
		require.NoError(b, b.Adopt(b.Context(), virtualkubelet.Adopted{Pod: pod, Alive: true}))
		wait(time.Minute)
		require.False(b, b.rt.wasStarted("uid/app"))
	})
}

// A pod has an init container and a regular one, app. The previous agent has started neither, the init container, or both.
// After Adopt the new agent starts what is missing:
//
//   - An init container that has failed restarts, unless the restart policy is Never: then the pod has failed.
//   - An init container without a status has succeeded if app was started.
//   - Admit is asked only if nothing was started. A pod whose start has begun runs even if Admit would refuse it.
//   - Nothing of a pod that was deleted or has ended is started.
func TestAdoptContinuesAnUnfinishedStart(t *testing.T) {
	const never, onFailure, always = v1.RestartPolicyNever, v1.RestartPolicyOnFailure, v1.RestartPolicyAlways
	notStarted, runs := v1.ContainerState{}, v1.ContainerState{Running: &v1.ContainerStateRunning{}}
	failed, succeeded := v1.ContainerState{Terminated: &v1.ContainerStateTerminated{ExitCode: 1}}, v1.ContainerState{Terminated: &v1.ContainerStateTerminated{}}
	for name, test := range map[string]struct {
		policy       v1.RestartPolicy
		init, app    v1.ContainerState // in the adopted status; zero: notStarted
		isAppListed  bool              // by the runtime
		hasEnded     bool              // the adopted pod is Failed
		admitRefuses bool
		isDeleted    bool
		want         v1.PodPhase // after 5 s
		wantStarted  []string    // by the new agent
	}{
		"init container runs":                          {policy: never, init: runs, admitRefuses: true, want: v1.PodRunning, wantStarted: []string{"app"}},
		"init container succeeded":                     {policy: never, init: succeeded, admitRefuses: true, want: v1.PodRunning, wantStarted: []string{"app"}},
		"init container failed":                        {policy: never, init: failed, want: v1.PodFailed},
		"init container failed, Always":                {policy: always, init: failed, want: v1.PodRunning, wantStarted: []string{"init", "app"}},
		"init container failed, OnFailure":             {policy: onFailure, init: failed, want: v1.PodRunning, wantStarted: []string{"init", "app"}},
		"init container without a status":              {policy: onFailure, init: notStarted, app: runs, isAppListed: true, want: v1.PodRunning},
		"app runs, its status is older than its start": {policy: onFailure, isAppListed: true, want: v1.PodRunning},
		"nothing started":                              {policy: never, want: v1.PodRunning, wantStarted: []string{"init", "app"}},
		"nothing started, refused":                     {policy: never, admitRefuses: true, want: v1.PodFailed},
		"nothing started, deleted":                     {policy: never, isDeleted: true, want: v1.PodFailed},
		"ended":                                        {policy: always, init: succeeded, app: failed, hasEnded: true, want: v1.PodFailed},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(b *testbed) {
				// The pod as the previous agent has left it.
				b.rt.scripts["init"] = lifecycletest.Script{ExitAfter: second}
				pod := podOf(container("app"))
				pod.Spec.RestartPolicy, pod.Spec.InitContainers = test.policy, []v1.Container{container("init")}
				if test.init != notStarted {
					pod.Status.InitContainerStatuses = []v1.ContainerStatus{{Name: "init", ContainerID: "virtual-kubelet://old", State: test.init}}
				}
				pod.Status.ContainerStatuses = []v1.ContainerStatus{{Name: "app", State: test.app}}
				if test.init == runs {
					b.rt.Start(pod, "init", "old", lifecycletest.Script{ExitAfter: second})
				}
				if test.isAppListed {
					b.rt.Start(pod, "app", "old app", lifecycletest.Script{})
				}
				if test.hasEnded {
					pod.Status.Phase = v1.PodFailed
				}
				if test.isDeleted {
					pod = deleted(pod, 30, time.Now())
				}

				require.NoError(b, b.Adopt(b.Context(), virtualkubelet.Adopted{Pod: pod, Alive: !test.isDeleted}))
				wait(5 * second)
				require.Equal(b, test.want, b.lastStatus().Phase)
				for _, name := range []string{"init", "app"} {
					require.Equal(b, slices.Contains(test.wantStarted, name), b.rt.wasStarted("uid/"+name), name)
				}
			}, func(o *virtualkubelet.Options) {
				o.Admit = func(*v1.Pod) shutdown.Admission {
					return shutdown.Admission{Admit: !test.admitRefuses, Reason: "NodeShutdown"}
				}
			})
		})
	}
}
