//go:build go1.25

package virtualkubelet_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/kubegrace/kubegrace/graceperiod"
	"github.com/kubegrace/kubegrace/lifecycle"
	"github.com/kubegrace/kubegrace/lifecycle/lifecycletest"
	"github.com/kubegrace/kubegrace/lifecycle/virtualkubelet"
	"github.com/kubegrace/kubegrace/shutdown"
)

// startTimes records when the containers of a name are started.
func (b *bed) startTimes(name string) func() []time.Duration {
	var mu sync.Mutex
	var times []time.Duration
	b.rt.start = func(_ context.Context, started string) error {
		mu.Lock()
		defer mu.Unlock()
		if started == name {
			times = append(times, b.elapsed())
		}
		return nil
	}
	return func() []time.Duration {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(times)
	}
}

// always is a pod whose containers are started again.
func always(containers ...v1.Container) *v1.Pod {
	pod := podOf(containers...)
	pod.Spec.RestartPolicy = v1.RestartPolicyAlways
	return pod
}

// The back-off is the kubelet's: none, 10 s, twice as much each time up to 5 min, and none again
// after 10 min of running.
func TestTheBackOffOfRestarts(t *testing.T) {
	inBubble(t, func(b *bed) {
		times := b.startTimes("app")
		b.rt.scripts["app"] = lifecycletest.Script{ExitAfter: second}
		b.create(always(plain("app")))
		wait(1000 * second)
		seconds := func(numbers ...int64) (spans []time.Duration) {
			for _, n := range numbers {
				spans = append(spans, graceperiod.Duration(n))
			}
			return spans
		}
		require.Equal(b, seconds(0, 1, 12, 33, 74, 155, 316, 617, 918), times())
		b.rt.change(func() { b.rt.scripts["app"] = lifecycletest.Script{ExitAfter: 11 * time.Minute} })
		wait(219*second + 661*second)
		require.Equal(b, seconds(1219, 1879), times()[9:], "after 11 minutes of running there is none")
		wait(661 * second)
		require.Equal(b, seconds(2539), times()[11:])
	})
}

// A run of less than ten minutes resets no back-off.
func TestTheBackOffAfterSevenMinutes(t *testing.T) {
	inBubble(t, func(b *bed) {
		times := b.startTimes("app")
		b.rt.scripts["app"] = lifecycletest.Script{ExitAfter: 7 * time.Minute}
		b.create(always(plain("app")))
		wait(1300 * second)
		require.Equal(b, []time.Duration{0, 420 * second, 850 * second, 1290 * second}, times())
	})
}

func TestWhatIsToldOfRestarts(t *testing.T) {
	inBubble(t, func(b *bed) {
		b.rt.scripts["app"] = lifecycletest.Script{ExitAfter: second}
		b.rt.codes["app"] = 3
		pod := always(plain("app"))
		b.create(pod)
		wait(5 * second)
		status := b.last().pod.Status
		app := status.ContainerStatuses[0]
		require.Equal(b, v1.PodRunning, status.Phase)
		require.Equal(b, &v1.ContainerStateWaiting{
			Reason: "CrashLoopBackOff", Message: "back-off 10s restarting failed container=app pod=pod_ns(uid)",
		}, app.State.Waiting)
		require.EqualValues(b, 3, app.LastTerminationState.Terminated.ExitCode)
		require.Equal(b, "virtual-kubelet://uid/app#1", app.LastTerminationState.Terminated.ContainerID)
		require.EqualValues(b, 1, app.RestartCount)
		require.False(b, app.Ready)
		wait(7 * second)
		app = b.last().pod.Status.ContainerStatuses[0]
		require.NotNil(b, app.State.Running)
		require.EqualValues(b, 2, app.RestartCount)
		require.EqualValues(b, 3, app.LastTerminationState.Terminated.ExitCode)
	})
}

