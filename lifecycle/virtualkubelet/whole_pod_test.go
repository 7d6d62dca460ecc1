//go:build go1.25

package virtualkubelet_test

import (
	"context"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/kubegrace/kubegrace/lifecycle/lifecycletest"
	"github.com/kubegrace/kubegrace/lifecycle/virtualkubelet"
	"github.com/kubegrace/kubegrace/shutdown"
)

// onPodRuntimePolledEvery5s runs a test with a provider on a fakePodRuntime, whose pods the provider lists every 5 s.
func onPodRuntimePolledEvery5s(t *testing.T, do func(*testbed, *fakePodRuntime), change ...func(*virtualkubelet.Options)) {
	t.Helper()
	p := newFakePodRuntime(5 * second)
	inBubble(t, func(b *testbed) {
		defer p.stopping.Wait()
		defer b.rt.Release()
		do(b, p)
	}, append([]func(*virtualkubelet.Options){onFakePodRuntime(p)}, change...)...)
}

// A pod is created, and the list at 5 s has it as running. It is deleted at 6 s, which requests a list at once; the next ones are
// at 11, 16 and 21 s. Its container takes 12 s to stop and ends at 18 s. The list at 21 s has the pod as ended, and another one,
// which the provider requests, confirms the end at 22 s. The first two Deletes have no effect, so Delete is called again until a
// list lacks the pod. Then the provider forgets the pod.
func TestWholePodLifecycle(t *testing.T) {
	onPodRuntimePolledEvery5s(t, func(b *testbed, p *fakePodRuntime) {
		// The pod starts.
		b.rt.scripts["app"] = lifecycletest.Script{ExitAfterTerm: 12 * second}
		pod := podOf(container("app"), container("log"))
		b.create(pod)
		wait(second)
		require.Equal(b, v1.PodPending, b.lastStatus().Phase)
		wait(5 * second)
		require.Equal(b, 5*second, b.lastNotification().at)
		status := b.lastStatus()
		require.Equal(b, v1.PodRunning, status.Phase)
		require.Equal(b, "10.0.0.1", status.PodIP)
		require.Equal(b, "fake://uid/app", status.ContainerStatuses[0].ContainerID)
		require.Equal(b, v1.ConditionTrue, conditionOf(b, status, v1.PodReady).Status)

		// It is stopped.
		p.change(func() { p.lostDeletes = 2 })
		b.deleteWithGrace(pod, 30)
		wait(12 * second)
		require.Equal(b, []stop{{id: "uid/app", timeout: 30, at: 6 * second}, {id: "uid/log", timeout: 30, at: 6 * second}}, b.sortedStops())
		require.Equal(b, v1.PodRunning, b.lastStatus().Phase, "no list has the pod as ended yet")
		wait(4 * second) // until 22 s
		require.Equal(b, v1.PodSucceeded, b.lastStatus().Phase)
		require.Equal(b, 22*second, b.lastNotification().at)

		// It is deleted.
		_, err := b.GetPod(b.Context(), "ns", "pod")
		require.NoError(b, err)
		wait(15 * second)
		require.Empty(b, p.storedUIDs())
		require.GreaterOrEqual(b, p.countOf(&p.deletes), 3)
		_, err = b.GetPod(b.Context(), "ns", "pod")
		require.True(b, errdefs.IsNotFound(err))
	})
}

