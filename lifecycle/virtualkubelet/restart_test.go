//go:build go1.25

package virtualkubelet_test

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/kubegrace/kubegrace/lifecycle/lifecycletest"
	"github.com/kubegrace/kubegrace/lifecycle/virtualkubelet"
)

// startTimes returns when starts of containers with this name have begun, since the beginning of the test.
func (b *testbed) startTimes(name string) (times []time.Duration) {
	b.rt.change(func() {
		for _, start := range b.rt.starts {
			if start.name == name {
				times = append(times, start.at.Sub(b.began))
			}
		}
	})
	return times
}

// restartingPod returns a pod with restart policy Always.
func restartingPod(containers ...v1.Container) *v1.Pod {
	pod := podOf(containers...)
	pod.Spec.RestartPolicy = v1.RestartPolicyAlways
	return pod
}

// The back-off is the kubelet's: none, then 10, 20, 40, 80, 160 s and so on, at most 5 min, and none after a run of more than
// 10 min. A start comes after the run of 1 s and the back-off.
func TestRestartBackOff(t *testing.T) {
	inBubble(t, func(b *testbed) {
		b.rt.scripts["app"] = lifecycletest.Script{ExitAfter: second}
		b.create(restartingPod(container("app")))
		wait(1000 * second)
		var want []time.Duration
		next := time.Duration(0)
		for _, backOff := range []time.Duration{0, 10 * second, 20 * second, 40 * second, 80 * second, 160 * second, 300 * second, 300 * second, 300 * second} {
			want = append(want, next)
			next += second + backOff
		}
		require.Equal(b, want, b.startTimes("app"))

		// The next runs take 11 min.
		b.rt.change(func() { b.rt.scripts["app"] = lifecycletest.Script{ExitAfter: 11 * time.Minute} })
		wait(1300 * second)
		require.Equal(b, []time.Duration{next, next + 11*time.Minute}, b.startTimes("app")[9:], "no back-off")
	})
}

// Only a run of more than 10 min resets the back-off. After runs of 7 min (420 s) the pauses are 0, 10 and 20 s.
func TestARunOfSevenMinutesDoesNotResetTheBackOff(t *testing.T) {
	inBubble(t, func(b *testbed) {
		b.rt.scripts["app"] = lifecycletest.Script{ExitAfter: 7 * time.Minute}
		b.create(restartingPod(container("app")))
		wait(1300 * second)
		require.Equal(b, []time.Duration{0, (420 + 0) * second, (420 + 420 + 10) * second, (850 + 420 + 20) * second}, b.startTimes("app"))
	})
}

// The container runs from 0 to 1 s and from 1 to 2 s; the back-off of 10 s lasts until 12 s. During the back-off, at
// 5 s, the container has the status of a kubelet: waiting in CrashLoopBackOff, with the end of its last run and the
// number of restarts. At 12 s it runs for the third time.
func TestStatusOfARestartingContainer(t *testing.T) {
	inBubble(t, func(b *testbed) {
		b.rt.scripts["app"] = lifecycletest.Script{ExitAfter: second}
		b.rt.exitCodes["app"] = 3
		b.create(restartingPod(container("app")))
		wait(5 * second)
		require.Equal(b, v1.PodRunning, b.lastStatus().Phase)
		app := b.lastStatus().ContainerStatuses[0]
		require.Equal(b, &v1.ContainerStateWaiting{
			Reason: "CrashLoopBackOff", Message: "back-off 10s restarting failed container=app pod=pod_ns(uid)",
		}, app.State.Waiting)
		require.EqualValues(b, 3, app.LastTerminationState.Terminated.ExitCode)
		require.Equal(b, "virtual-kubelet://uid/app#1", app.LastTerminationState.Terminated.ContainerID)
		require.EqualValues(b, 1, app.RestartCount)
		require.False(b, app.Ready)

		wait(7 * second)
		app = b.lastStatus().ContainerStatuses[0]
		require.NotNil(b, app.State.Running)
		require.EqualValues(b, 2, app.RestartCount)
		require.EqualValues(b, 3, app.LastTerminationState.Terminated.ExitCode)
	})
}