func TestWhatIsStartedAgain(t *testing.T) {
	const never, onFailure, yes = v1.RestartPolicyNever, v1.RestartPolicyOnFailure, v1.RestartPolicyAlways
	for name, test := range map[string]struct {
		policy v1.RestartPolicy
		own    v1.ContainerRestartPolicy // of the container; "": none
		code   int32                     // -1: not known
		starts int                       // in 5 s
		phase  v1.PodPhase
	}{
		"always":                          {yes, "", 0, 2, v1.PodRunning},
		"no policy is always":             {"", "", 0, 2, v1.PodRunning},
		"never":                           {never, "", 1, 1, v1.PodFailed},
		"on failure, succeeded":           {onFailure, "", 0, 1, v1.PodSucceeded},
		"on failure, failed":              {onFailure, "", 1, 2, v1.PodRunning},
		"on failure, not known":           {onFailure, "", -1, 2, v1.PodRunning},
		"never, not known":                {never, "", -1, 1, v1.PodFailed},
		"its own policy against never":    {never, v1.ContainerRestartPolicyAlways, 0, 2, v1.PodRunning},
		"its own policy against always":   {yes, "Never", 0, 1, v1.PodSucceeded},
		"its own policy, on failure only": {yes, "OnFailure", 0, 1, v1.PodSucceeded},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(b *bed) {
				times := b.startTimes("app")
				b.rt.scripts["app"] = lifecycletest.Script{ExitAfter: second}
				b.rt.codes["app"], b.rt.codeless = test.code, test.code < 0
				pod := podOf(plain("app"))
				if pod.Spec.RestartPolicy = test.policy; test.own != "" {
					pod.Spec.Containers[0].RestartPolicy = &test.own
				}
				b.create(pod)
				wait(5 * second)
				require.Len(b, times(), test.starts)
				status := b.last().pod.Status
				require.Equal(b, test.phase, status.Phase)
				if test.code < 0 && test.phase == v1.PodFailed {
					require.EqualValues(b, 137, terminated(b, status, "app").ExitCode)
					require.Equal(b, "ContainerStatusUnknown", terminated(b, status, "app").Reason)
				}
			})
		})
	}
}

// An init container is started again until it succeeds, and a sidecar always, until its pod has
// completed.
func TestInitContainersAndSidecarsAreStartedAgain(t *testing.T) {
	inBubble(t, func(b *bed) {
		b.rt.scripts["init"] = lifecycletest.Script{ExitAfter: second}
		b.rt.scripts["proxy"] = lifecycletest.Script{ExitAfter: 4 * second}
		b.rt.scripts["app"] = lifecycletest.Script{ExitAfter: 20 * second}
		b.rt.codes["init"] = 1
		proxies := b.startTimes("proxy")
		pod := podOf(plain("app"))
		pod.Spec.RestartPolicy = v1.RestartPolicyOnFailure
		pod.Spec.InitContainers = []v1.Container{plain("init"), sidecar("proxy")}
		b.create(pod)
		wait(5 * second)
		require.Empty(b, proxies())
		b.rt.change(func() { b.rt.codes["init"] = 0 })
		wait(20 * second) // init at 0, 1 and 12 s; the others at 13 s
		require.Equal(b, []time.Duration{13 * second, 17 * second}, proxies())
		require.Equal(b, v1.PodRunning, b.last().pod.Status.Phase)
		wait(10 * second) // proxy is in its back-off from 21 to 31 s
		require.Equal(b, []time.Duration{13 * second, 17 * second, 31 * second}, proxies())
		wait(time.Minute)
		require.Equal(b, v1.PodSucceeded, b.last().pod.Status.Phase)
		require.Len(b, proxies(), 3, "not after the end of the pod")
	})
}

// A pod has not completed while a container waits for its restart.
func TestAnotherContainerEndsDuringABackOff(t *testing.T) {
	inBubble(t, func(b *bed) {
		times := b.startTimes("app")
		b.rt.scripts["app"] = lifecycletest.Script{ExitAfter: second}
		b.rt.scripts["other"] = lifecycletest.Script{ExitAfter: 5 * second}
		pod := podOf(plain("app"), plain("other"))
		pod.Spec.Containers[0].RestartPolicy = ptr.To(v1.ContainerRestartPolicyAlways)
		b.create(pod)
		wait(15 * second)
		require.Len(b, times(), 3)
		require.Equal(b, v1.PodRunning, b.last().pod.Status.Phase)
	})
}

// A pod that is deleted while a container waits for its restart ends at once, and as that
// container has ended.
func TestADeletionDuringABackOff(t *testing.T) {
	inBubble(t, func(b *bed) {
		times := b.startTimes("app")
		b.rt.scripts["app"] = lifecycletest.Script{ExitAfter: second}
		b.rt.codes["app"] = 3
		pod := always(plain("app"))
		b.create(pod)
		wait(5 * second)
		b.deletePod(pod, 30)
		wait(second)
		require.Equal(b, v1.PodFailed, b.last().pod.Status.Phase)
		require.EqualValues(b, 3, terminated(b, b.last().pod.Status, "app").ExitCode)
		require.True(b, terminated(b, b.last().pod.Status, "app").FinishedAt.Time.Equal(b.began.Add(2*second)))
		wait(time.Minute)
		require.Len(b, times(), 2)
		require.Empty(b, b.stops())
	})
}