// A pod is deleted at 6 s with a grace period of 10 s. The PodRuntime is down from then on, for 30 s or 5 min, so that Stop fails.
// The provider does not give up, however long that is. Once the PodRuntime is back, it is told to stop the pod with 0 s, because
// the grace period is over, and the pod ends.
func TestStopIsRepeatedUntilAWholePodEnds(t *testing.T) {
	for _, downFor := range []time.Duration{30 * second, 5 * time.Minute} {
		t.Run(downFor.String(), func(t *testing.T) {
			onPodRuntimePolledEvery5s(t, func(b *testbed, p *fakePodRuntime) {
				pod := podOf(container("app"))
				b.create(pod)
				wait(6 * second)
				p.change(func() { p.down = true })
				b.deleteWithGrace(pod, 10)
				wait(downFor)
				require.Equal(b, v1.PodRunning, b.lastStatus().Phase)
				require.NoError(b, b.DeletePod(b.Context(), pod), "the termination is in progress")

				p.change(func() { p.down = false })
				wait(7 * second) // at most 5 s until the next list, after which Stop is called, and 2 s for two lists that show the end
				require.Len(b, b.stops(), 1, "the calls that have failed are not in it")
				require.Zero(b, b.stops()[0].timeout)
				require.Equal(b, v1.PodFailed, b.lastStatus().Phase)
				wait(20 * second)
				require.Empty(b, p.storedUIDs())
			})
		})
	}
}

// A pod is deleted at 6 s with a grace period of 10 s. The PodRuntime accepts each Stop, but the pod runs on, for 15 s or 5 h. Stop
// is called again with 0 s, the first time at 26 s: StopTimeoutSlack, here 10 s, after the grace period. Later calls are at most
// 2 min and StopTimeoutSlack apart, so that the pod ends soon after the PodRuntime has begun to obey.
func TestStopIsRepeatedIfItIsAcceptedAndThePodRunsOn(t *testing.T) {
	for _, ignoredFor := range []time.Duration{15 * second, 5 * time.Hour} {
		t.Run(ignoredFor.String(), func(t *testing.T) {
			onPodRuntimePolledEvery5s(t, func(b *testbed, p *fakePodRuntime) {
				pod := podOf(container("app"))
				b.create(pod)
				wait(6 * second)
				p.change(func() { p.ignoresStops = true })
				b.deleteWithGrace(pod, 10)
				wait(ignoredFor)
				require.Equal(b, v1.PodRunning, b.lastStatus().Phase)
				require.LessOrEqual(b, p.countOf(&p.stops), 5+int(ignoredFor/(2*time.Minute)), "the first ones come sooner")

				p.change(func() { p.ignoresStops = false })
				wait(2*time.Minute + (10+5)*second) // 5 s: a pause before Stop, and two lists that show the end
				require.Len(b, b.stops(), 1, "the calls that were ignored are not in it")
				require.Zero(b, b.stops()[0].timeout)
				require.Equal(b, v1.PodFailed, b.lastStatus().Phase)
				require.Empty(b, p.storedUIDs())
			})
		})
	}
}

// The PodRuntime is down when a pod is created. The pod waits, and shows the error of Create. The failed call may have had an
// effect, so Create is called again only after a list has succeeded and lacks the pod. There is a list every 5 s.
func TestCreateIsRepeatedAfterAList(t *testing.T) {
	onPodRuntimePolledEvery5s(t, func(b *testbed, p *fakePodRuntime) {
		wait(second) // the list at 0 s has succeeded
		p.change(func() { p.down = true })
		b.create(podOf(container("app")))
		wait(30 * second)
		require.Equal(b, 1, p.countOf(&p.creates))
		require.Equal(b, v1.PodPending, b.lastStatus().Phase)
		require.Equal(b, &v1.ContainerStateWaiting{Reason: "CreateContainerError", Message: errAway.Error()}, b.lastStatus().ContainerStatuses[0].State.Waiting)

		p.change(func() { p.down = false })
		wait(5 * second)
		require.Equal(b, 2, p.countOf(&p.creates))
		wait(5 * second)
		require.Equal(b, v1.PodRunning, b.lastStatus().Phase)
	})
}

// Create returns an errdefs.ErrInvalidInput. It is not called again, and the pod fails with the text of the error.
func TestCreateIsNotRepeatedForAnInvalidPod(t *testing.T) {
	onPodRuntimePolledEvery5s(t, func(b *testbed, p *fakePodRuntime) {
		wait(second)
		p.change(func() { p.createErr = errdefs.InvalidInput("no such queue") })
		b.create(podOf(container("app")))
		wait(time.Minute) // longer than the back-off of 10 s
		require.Equal(b, 1, p.countOf(&p.creates))
		status := b.lastStatus()
		require.Equal(b, v1.PodFailed, status.Phase)
		require.Contains(b, terminatedState(b, status, "app").Message, "no such queue")
	})
}

