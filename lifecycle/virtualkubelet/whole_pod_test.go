//go:build go1.25

package virtualkubelet_test

import (
	"context"
	"strconv"
	"sync"
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

// withPlayedPods runs a test with a provider whose pods run as a whole, and which is polled every 5 s.
func withPlayedPods(t *testing.T, do func(*bed, *playedPods), change ...func(*virtualkubelet.Options)) {
	t.Helper()
	p := newPlayedPods(5 * second)
	inBubble(t, func(b *bed) {
		defer p.stopping.Wait()
		defer b.rt.Release()
		do(b, p)
	}, append(change, onPlayedPods(p))...)
}

// A pod is created, found running and ended by polls, and deleted at its pod runtime before the
// provider forgets it.
func TestAPodAsAWhole(t *testing.T) {
	withPlayedPods(t, func(b *bed, p *playedPods) {
		b.rt.scripts["app"] = lifecycletest.Script{ExitAfterTerm: 12 * second}
		p.script(func() { p.lose = 2 })
		pod := podOf(plain("app"), plain("log"))
		b.create(pod)
		wait(second)
		require.Equal(b, v1.PodPending, b.last().pod.Status.Phase)
		wait(5 * second)
		status := b.last().pod.Status
		require.Equal(b, v1.PodRunning, status.Phase)
		require.Equal(b, "10.0.0.1", status.PodIP)
		require.Equal(b, "place://uid/app", status.ContainerStatuses[0].ContainerID)
		require.Equal(b, v1.ConditionTrue, status.Conditions[1].Status)
		require.True(b, b.last().at == 5*second, "%v", b.last().at)

		b.deletePod(pod, 30)
		wait(12 * second) // it has ended at 18 s
		require.Equal(b, v1.PodRunning, b.last().pod.Status.Phase, "nobody has said so yet")
		wait(4 * second)
		require.Equal(b, v1.PodSucceeded, b.last().pod.Status.Phase)
		require.Equal(b, 22*second, b.last().at)
		require.Equal(b, []stop{{"uid/app", 30, 6 * second}, {"uid/log", 30, 6 * second}}, b.sortedStops())
		_, err := b.GetPod(b.Context(), "ns", "pod")
		require.NoError(b, err, "it is still there")
		wait(15 * second)
		require.Empty(b, p.kept())
		require.GreaterOrEqual(b, p.calls(&p.deletes), 3)
		_, err = b.GetPod(b.Context(), "ns", "pod")
		require.True(b, errdefs.IsNotFound(err))
	})
}

// The end of a pod is insisted on: a pod runtime that is away is asked again, and a job that
// outlives its grace is killed.
func TestAPodThatDoesNotEnd(t *testing.T) {
	for name, test := range map[string]struct {
		script lifecycletest.Script
		away   time.Duration
		ended  time.Duration
	}{
		"the pod runtime is away for a while": {lifecycletest.Script{ExitAfterTerm: second}, 30 * second, 50 * second},
		"it ignores the stop":                 {lifecycletest.Script{IgnoreTerm: true}, 0, 20 * second},
		"for five minutes":                    {lifecycletest.Script{ExitAfterTerm: second}, 5 * time.Minute, 320 * second},
	} {
		t.Run(name, func(t *testing.T) {
			withPlayedPods(t, func(b *bed, p *playedPods) {
				b.rt.scripts["app"] = test.script
				pod := podOf(plain("app"))
				b.create(pod)
				wait(6 * second)
				p.script(func() { p.away = test.away > 0 })
				b.deletePod(pod, 10)
				wait(test.away)
				require.Equal(b, v1.PodRunning, b.last().pod.Status.Phase)
				require.NoError(b, b.DeletePod(b.Context(), pod), "there is nothing to say")
				p.script(func() { p.away = false })
				wait(test.ended - b.elapsed())
				require.Contains(b, []v1.PodPhase{v1.PodFailed, v1.PodSucceeded}, b.last().pod.Status.Phase)
				wait(20 * second)
				require.Empty(b, p.kept())
			})
		})
	}
}

// Create is asked again until it succeeds, or says that it never will.
func TestAPodThatCannotBeCreated(t *testing.T) {
	withPlayedPods(t, func(b *bed, p *playedPods) {
		wait(second)
		p.script(func() { p.away = true })
		b.create(podOf(plain("app")))
		wait(30 * second)
		require.Equal(b, 1, p.calls(&p.creates), "whether it is there is not known")
		require.Equal(b, v1.PodPending, b.last().pod.Status.Phase)
		require.Equal(b, v1.ContainerState{Waiting: &v1.ContainerStateWaiting{Reason: "CreateContainerError", Message: "500"}}, b.last().pod.Status.ContainerStatuses[0].State)
		p.script(func() { p.away = false })
		wait(5 * second)
		require.Equal(b, 2, p.calls(&p.creates))
		wait(5 * second)
		require.Equal(b, v1.PodRunning, b.last().pod.Status.Phase)

		p.script(func() { p.refused = errdefs.InvalidInput("no such queue") })
		other := podOf(plain("app"))
		other.Name, other.UID = "other", "uid2"
		b.create(other)
		wait(2 * second)
		status := b.last().pod.Status
		require.Equal(b, v1.PodFailed, status.Phase)
		require.Contains(b, terminated(b, status, "app").Message, "no such queue")
	})
}

// A pod runtime that is away while a pod is created and deleted has nothing of it in the end, also if
// the Create arrives after all.
func TestACreateThatArrivesLate(t *testing.T) {
	withPlayedPods(t, func(b *bed, p *playedPods) {
		wait(second)
		p.script(func() { p.away = true })
		pod := podOf(plain("app"))
		b.create(pod)
		b.deletePod(pod, 10)
		wait(time.Minute)
		require.Equal(b, v1.PodPending, b.last().pod.Status.Phase, "it may run")
		p.script(func() { p.away = false })
		wait(10 * second)
		require.Equal(b, v1.PodFailed, b.last().pod.Status.Phase)
		require.NoError(b, p.Create(b.Context(), pod))
		require.Len(b, p.kept(), 1)
		wait(2 * time.Minute)
		require.Empty(b, p.kept())
	})
}

// A pod is not called ended while its Create is under way, and is stopped once it has returned.
func TestADeletionDuringACreateThatIgnoresItsContext(t *testing.T) {
	withPlayedPods(t, func(b *bed, p *playedPods) {
		b.rt.start = func(context.Context, string) error {
			<-time.After(20 * second)
			return nil
		}
		pod := podOf(plain("app"))
		b.create(pod)
		wait(5 * second)
		b.deletePod(pod, 10)
		wait(14 * second)
		require.Equal(b, v1.PodPending, b.last().pod.Status.Phase)
		wait(11 * second)
		require.Equal(b, v1.PodFailed, b.last().pod.Status.Phase, "its grace period is over, and it was killed")
		require.Len(b, b.rt.Exits(), 1)
		wait(5 * second)
		require.Empty(b, p.kept())
	})
}

// A call that gets no answer is made again.
func TestCallsThatHang(t *testing.T) {
	withPlayedPods(t, func(b *bed, p *playedPods) {
		b.rt.scripts["app"] = lifecycletest.Script{ExitAfterTerm: second}
		p.script(func() { p.hang = 1 })
		pod := podOf(plain("app"))
		b.create(pod)
		wait(136*second + second/2)
		require.Equal(b, v1.PodRunning, b.last().pod.Status.Phase)
		p.script(func() { p.hang = 1 })
		b.deletePod(pod, 100)
		wait(50 * second)
		require.Equal(b, v1.PodSucceeded, b.last().pod.Status.Phase)
		require.Len(b, b.stops(), 1)
		require.InDelta(b, 65, b.stops()[0].timeout, 1, "30 s for the call, 5 s until the next one, and those since the last list")
	})
}

// A list that was asked for before a pod was there says nothing about it.
func TestAListThatIsOlderThanThePod(t *testing.T) {
	withPlayedPods(t, func(b *bed, p *playedPods) {
		wait(4 * second)
		p.script(func() { p.slow = 3 * second })
		wait(2 * second)
		b.create(podOf(plain("app")))
		wait(6 * second)
		require.Equal(b, v1.PodPending, b.last().pod.Status.Phase)
		wait(2 * second)
		require.Equal(b, v1.PodRunning, b.last().pod.Status.Phase)
	})
}

// What the pod runtime has is known to an agent that was started again: pods go on, one that the API
// server has no more ends, and one of another UID waits until its pod runtime is free.
func TestAnAgentThatWasStartedAgainAsks(t *testing.T) {
	withPlayedPods(t, func(b *bed, p *playedPods) {
		b.rt.scripts["app"] = lifecycletest.Script{ExitAfterTerm: 12 * second}
		pod, gone, previous := podOf(plain("app")), podOf(plain("app")), podOf(plain("app"))
		gone.Name, gone.UID, previous.Name, previous.UID = "gone", "2", "replaced", "3"
		for _, pod := range []*v1.Pod{pod, gone, previous} {
			b.create(pod)
		}
		wait(6 * second)
		require.NoError(b, b.Close(b.Context()))
		p.script(func() { p.away = true })
		b.Provider = b.provider(onPlayedPods(p))
		_, err := b.Pods(b.Context())
		require.Error(b, err, "a drain waits for the list")
		ctx, cancel := context.WithTimeout(b.Context(), 10*second)
		_, err = b.GetPods(ctx)
		cancel()
		require.ErrorIs(b, err, context.DeadlineExceeded)
		p.script(func() { p.away = false })
		known, err := b.GetPods(b.Context())
		require.NoError(b, err)
		require.Len(b, known, 3)

		b.create(pod)
		require.NoError(b, b.DeletePod(b.Context(), known[0])) // gone: as virtual-kubelet does
		replacement := previous.DeepCopy()
		replacement.UID = "4"
		require.NoError(b, b.UpdatePod(b.Context(), replacement))
		wait(40 * second)
		require.Len(b, p.kept(), 2)
		require.Contains(b, p.kept(), pod.UID)
		require.Contains(b, p.kept(), replacement.UID)
		require.Equal(b, 4, p.calls(&p.creates), "no pod twice")
		require.Len(b, b.rt.Exits(), 2)

		result, err := b.KillPod(b.Context(), gone, shutdown.KillRequest{})
		require.NoError(b, err)
		require.Equal(b, "NotFound", result.Outcome)
	})
}

// A pod that its pod runtime has lost has ended.
func TestAPodThatIsLost(t *testing.T) {
	withPlayedPods(t, func(b *bed, p *playedPods) {
		b.create(podOf(plain("app")))
		wait(6 * second)
		p.script(func() { p.hidden["uid"] = true })
		wait(5 * second)
		require.Equal(b, v1.PodRunning, b.last().pod.Status.Phase, "one list may be wrong")
		wait(second)
		require.Equal(b, v1.PodFailed, b.last().pod.Status.Phase)
		require.Equal(b, "ContainerStatusUnknown", terminated(b, b.last().pod.Status, "app").Reason)
	})
}

// A pod that its pod runtime has after all, although it was told to have ended, is stopped: one that a
// list had left out, and one whose Create arrives after a shutdown has ended it.
func TestAPodThatIsBack(t *testing.T) {
	for name, end := range map[string]func(*bed, *playedPods, *v1.Pod){
		"a list had left it out": func(_ *bed, p *playedPods, pod *v1.Pod) {
			p.script(func() { p.hidden[pod.UID] = true })
			wait(6 * second)
			p.script(func() { p.hidden[pod.UID] = false })
		},
		"it is created late": func(b *bed, p *playedPods, pod *v1.Pod) {
			var there *v1.Pod
			p.script(func() {
				there = p.pods[pod.UID]
				delete(p.pods, pod.UID)
			})
			_, err := b.KillPod(b.Context(), pod, shutdown.KillRequest{})
			require.NoError(b, err)
			p.script(func() { p.pods[pod.UID] = there })
		},
	} {
		t.Run(name, func(t *testing.T) {
			withPlayedPods(t, func(b *bed, p *playedPods) {
				b.rt.scripts["app"] = lifecycletest.Script{ExitAfterTerm: 12 * second}
				pod := podOf(plain("app"))
				b.create(pod)
				wait(6 * second)
				end(b, p, pod)
				synctest.Wait()
				require.Equal(b, v1.PodFailed, b.last().pod.Status.Phase)
				require.Empty(b, b.stops())
				wait(6 * second)
				require.Len(b, b.stops(), 1)
				require.InDelta(b, 25, b.stops()[0].timeout, 2, "the grace period of its end, or what is left of it")
				b.deletePod(pod, 30)
				wait(3 * second)
				require.Zero(b, p.calls(&p.deletes), "it runs")
				wait(20 * second)
				require.Empty(b, p.kept())
				require.Len(b, b.rt.Exits(), 1)
			})
		})
	}
}

// A pod runs if one of two entries of a list says so.
func TestAPodThatIsListedTwice(t *testing.T) {
	withPlayedPods(t, func(b *bed, p *playedPods) {
		b.create(podOf(plain("app")))
		p.script(func() {
			ended := podOf(plain("app"))
			ended.Status.Phase = v1.PodFailed
			p.more = []*v1.Pod{ended}
		})
		wait(6 * second)
		require.Equal(b, v1.PodRunning, b.last().pod.Status.Phase)
	})
}

// A pod that virtual-kubelet creates in the moment in which it is about to be ended as unknown runs on.
func TestAStrangerThatIsCreated(t *testing.T) {
	withPlayedPods(t, func(b *bed, p *playedPods) {
		wait(second)
		var pods []*v1.Pod
		for i := range 500 {
			pod := podOf(plain("app"))
			pod.Name, pod.UID = strconv.Itoa(i), types.UID(strconv.Itoa(i))
			pods = append(pods, pod)
			require.NoError(b, p.Create(b.Context(), pod))
		}
		wait(63 * second) // 65 s are a minute after the first list that had them
		var creating sync.WaitGroup
		refused := map[types.UID]bool{}
		<-time.After(second)
		creating.Go(func() {
			for _, pod := range pods {
				refused[pod.UID] = b.CreatePod(b.Context(), pod) != nil
			}
		})
		creating.Wait()
		wait(60 * second)
		for _, pod := range pods {
			if !refused[pod.UID] {
				require.Contains(b, p.kept(), pod.UID)
			}
		}
	})
}

// Hooks run if the PodRuntime can run commands, and else are the pod runtime's own.
func TestHooksOfAWholePod(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*virtualkubelet.Options)
		stop   stop
	}{
		"without": {func(*virtualkubelet.Options) {}, stop{"uid/app", 30, 6 * second}},
		"with": {func(o *virtualkubelet.Options) {
			o.Pods = struct {
				*playedPods
				*lifecycletest.Runtime
			}{o.Pods.(*playedPods), nil}
		}, stop{"uid/app", 20, 16 * second}},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlayedPods(5 * second)
			inBubble(t, func(b *bed) {
				pod := podOf(sleeping("app", 10))
				b.create(pod)
				wait(6 * second)
				result, err := b.KillPod(b.Context(), pod, shutdown.KillRequest{GracePeriodSeconds: ptr.To(int64(30))})
				require.NoError(b, err)
				require.Equal(b, "Graceful", result.Outcome)
				require.Equal(b, []stop{test.stop}, b.stops())
				synctest.Wait()
			}, onPlayedPods(p), test.change)
		})
	}
}

// A thousand pods cost one request an interval.
func TestOneRequestForAThousandPods(t *testing.T) {
	withPlayedPods(t, func(b *bed, p *playedPods) {
		for i := range 1000 {
			pod := podOf(plain("app"))
			pod.Name, pod.UID = strconv.Itoa(i), types.UID(strconv.Itoa(i))
			b.create(pod)
		}
		wait(time.Minute)
		require.Equal(b, 13, p.calls(&p.lists))
		require.Len(b, p.kept(), 1000)
	})
}
