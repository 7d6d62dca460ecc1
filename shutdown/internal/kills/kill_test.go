//go:build go1.25

package kills_test

import (
	"context"
	"math"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/shutdown/internal/kills"
)

// failFirst returns a killer whose first call fails and whose later calls call then.
func failFirst(then func()) killer {
	calls := 0
	return func(context.Context, *v1.Pod, int64) (kills.Result, error) {
		if calls++; calls == 1 {
			return kills.Result{}, errBusy
		}
		then()
		return kills.Result{}, nil
	}
}

// If a killer ends its goroutine in every later call, that is the reported error of the pod, and not
// the error of the call before. It is called again until the host is released.
func TestKillerThatExitsInLaterCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, failFirst(runtime.Goexit))
		r.RetryUntil = time.Now().Add(2500 * time.Millisecond)
		batch, picked := r.startBatch("web")
		awaitBatch(t, batch)
		require.Len(t, r.granted["web"], 4)
		require.EqualError(t, picked[0].State().Err, "Options.Killer for pod default/web ended its goroutine")
		require.False(t, picked[0].HasEnded())
		require.Contains(t, r.gaveUp, "web")
	})
}

// The grace period of a pod begins with its signal, however long that is after the event of its
// shutdown. A pod without an end has none in later calls either.
func TestGraceOfALaterCall(t *testing.T) {
	for seconds, want := range map[int64]int64{20: 19, math.MaxInt64: math.MaxInt64 - 1} {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, failFirst(func() {}))
			r.Seconds = func(*v1.Pod) int64 { return seconds }
			<-time.After(5 * time.Second)
			batch, _ := r.startBatch("web")
			awaitBatch(t, batch)
			require.Equal(t, []int64{seconds, want}, r.granted["web"])
		})
	}
}

// A pause that lasts a little too long costs the pod no whole second.
func TestTimerLagOfALaterCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, failFirst(func() {}))
		kill := r.Kill
		r.Kill = func(ctx context.Context, pod *v1.Pod, seconds int64) (kills.Result, error) {
			<-time.After(50 * time.Millisecond)
			return kill(ctx, pod, seconds)
		}
		batch, _ := r.startBatch("web")
		awaitBatch(t, batch)
		require.Equal(t, []int64{20, 19}, r.granted["web"])
	})
}

// What is left of a grace period is rounded up, so that a timetable that is made of it cuts nobody.
func TestLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, takes(30*time.Second))
		batch, picked := r.startBatch("web")
		for _, want := range []int64{20, 20, 19, 19} {
			synctest.Wait()
			left, known := picked[0].Left()
			require.True(t, known)
			require.Equal(t, want, left)
			<-time.After(500 * time.Millisecond)
		}
		<-time.After(25 * time.Second)
		left, _ := picked[0].Left()
		require.Zero(t, left)
		awaitBatch(t, batch)
	})
}

// next makes the next drain of the same shutdown, or that of one that follows a cancelled one. What
// holds of a kill that is under way does not depend on which it is.
var next = map[string]func(before *rig, t *testing.T, kill killer) *rig{"overtakes": (*rig).overtakes, "follows": (*rig).follows}

func forEachNext(t *testing.T, test func(t *testing.T, next func(*rig, *testing.T, killer) *rig, joins bool)) {
	t.Helper()
	for name, next := range next {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { test(t, next, name == "follows") })
		})
	}
}

// A pod that ends in time is not signalled again: a later drain waits for the kill that is under
// way. It is told of neither the signal nor the end, which the first drain is told of.
func TestLaterDrainWaitsForTheKill(t *testing.T) {
	forEachNext(t, func(t *testing.T, next func(*rig, *testing.T, killer) *rig, joins bool) {
		first, began := newRig(t, takes(8*time.Second)), time.Now()
		_, before := first.startBatch("web")
		<-time.After(2 * time.Second)
		second := next(first, t, takes(0))
		batch, picked := second.startBatch("web")
		require.Same(t, before[0], picked[0])
		require.Equal(t, joins, second.account.Joined(picked[0]))
		require.Equal(t, 8*time.Second, awaitBatch(t, batch).Sub(began))
		require.Empty(t, second.granted)
		require.Empty(t, second.signalled)
		require.Equal(t, []string{"web"}, first.endedPods())
		require.Empty(t, second.ended)
		require.True(t, picked[0].State().Started.Equal(began))
		require.Empty(t, second.gaveUp)
	})
}

// A later drain that leaves a pod less time calls the killer again, beside the call that is under
// way. The first of the calls that returns without an error says that the pod has ended, and the
// grant of the first one stays.
func TestLaterDrainShortens(t *testing.T) {
	forEachNext(t, func(t *testing.T, next func(*rig, *testing.T, killer) *rig, _ bool) {
		first, began := newRig(t, takes(15*time.Second)), time.Now()
		before, earlier := first.startBatch("web")
		<-time.After(2 * time.Second)
		second := next(first, t, takes(5*time.Second))
		second.Seconds = func(*v1.Pod) int64 { return 17 }
		batch, _ := second.startBatch("web")
		require.Equal(t, 7*time.Second, awaitBatch(t, batch).Sub(began))
		require.Equal(t, []int64{17}, second.granted["web"])
		require.True(t, earlier[0].HasEnded())
		require.EqualValues(t, 20, earlier[0].State().Seconds)
		awaitBatch(t, before)
		require.Empty(t, first.ended, "once")
		require.Equal(t, []string{"web"}, second.endedPods())
		require.True(t, earlier[0].State().Ended.Equal(began.Add(7*time.Second)))
	})
}