// The same, for many pods at once.
func TestDeletionsDuringBackOffs(t *testing.T) {
	inBubble(t, func(b *bed) {
		b.rt.scripts["app"] = lifecycletest.Script{ExitAfter: second}
		b.rt.codes["app"] = 3
		var pods []*v1.Pod
		for i := range 200 {
			pod := always(plain("app"))
			pod.Name = fmt.Sprintf("pod-%d", i)
			pod.UID = types.UID(pod.Name)
			b.create(pod)
			pods = append(pods, pod)
		}
		wait(5 * second)
		var deletions sync.WaitGroup
		for _, pod := range pods {
			deletions.Go(func() {
				killed, err := b.KillPod(b.Context(), pod, shutdown.KillRequest{})
				require.NoError(b, err)
				require.EqualValues(b, 3, killed.Status.ContainerStatuses[0].State.Terminated.ExitCode)
			})
		}
		deletions.Wait()
	})
}

// An agent that is started again in a back-off starts the container again.
func TestARestartOfTheAgentDuringABackOff(t *testing.T) {
	inBubble(t, func(b *bed) {
		times := b.startTimes("app")
		b.rt.scripts["app"] = lifecycletest.Script{ExitAfter: second}
		b.create(always(plain("other"), plain("app")))
		wait(5 * second)
		b.rt.change(func() { b.rt.scripts["app"] = lifecycletest.Script{} })
		b.restart(virtualkubelet.Adopted{Pod: b.currentPod(), Alive: true})
		require.Len(b, times(), 3)
		require.NotNil(b, b.last().pod.Status.ContainerStatuses[0].State.Running)
		require.EqualValues(b, 2, b.last().pod.Status.ContainerStatuses[1].RestartCount)
		require.NotNil(b, b.last().pod.Status.ContainerStatuses[1].State.Running)
	})
}

// A start that fails is repeated with the same back-off, and holds up no other container.
func TestAStartThatFailsIsRepeated(t *testing.T) {
	inBubble(t, func(b *bed) {
		failures := 3
		b.rt.start = func(_ context.Context, name string) error {
			if failures--; name == "app" && failures >= 0 {
				return errors.New("no such image")
			}
			return nil
		}
		b.create(always(plain("app"), plain("other")))
		wait(second)
		status := b.last().pod.Status
		require.NotNil(b, status.ContainerStatuses[1].State.Running)
		require.Equal(b, "StartError", status.ContainerStatuses[0].LastTerminationState.Terminated.Reason)
		wait(10 * second)
		require.NotNil(b, b.last().pod.Status.ContainerStatuses[0].State.Running)
	})
}

// Not more starts are under way than the options allow, and a start whose pod is deleted leaves
// its turn to others.
func TestABoundOnStarts(t *testing.T) {
	for kind, test := range map[string]struct {
		change func(*virtualkubelet.Options)
		first  int
	}{
		"by default": {func(*virtualkubelet.Options) {}, 10},
		"three":      {func(o *virtualkubelet.Options) { o.MaxStarts = 3 }, 3},
		"whole pods": {onPlayedPods(newPlayedPods(second)), 10},
	} {
		t.Run(kind, func(t *testing.T) {
			inBubble(t, func(b *bed) {
				names := b.rt.recordStarts(time.Minute)
				var pods []*v1.Pod
				for i := range 25 {
					pod := podOf(plain("app"))
					pod.Name, pod.UID = strconv.Itoa(i), types.UID(strconv.Itoa(i))
					pods = append(pods, pod)
					b.create(pod)
				}
				wait(5 * second)
				require.Len(b, names(), test.first)
				for _, pod := range pods {
					if _, isStarting := b.rt.started.Load(string(pod.UID) + "/app"); !isStarting {
						b.deletePod(pod, 1)
					}
				}
				wait(time.Minute)
				require.LessOrEqual(b, len(names()), 25)
				other := podOf(plain("app"))
				b.create(other)
				wait(2 * time.Minute)
				require.Equal(b, v1.PodRunning, b.podStatus("pod").Phase)
			}, test.change)
		})
	}
}

func (b *bed) podStatus(name string) *v1.PodStatus {
	status, err := b.GetPodStatus(b.Context(), "ns", name)
	require.NoError(b, err)
	return status
}