// Create fails with an errdefs.ErrInvalidInput, but the pod runs nevertheless: the test has started it. The provider stops the pod,
// which ignores its stop signal and then vanishes from the lists. How it has ended is unknown, so it is reported as failed.
func TestAnInvalidPodThatRunsNeverthelessEnds(t *testing.T) {
	onPodRuntimePolledEvery5s(t, func(b *testbed, p *fakePodRuntime) {
		wait(second)
		pod := podOf(container("app"))
		b.rt.scripts["app"] = lifecycletest.Script{IgnoreTerm: true}
		require.NoError(b, p.Create(b.Context(), pod)) // as if the Create that fails had started it
		p.change(func() { p.createErr = errdefs.InvalidInput("no such queue") })
		b.create(pod)
		wait(5 * second)
		require.Len(b, b.stops(), 1)
		p.change(func() { p.notListed[pod.UID] = true })
		wait(time.Minute)
		require.Equal(b, v1.PodFailed, b.lastStatus().Phase)
	})
}

// Create returns an error, but takes effect 3 s later. The list of 5 s has the pod, so that Create is not called again.
func TestACreateThatTakesEffectLateIsNotRepeated(t *testing.T) {
	onPodRuntimePolledEvery5s(t, func(b *testbed, p *fakePodRuntime) {
		wait(second)
		p.change(func() { p.createErr = errAway })
		pod := podOf(container("app"))
		b.create(pod)
		wait(3 * second)
		p.change(func() { p.createErr = nil })
		require.NoError(b, p.Create(b.Context(), pod)) // the late effect
		wait(time.Minute)
		require.Equal(b, v1.PodRunning, b.lastStatus().Phase)
		require.Equal(b, 2, p.countOf(&p.creates), "the provider's, which failed, and the test's own")
	})
}

// A pod is created and deleted while the PodRuntime is down. When the PodRuntime is back, its list lacks the pod, so the pod
// has failed, and the provider forgets it. Then the Create takes effect after all. The provider does not know the listed pod,
// and stops and deletes it as an orphan, a minute after the first list that has it.
func TestALateCreateIsCleanedUp(t *testing.T) {
	onPodRuntimePolledEvery5s(t, func(b *testbed, p *fakePodRuntime) {
		wait(second)
		p.change(func() { p.down = true })
		pod := podOf(container("app"))
		b.create(pod)
		b.deleteWithGrace(pod, 10)
		wait(time.Minute)
		require.Equal(b, v1.PodPending, b.lastStatus().Phase, "the pod may run")

		p.change(func() { p.down = false })
		wait(10 * second)
		require.Equal(b, v1.PodFailed, b.lastStatus().Phase)

		require.NoError(b, p.Create(b.Context(), pod)) // the late effect
		wait(2 * time.Minute)
		require.Empty(b, p.storedUIDs())
	})
}

// Create gets no answer, and neither does Stop later. Each call is cut off at its time limit, 2 min or 30 s, and repeated.
func TestHangingCallsAreRepeated(t *testing.T) {
	onPodRuntimePolledEvery5s(t, func(b *testbed, p *fakePodRuntime) {
		b.rt.scripts["app"] = lifecycletest.Script{ExitAfterTerm: second}
		p.change(func() { p.hangingCalls = 1 })
		pod := podOf(container("app"))
		b.create(pod)
		wait(136*second + second/2) // Create is cut off at 120 s, and repeated 10 s later; the list at 135 s has the pod
		require.Equal(b, v1.PodRunning, b.lastStatus().Phase)

		p.change(func() { p.hangingCalls = 1 })
		b.deleteWithGrace(pod, 100)
		wait(50 * second)
		require.Equal(b, v1.PodSucceeded, b.lastStatus().Phase)
		require.Len(b, b.stops(), 1, "the repeated Stop")
		require.EqualValues(b, 100-30-5, b.stops()[0].timeout, "30 s for the call that hangs, and a pause of 5 s")
	})
}