// A container exits after 1 s. Whether it is started again depends on its own restart policy or its pod's,
// and on the exit code; an unknown exit code counts as a failure.
func TestRestartPolicies(t *testing.T) {
	const never, onFailure, always = v1.RestartPolicyNever, v1.RestartPolicyOnFailure, v1.RestartPolicyAlways
	const unknown = -1
	for name, test := range map[string]struct {
		policy   v1.RestartPolicy
		own      v1.ContainerRestartPolicy // of the container; "": none
		exitCode int32
		starts   int         // in 5 s
		phase    v1.PodPhase // at 5 s
	}{
		"always":                          {policy: always, starts: 2, phase: v1.PodRunning},
		"no policy is always":             {policy: "", starts: 2, phase: v1.PodRunning},
		"never":                           {policy: never, exitCode: 1, starts: 1, phase: v1.PodFailed},
		"on failure, succeeded":           {policy: onFailure, starts: 1, phase: v1.PodSucceeded},
		"on failure, failed":              {policy: onFailure, exitCode: 1, starts: 2, phase: v1.PodRunning},
		"on failure, exit code not known": {policy: onFailure, exitCode: unknown, starts: 2, phase: v1.PodRunning},
		"never, exit code not known":      {policy: never, exitCode: unknown, starts: 1, phase: v1.PodFailed},
		"its own policy against never":    {policy: never, own: v1.ContainerRestartPolicyAlways, starts: 2, phase: v1.PodRunning},
		"its own policy against always":   {policy: always, own: "Never", starts: 1, phase: v1.PodSucceeded},
		"its own policy, on failure only": {policy: always, own: "OnFailure", starts: 1, phase: v1.PodSucceeded},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(b *testbed) {
				b.rt.scripts["app"] = lifecycletest.Script{ExitAfter: second}
				b.rt.exitCodes["app"], b.rt.knowsNoExitCodes = test.exitCode, test.exitCode == unknown
				pod := podOf(container("app"))
				pod.Spec.RestartPolicy = test.policy
				if test.own != "" {
					pod.Spec.Containers[0].RestartPolicy = &test.own
				}
				b.create(pod)
				wait(5 * second)
				require.Len(b, b.startTimes("app"), test.starts)
				require.Equal(b, test.phase, b.lastStatus().Phase)
				if test.exitCode == unknown && test.phase == v1.PodFailed {
					require.EqualValues(b, 137, terminatedState(b, b.lastStatus(), "app").ExitCode)
					require.Equal(b, "ContainerStatusUnknown", terminatedState(b, b.lastStatus(), "app").Reason)
				}
			})
		})
	}
}

// The first restart of a container comes at once, the second 10 s after the end of a run. An init container, whose runs take
// 1 s, fails at 1 and 2 s and succeeds at 13 s. Then the others start. The runs of the sidecar take 4 s: they begin at 13 s, 17 s
// and, after a back-off of 10 s, 31 s. After the app's end at 33 s the sidecar does not restart.
func TestInitContainersAndSidecarsRestart(t *testing.T) {
	inBubble(t, func(b *testbed) {
		b.rt.scripts["init"] = lifecycletest.Script{ExitAfter: second}
		b.rt.scripts["proxy"] = lifecycletest.Script{ExitAfter: 4 * second}
		b.rt.scripts["app"] = lifecycletest.Script{ExitAfter: 20 * second}
		b.rt.exitCodes["init"] = 1
		pod := podOf(container("app"))
		pod.Spec.RestartPolicy = v1.RestartPolicyOnFailure
		pod.Spec.InitContainers = []v1.Container{container("init"), sidecar("proxy")}
		b.create(pod)
		wait(5 * second)
		b.rt.change(func() { b.rt.exitCodes["init"] = 0 })
		wait(20 * second) // until 25 s
		require.Equal(b, []time.Duration{13 * second, 17 * second}, b.startTimes("proxy"))
		require.Equal(b, v1.PodRunning, b.lastStatus().Phase)
		wait(10 * second) // until 35 s
		require.Equal(b, []time.Duration{13 * second, 17 * second, 31 * second}, b.startTimes("proxy"))
		wait(time.Minute)
		require.Equal(b, v1.PodSucceeded, b.lastStatus().Phase)
		require.Len(b, b.startTimes("proxy"), 3)
	})
}