// The call of a later drain with less time fails, while the first one, which knows of more, goes on.
// The later drain tries again.
func TestShorterCallFailsBesideALongerOne(t *testing.T) {
	forEachNext(t, func(t *testing.T, next func(*rig, *testing.T, killer) *rig, _ bool) {
		first := newRig(t, takes(15*time.Second))
		before, _ := first.startBatch("web")
		synctest.Wait()
		second := next(first, t, failFirst(func() {}))
		second.Seconds = func(*v1.Pod) int64 { return 5 }
		batch, picked := second.startBatch("web")
		awaitBatch(t, batch)
		require.Equal(t, []int64{5, 4}, second.granted["web"])
		require.True(t, picked[0].HasEnded())
		awaitBatch(t, before)
	})
}

// A later drain that grants more gives a pod no more time.
func TestLaterDrainGivesNoMoreTime(t *testing.T) {
	forEachNext(t, func(t *testing.T, next func(*rig, *testing.T, killer) *rig, _ bool) {
		first := newRig(t, func(context.Context, *v1.Pod, int64) (kills.Result, error) {
			<-time.After(15 * time.Second)
			return kills.Result{Outcome: "Stuck"}, errFinal
		})
		batch, _ := first.startBatch("web")
		<-time.After(2 * time.Second)
		second := next(first, t, takes(time.Second))
		second.Seconds = func(*v1.Pod) int64 { return 600 }
		later, picked := second.startBatch("web")
		awaitBatch(t, batch)
		awaitBatch(t, later)
		require.Equal(t, []int64{5}, second.granted["web"], "the first one has failed, so it tries with the rest")
		require.Equal(t, []time.Duration{13 * time.Second}, second.at["web"])
		require.True(t, picked[0].HasEnded())
		require.Equal(t, "Graceful", picked[0].State().Result.Outcome)
	})
}

// Two drains that both try again take turns: a pod is asked for once a second by each, and by none
// with more than the shortest grant leaves.
func TestTwoDrainsTryAgain(t *testing.T) {
	forEachNext(t, func(t *testing.T, next func(*rig, *testing.T, killer) *rig, _ bool) {
		first := newRig(t, fails)
		before, _ := first.startBatch("web")
		<-time.After(2500 * time.Millisecond)
		second := next(first, t, fails)
		second.Seconds = func(*v1.Pod) int64 { return 5 }
		batch, _ := second.startBatch("web")
		<-time.After(1200 * time.Millisecond)
		first.letGo(errLetGo)
		second.letGo(errLetGo)
		awaitBatch(t, before)
		awaitBatch(t, batch)
		require.Equal(t, []int64{20, 19, 18, 4}, first.granted["web"])
		require.Equal(t, []int64{5, 4}, second.granted["web"])
	})
}

// A pod that is waited for when the host is released has no end, and keeps the error of its own
// last call.
func TestWaitForAKillEndsWithTheHost(t *testing.T) {
	forEachNext(t, func(t *testing.T, next func(*rig, *testing.T, killer) *rig, _ bool) {
		over := make(chan struct{})
		first := newRig(t, func(context.Context, *v1.Pod, int64) (kills.Result, error) { <-over; return kills.Result{}, nil })
		before, _ := first.startBatch("web")
		<-time.After(time.Second)
		second := next(first, t, takes(0))
		batch, picked := second.startBatch("web")
		synctest.Wait()
		second.letGo(errLetGo)
		awaitBatch(t, batch)
		require.ErrorIs(t, second.gaveUp["web"], errLetGo)
		require.False(t, picked[0].HasEnded())
		require.Empty(t, second.granted)
		close(over)
		awaitBatch(t, before)
		require.True(t, picked[0].HasEnded(), "it ends all the same")
	})
}

// Each of three drains waits for the one kill.
func TestThreeDrainsWaitForOneKill(t *testing.T) {
	forEachNext(t, func(t *testing.T, next func(*rig, *testing.T, killer) *rig, _ bool) {
		first, began := newRig(t, takes(9*time.Second)), time.Now()
		first.startBatch("web")
		<-time.After(time.Second)
		second := next(first, t, takes(0))
		second.startBatch("web")
		<-time.After(time.Second)
		third := next(second, t, takes(0))
		batch, picked := third.startBatch("web")
		require.Equal(t, 9*time.Second, awaitBatch(t, batch).Sub(began))
		require.Equal(t, "Graceful", picked[0].State().Result.Outcome)
		require.Empty(t, second.granted)
		require.Empty(t, third.granted)
	})
}

// A pod of the same shutdown that has ended is not killed again, even if it is listed. One that an
// earlier shutdown has killed and that is listed is killed in the next.
func TestPodThatIsListedAfterItsEnd(t *testing.T) {
	forEachNext(t, func(t *testing.T, next func(*rig, *testing.T, killer) *rig, joins bool) {
		first := newRig(t, takes(0))
		batch, _ := first.startBatch("web")
		awaitBatch(t, batch)
		second := next(first, t, takes(0))
		second.picker.AddListed(podsOf("web"), priorityOfAll)
		require.Equal(t, joins, len(second.picker.Pick(0, everyone)) == 1)
	})
}