// A list that began at 5 s, before Create at 6 s, arrives at 8 s and lacks the pod. The pod must not count as missing: the
// list that begins at 10 s and arrives at 13 s has it running.
func TestAListOlderThanThePodIsIgnored(t *testing.T) {
	onPodRuntimePolledEvery5s(t, func(b *testbed, p *fakePodRuntime) {
		wait(4 * second)
		p.change(func() { p.listDelay = 3 * second })
		wait(2 * second) // until 6 s
		b.create(podOf(container("app")))
		wait(6 * second) // until 12 s
		require.Equal(b, v1.PodPending, b.lastStatus().Phase)
		wait(2 * second)
		require.Equal(b, v1.PodRunning, b.lastStatus().Phase)
	})
}

// An agent restarts while the PodRuntime is down. Until the first list, which has the running pod, Pods fails, so that a drain
// waits, and GetPods waits. Adopt is not needed, and fails.
func TestARestartedAgentWaitsForTheFirstList(t *testing.T) {
	onPodRuntimePolledEvery5s(t, func(b *testbed, p *fakePodRuntime) {
		b.create(podOf(container("app")))
		wait(6 * second)
		require.NoError(b, b.Close(b.Context()))
		p.change(func() { p.down = true })
		b.Provider = b.newProvider(onFakePodRuntime(p))
		_, err := b.Pods(b.Context())
		require.Error(b, err)
		ctx, cancel := context.WithTimeout(b.Context(), 10*second)
		defer cancel()
		_, err = b.GetPods(ctx)
		require.ErrorIs(b, err, context.DeadlineExceeded)

		p.change(func() { p.down = false })
		known, err := b.GetPods(b.Context())
		require.NoError(b, err)
		require.Len(b, known, 1)
		require.ErrorContains(b, b.Adopt(b.Context(), virtualkubelet.Adopted{Pod: podOf(container("app"))}), "a PodRuntime lists its pods itself")
	})
}

// An agent restarts while three pods run, and adopts them from the first list. The API server still has the first pod, which
// keeps running. It no longer has "gone", which is deleted. "replaced" has a new UID there: the new pod starts when the old one
// has ended.
func TestARestartedAgentAdoptsTheListedPods(t *testing.T) {
	onPodRuntimePolledEvery5s(t, func(b *testbed, p *fakePodRuntime) {
		b.rt.scripts["app"] = lifecycletest.Script{ExitAfterTerm: 12 * second}
		pod, gone, replaced := podOf(container("app")), podNamed("gone", container("app")), podNamed("replaced", container("app"))
		for _, pod := range []*v1.Pod{pod, gone, replaced} {
			b.create(pod)
		}
		wait(6 * second)
		require.NoError(b, b.Close(b.Context()))
		b.Provider = b.newProvider(onFakePodRuntime(p))
		known, err := b.GetPods(b.Context())
		require.NoError(b, err)
		require.Len(b, known, 3)

		// What virtual-kubelet calls.
		b.create(pod)
		goneCopy, err := b.GetPod(b.Context(), "ns", "gone")
		require.NoError(b, err)
		require.NoError(b, b.DeletePod(b.Context(), goneCopy))
		replacement := replaced.DeepCopy()
		replacement.UID = "replacement"
		require.NoError(b, b.UpdatePod(b.Context(), replacement))

		wait(40 * second)
		require.ElementsMatch(b, []types.UID{pod.UID, replacement.UID}, p.storedUIDs())
		require.Equal(b, 3+1, p.countOf(&p.creates), "three by the first agent, and one for the replacement")
		require.Len(b, b.rt.Exits(), 2, "gone and replaced")
		result, err := b.KillPod(b.Context(), gone, shutdown.KillRequest{})
		require.NoError(b, err)
		require.Equal(b, "NotFound", result.Outcome)
	})
}