// A pod has not completed while a container waits for its restart. At 15 s "other" has ended for good, and
// "app", which was started at 0, 1 and 12 s, waits in a back-off of 20 s.
func TestAPodInBackOffHasNotCompleted(t *testing.T) {
	inBubble(t, func(b *testbed) {
		b.rt.scripts["app"] = lifecycletest.Script{ExitAfter: second}
		b.rt.scripts["other"] = lifecycletest.Script{ExitAfter: 5 * second}
		pod := podOf(container("app"), container("other"))
		pod.Spec.Containers[0].RestartPolicy = ptr.To(v1.ContainerRestartPolicyAlways)
		b.create(pod)
		wait(15 * second)
		require.Len(b, b.startTimes("app"), 3)
		require.Equal(b, v1.PodRunning, b.lastStatus().Phase)
	})
}

// A container has run twice, until 2 s, and its pod is deleted during the back-off that follows. The pod ends at once,
// with the exit code and the time of the last run, and the container does not restart.
func TestADeletionEndsABackOff(t *testing.T) {
	inBubble(t, func(b *testbed) {
		b.rt.scripts["app"] = lifecycletest.Script{ExitAfter: second}
		b.rt.exitCodes["app"] = 3
		pod := restartingPod(container("app"))
		b.create(pod)
		wait(5 * second)
		b.deleteWithGrace(pod, 30)
		wait(second)
		require.Equal(b, v1.PodFailed, b.lastStatus().Phase)
		lastRun := terminatedState(b, b.lastStatus(), "app")
		require.EqualValues(b, 3, lastRun.ExitCode)
		require.True(b, lastRun.FinishedAt.Time.Equal(b.began.Add(2*second)))

		wait(time.Minute)
		require.Len(b, b.startTimes("app"), 2)
		require.Empty(b, b.stops())
	})
}

// The agent restarts while app, which has run twice, waits for its restart. The new agent starts it, and counts the restart. The
// other container runs on.
func TestAnAdoptedContainerInBackOffRestarts(t *testing.T) {
	inBubble(t, func(b *testbed) {
		b.rt.scripts["app"] = lifecycletest.Script{ExitAfter: second}
		b.create(restartingPod(container("other"), container("app")))
		wait(5 * second)
		b.rt.change(func() { b.rt.scripts["app"] = lifecycletest.Script{} })
		b.restartAgent(virtualkubelet.Adopted{Pod: b.currentPod(), Alive: true})
		other, app := b.lastStatus().ContainerStatuses[0], b.lastStatus().ContainerStatuses[1]
		require.NotNil(b, other.State.Running)
		require.NotNil(b, app.State.Running)
		require.EqualValues(b, 2, app.RestartCount)
		require.True(b, b.rt.wasStarted("uid/app#2"), "the third run")
		require.False(b, b.rt.wasStarted("uid/app#3"))
	})
}

// The first two starts of app fail. The back-off is that of restarts: none, and then 10 s, so that app runs after 10 s.
// The other container runs at once.
func TestAFailedStartIsRepeatedWithBackOff(t *testing.T) {
	inBubble(t, func(b *testbed) {
		var attempts atomic.Int32
		b.rt.beforeStart = func(_ context.Context, name string) error {
			if name == "app" && attempts.Add(1) <= 2 {
				return errors.New("no such image")
			}
			return nil
		}
		b.create(restartingPod(container("app"), container("other")))
		wait(second)
		status := b.lastStatus()
		require.NotNil(b, status.ContainerStatuses[1].State.Running)
		require.Equal(b, "StartError", status.ContainerStatuses[0].LastTerminationState.Terminated.Reason)
		wait(10 * second)
		require.NotNil(b, b.lastStatus().ContainerStatuses[0].State.Running)
	})
}