// device is a runtime whose stops return before the container has ended, which cannot tell by itself
// when it has, and every third list of which fails.
type device struct {
	*scriptedRuntime

	lists atomic.Int32
}

func (d *device) StopContainer(ctx context.Context, id string, timeoutSeconds int64) error {
	go func() { _ = d.scriptedRuntime.StopContainer(context.WithoutCancel(ctx), id, timeoutSeconds) }()
	return nil
}

func (d *device) Running(ctx context.Context, pod *v1.Pod) ([]lifecycle.Container, error) {
	if d.lists.Add(1)%3 == 0 {
		return nil, errors.New("500")
	}
	return d.scriptedRuntime.Running(ctx, pod)
}

// Exits are found by one list a pod and an interval. A container is not called ended before, though
// its stop has returned.
func TestExitsByPolling(t *testing.T) {
	var polled *device
	inBubble(t, func(b *bed) {
		b.rt.exitless = true
		b.rt.scripts["app"] = lifecycletest.Script{ExitAfterTerm: 11 * second}
		b.rt.scripts["job"] = lifecycletest.Script{ExitAfter: 7 * second}
		pod, job := podOf(plain("app")), podOf(plain("job"))
		job.Name, job.UID = "job", "job"
		b.create(pod)
		b.create(job)
		wait(9 * second)
		require.Equal(b, v1.PodRunning, b.podStatus("job").Phase)
		wait(3 * second)
		require.Equal(b, v1.PodSucceeded, b.podStatus("job").Phase)
		require.LessOrEqual(b, polled.lists.Load(), int32(8))
		b.deletePod(pod, 30)
		wait(10 * second)
		require.Equal(b, v1.PodRunning, b.podStatus("pod").Phase)
		wait(3 * second)
		require.Equal(b, v1.PodSucceeded, b.last().pod.Status.Phase)
	}, func(o *virtualkubelet.Options) {
		polled = &device{scriptedRuntime: o.Runtime.(*scriptedRuntime)}
		o.Runtime = polled
	})
}

// ContainerEnded comes before the restart, and before anybody is told of the end.
func TestWhatIsLeftOfAContainerIsRemovedFirst(t *testing.T) {
	var b *bed
	removed := map[string]time.Duration{}
	inBubble(t, func(it *bed) {
		b = it
		times := b.startTimes("app")
		b.rt.scripts["app"] = lifecycletest.Script{ExitAfter: second}
		pod := always(plain("app"))
		b.create(pod)
		wait(4 * second)
		require.NotNil(b, b.last().pod.Status.ContainerStatuses[0].State.Running, "it is being removed")
		wait(3 * second)
		require.Equal(b, []time.Duration{0, 6 * second}, times())
		b.deletePod(pod, 30)
		wait(4 * second)
		require.Equal(b, v1.PodRunning, b.last().pod.Status.Phase)
		wait(10 * second)
		require.Equal(b, map[string]time.Duration{"uid/app": 6 * second, "uid/app#1": 12 * second}, removed)
		require.Equal(b, v1.PodSucceeded, b.last().pod.Status.Phase)
		require.Equal(b, 12*second, b.last().at)
	}, func(o *virtualkubelet.Options) {
		o.ContainerEnded = func(ctx context.Context, _ *v1.Pod, _ *v1.Container, id string, _ bool) error {
			select {
			case <-time.After(5 * second):
				removed[id] = b.elapsed()
			case <-ctx.Done():
			}
			return context.Cause(ctx)
		}
	})
}

// A restart that a termination overtakes leaves nothing behind.
func TestARestartThatRacesADeletion(t *testing.T) {
	for at := time.Duration(0); at <= 3*second; at += second / 4 {
		inBubble(t, func(b *bed) {
			b.rt.recordStarts(second)
			b.rt.scripts["app"] = lifecycletest.Script{ExitAfter: second}
			pod := always(plain("app"))
			b.create(pod)
			wait(at)
			b.deletePod(pod, 5)
			wait(20 * second)
			require.Contains(b, []v1.PodPhase{v1.PodFailed, v1.PodSucceeded}, b.last().pod.Status.Phase, "%v", at)
			_, err := b.KillPod(b.Context(), pod, shutdown.KillRequest{})
			require.Error(b, err, "it is forgotten")
			b.rt.started.Range(func(id, _ any) bool {
				require.Contains(b, exitedIDs(b.rt.Exits()), id)
				return true
			})
		})
	}
}

func exitedIDs(exits []lifecycletest.Exit) (ids []string) {
	for _, exit := range exits {
		ids = append(ids, exit.ID)
	}
	return ids
}