// The lists lack a running pod from 6 s on. The list at 10 s is the first, and the provider requests a second one, at 11 s. Only
// then is the pod terminated. Its termination requests a list too, at 12 s, which has nothing to stop: the pod has failed.
func TestAPodMissingFromTwoListsHasFailed(t *testing.T) {
	onPodRuntimePolledEvery5s(t, func(b *testbed, p *fakePodRuntime) {
		b.create(podOf(container("app")))
		wait(6 * second)
		p.change(func() { p.notListed["uid"] = true })
		wait(5 * second) // until 11 s
		require.Equal(b, v1.PodRunning, b.lastStatus().Phase, "it would have failed by now if one list were enough")
		wait(second)
		require.Equal(b, v1.PodFailed, b.lastStatus().Phase)
		require.Equal(b, "ContainerStatusUnknown", terminatedState(b, b.lastStatus(), "app").Reason)
	})
}

// A pod is reported as Failed although it still runs: the lists at 10 and 11 s lack it, or it is killed at 6 s, before its Create
// has taken effect. Its termination finds nothing to stop, and ends at once. 7 s after the termination began, two lists have had
// the pod as running again. It is then stopped with the 23 s that are left of the 30 s, and Delete is not called before it has
// ended.
func TestALostPodThatRunsAgainIsStopped(t *testing.T) {
	for name, lose := range map[string]func(*testbed, *fakePodRuntime, *v1.Pod){
		"two lists lack the pod": func(_ *testbed, p *fakePodRuntime, pod *v1.Pod) {
			p.change(func() { p.notListed[pod.UID] = true })
			wait(6 * second) // until 12 s
			p.change(func() { p.notListed[pod.UID] = false })
		},
		"killed before its Create has taken effect": func(b *testbed, p *fakePodRuntime, pod *v1.Pod) {
			var stored *v1.Pod
			p.change(func() {
				stored = p.pods[pod.UID]
				delete(p.pods, pod.UID)
			})
			_, err := b.KillPod(b.Context(), pod, shutdown.KillRequest{})
			require.NoError(b, err)
			p.change(func() { p.pods[pod.UID] = stored })
		},
	} {
		t.Run(name, func(t *testing.T) {
			onPodRuntimePolledEvery5s(t, func(b *testbed, p *fakePodRuntime) {
				b.rt.scripts["app"] = lifecycletest.Script{ExitAfterTerm: 12 * second}
				pod := podOf(container("app"))
				b.create(pod)
				wait(6 * second)
				lose(b, p, pod)
				synctest.Wait()
				require.Equal(b, v1.PodFailed, b.lastStatus().Phase)
				require.Empty(b, b.stops())

				wait(7 * second)
				require.Len(b, b.stops(), 1)
				require.EqualValues(b, 30-7, b.stops()[0].timeout)
				b.deleteWithGrace(pod, 30)
				wait(3 * second)
				require.Zero(b, p.countOf(&p.deletes), "the pod still runs")

				wait(20 * second) // the container exits 12 s after its stop signal
				require.Empty(b, p.storedUIDs())
				require.Len(b, b.rt.Exits(), 1)
			})
		})
	}
}

// A list has a pod twice: once as running and once as failed. The pod may run, so it must not be reported as ended.
func TestAPodListedTwiceIsRunningIfOneEntryIs(t *testing.T) {
	onPodRuntimePolledEvery5s(t, func(b *testbed, p *fakePodRuntime) {
		b.create(podOf(container("app")))
		p.change(func() {
			ended := podOf(container("app"))
			ended.Status.Phase = v1.PodFailed
			p.alsoListed = []*v1.Pod{ended}
		})
		wait(6 * second)
		require.Equal(b, v1.PodRunning, b.lastStatus().Phase)
	})
}