// 25 pods are created whose starts take a minute. Ten starts are in progress, and 15 pods wait. All pods are deleted: the ten
// starts are cancelled, and the 15 pods that wait are never started. A later pod starts at once.
func TestTenStartsAtMost(t *testing.T) {
	for kind, change := range runtimeKinds() {
		t.Run(kind, func(t *testing.T) {
			inBubble(t, func(b *testbed) {
				b.rt.startsTake(time.Minute)
				var pods []*v1.Pod
				for i := range 25 {
					pod := podNamed(strconv.Itoa(i), container("app"))
					pods = append(pods, pod)
					b.create(pod)
				}
				wait(5 * second)
				require.Len(b, b.rt.startedNames(), 10)
				for _, pod := range slices.Backward(pods) { // those that wait first, so that none starts in place of a cancelled one
					b.deleteWithGrace(pod, 1)
				}
				wait(5 * second)
				b.create(podOf(container("app")))
				wait(second)
				require.Len(b, b.rt.startedNames(), 10+1)
				wait(time.Minute)
				require.Equal(b, v1.PodRunning, b.podStatus("pod").Phase)
			}, change)
		})
	}
}

// podStatus returns the current status of a pod.
func (b *testbed) podStatus(name string) *v1.PodStatus {
	status, err := b.GetPodStatus(b.Context(), "ns", name)
	require.NoError(b, err)
	return status
}

// The runtime is listed every 5 s. The list of 10 s fails, so another one is requested 1 s later. It shows that the container,
// which exited at 7 s, has ended.
func TestAFailedListIsRepeatedAfterOneSecond(t *testing.T) {
	inBubble(t, func(b *testbed) {
		b.rt.cannotWatchExits = true
		b.rt.scripts["app"] = lifecycletest.Script{ExitAfter: 7 * second}
		b.create(podOf(container("app")))
		wait(9 * second)
		b.rt.SetLists(lifecycletest.Lists{Err: errAway})
		wait(1500 * time.Millisecond)
		b.rt.SetLists(lifecycletest.Lists{}) // lists succeed again
		wait(5 * second)
		require.Equal(b, v1.PodSucceeded, b.lastStatus().Phase)
		require.Equal(b, 11*second, b.lastNotification().at)
	})
}

// The container exits 1 s after each start, and ContainerEnded takes 5 s. The first exit is at 1 s, so the restart waits for
// ContainerEnded until 6 s. The second exit is at 7 s, and the pod is deleted then. Its end is reported when ContainerEnded has
// returned, at 12 s.
func TestContainerEndedPrecedesTheRestartAndTheStatus(t *testing.T) {
	inBubble(t, func(b *testbed) {
		b.rt.scripts["app"] = lifecycletest.Script{ExitAfter: second}
		pod := restartingPod(container("app"))
		b.create(pod)
		wait(4 * second)
		require.NotNil(b, b.lastStatus().ContainerStatuses[0].State.Running, "ContainerEnded has not returned")
		wait(3 * second)
		require.Equal(b, []time.Duration{0, (1 + 5) * second}, b.startTimes("app"))

		b.deleteWithGrace(pod, 30)
		wait(4 * second)
		require.Equal(b, v1.PodRunning, b.lastStatus().Phase)
		wait(10 * second)
		require.Equal(b, v1.PodSucceeded, b.lastStatus().Phase)
		require.Equal(b, (1+5+1+5)*second, b.lastNotification().at)
	}, func(o *virtualkubelet.Options) {
		o.ContainerEnded = func(ctx context.Context, _ *v1.Pod, _ *v1.Container, _ string) error {
			select {
			case <-time.After(5 * second):
			case <-ctx.Done():
			}
			return context.Cause(ctx)
		}
	})
}