// 500 pods run of which the provider knows nothing: orphans. The list at 5 s is the first that has them, so the list at
// 65 s, a minute later, stops those that are still unknown. CreatePod is called for all of them at 65 s too, and races
// with that list: it may be refused for a pod that is being stopped already. Each pod for which it succeeds keeps running.
func TestAnOrphanThatIsCreatedInTimeRunsOn(t *testing.T) {
	onPodRuntimePolledEvery5s(t, func(b *testbed, p *fakePodRuntime) {
		wait(second)
		var pods []*v1.Pod
		for i := range 500 {
			pod := podNamed(strconv.Itoa(i), container("app"))
			pods = append(pods, pod)
			require.NoError(b, p.Create(b.Context(), pod))
		}
		wait(63 * second) // until 64 s
		refused := map[types.UID]bool{}
		<-time.After(second) // unlike wait, this does not wait for the list of 65 s, with which CreatePod must race
		for _, pod := range pods {
			refused[pod.UID] = b.CreatePod(b.Context(), pod) != nil
		}
		wait(60 * second)
		for _, pod := range pods {
			if !refused[pod.UID] {
				require.Contains(b, p.storedUIDs(), pod.UID)
			}
		}
	})
}

// A pod with a sleep hook of 10 s is killed at 6 s with 30 s. If the PodRuntime is a lifecycle.CommandRunner, the hook runs
// before Stop, which gets the remaining 20 s at 16 s. Otherwise Stop is called at once, with the whole 30 s.
func TestHooksOfAWholePodNeedACommandRunner(t *testing.T) {
	for name, test := range map[string]struct {
		options []func(*virtualkubelet.Options)
		stop    stop // the only Stop call
	}{
		"not a CommandRunner": {stop: stop{id: "uid/app", timeout: 30, at: 6 * second}},
		"a CommandRunner":     {options: []func(*virtualkubelet.Options){withCommandRunner}, stop: stop{id: "uid/app", timeout: 30 - 10, at: (6 + 10) * second}},
	} {
		t.Run(name, func(t *testing.T) {
			onPodRuntimePolledEvery5s(t, func(b *testbed, _ *fakePodRuntime) {
				pod := podOf(withSleepHook("app", 10))
				b.create(pod)
				wait(6 * second)
				result, err := b.KillPod(b.Context(), pod, shutdown.KillRequest{GracePeriodSeconds: ptr.To(int64(30))})
				require.NoError(b, err)
				require.Equal(b, "Graceful", result.Outcome)
				require.Equal(b, []stop{test.stop}, b.stops())
			}, test.options...)
		})
	}
}

// The number of Statuses calls does not grow with the number of pods: 1,000 pods are listed by one call in each interval of
// 5 s.
func TestStatusesIsCalledOncePerIntervalForAllPods(t *testing.T) {
	onPodRuntimePolledEvery5s(t, func(b *testbed, p *fakePodRuntime) {
		for i := range 1000 {
			b.create(podNamed(strconv.Itoa(i), container("app")))
		}
		wait(time.Minute)
		require.Equal(b, 13, p.countOf(&p.lists), "at 0, 5, ... 60 s")
		require.Len(b, p.storedUIDs(), 1000)
	})
}

// Create fails and is repeated after 10 s. Before that, UpdatePod gets the pod without containers. No API server accepts such
// a pod, but the repeated Create must not panic. Once UpdatePod has got the whole pod, it is created and runs.
func TestUpdatePodWithoutContainersBeforeCreate(t *testing.T) {
	onPodRuntimePolledEvery5s(t, func(b *testbed, p *fakePodRuntime) {
		p.change(func() { p.createErr = errAway })
		pod := podOf(container("app"))
		b.create(pod)
		require.NoError(b, b.UpdatePod(b.Context(), podOf()))
		wait(time.Minute)
		p.change(func() { p.createErr = nil })
		require.NoError(b, b.UpdatePod(b.Context(), pod))
		wait(5 * time.Minute)
		require.Equal(b, v1.PodRunning, b.lastStatus().Phase)
	})
}
