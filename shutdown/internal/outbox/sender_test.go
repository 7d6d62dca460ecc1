//go:build go1.25

package outbox_test

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/internal/call"
)

// Ten calls are made at a time, one for each pod in order.
func TestTenAtATime(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.takes = 100 * time.Millisecond
		r.owe(podNames(25)...)
		require.Equal(t, 25, r.Unacknowledged())
		advance(99 * time.Millisecond)
		require.Equal(t, 10, len(r.callNames()))
		advance(time.Millisecond)
		require.Len(t, r.callNames(), 20)
		require.Equal(t, 15, r.Unacknowledged())
		advance(200 * time.Millisecond)
		require.Equal(t, 10, r.most)
		require.Zero(t, r.Unacknowledged())
		acknowledged := r.acknowledged()
		slices.Sort(acknowledged)
		require.Equal(t, podNames(25), acknowledged)
		require.Len(t, r.callNames(), 25, "one request each")
		require.NoError(t, r.Failure())
	})
}

// Final statuses come before marks, and those before restorations: the first time and when they
// are tried again.
func TestOrderOfKinds(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		all, over := make(chan struct{}), make(chan struct{})
		r.answer = func(_ context.Context, _, pod string, n int) error {
			switch {
			case strings.HasPrefix(pod, "pod"):
				<-over
			case n == 0:
				<-all
				return errRefused
			default:
			}
			return nil
		}
		r.owe(podNames(9)...) // one call is free
		synctest.Wait()
		r.RestoreMarked(pods("c", "c2"))
		r.Mark(pod("b"), time.Now().Add(time.Hour))
		r.Mark(pod("b2"), time.Now().Add(time.Hour))
		r.owe("a", "a2")
		close(all)
		synctest.Wait()
		require.Equal(t, []string{"restore c", "status a", "status a2", "mark b", "mark b2", "restore c2"}, r.callNames()[9:], "as each is refused")
		advance(time.Second)
		require.Equal(t, []string{"status a", "status a2", "mark b", "mark b2", "restore c", "restore c2"}, r.callNames()[15:])
		close(over)
	})
}

// Debts that were never sent come before failed ones, so that a pod that is refused for ever
// delays no other.
func TestFreshBeforeFailed(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.takes = 100 * time.Millisecond
		r.refuseOnly("pod-000")
		r.owe(podNames(50)...)
		advance(450 * time.Millisecond)
		require.Len(t, r.callStarts("status pod-000"), 1, "nothing but fresh ones")
		advance(time.Hour)
		require.Equal(t, 1, r.Unacknowledged())
		require.Greater(t, len(r.callStarts("status pod-000")), 1000)
		require.ErrorIs(t, r.Failure(), errRefused)
		require.ErrorContains(t, r.Failure(), "pod default/pod-000: ")
	})
}

// The pauses of a pod double from 100 ms to 1 s, and each pod has its own.
func TestPausesOfAPod(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.answer = func(_ context.Context, _, _ string, n int) error {
			if n < 6 {
				return errRefused
			}
			return nil
		}
		r.owe("a")
		advance(time.Minute)
		ms := time.Millisecond
		require.Equal(t, []time.Duration{0, 100 * ms, 300 * ms, 700 * ms, 1500 * ms, 2500 * ms, 3500 * ms}, r.callStarts("status a"))
		require.Equal(t, []string{"a"}, r.acknowledged())
		require.Zero(t, r.Unacknowledged())
	})
}

// A function that panics or ends its goroutine has failed. Neither reduces the ten calls.
func TestFunctionThatPanicsOrExits(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.answer = func(_ context.Context, _, _ string, n int) error {
			switch n {
			case 0:
				panic("of a reporter")
			case 1:
				runtime.Goexit()
			}
			return nil
		}
		r.takes = time.Millisecond
		r.owe(podNames(30)...)
		advance(time.Minute)
		require.Len(t, r.acknowledged(), 30)
		r.owe(podNames(10)...)
		synctest.Wait()
		r.set(func() { require.Equal(t, 10, r.now) })
	})
}

// Calls that ignore the end of their context do not keep others from being sent, and their
// results count.
func TestDeafCalls(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		over := make(chan struct{})
		r.takes = time.Millisecond
		r.answer = func(_ context.Context, _, pod string, _ int) error {
			if strings.HasPrefix(pod, "deaf") {
				<-over
			}
			return nil
		}
		for n := range 10 {
			r.owe(fmt.Sprint("deaf-", n))
		}
		r.owe(podNames(20)...)
		advance(2250*time.Millisecond + 999*time.Millisecond)
		require.Len(t, r.callNames(), 10)
		advance(100 * time.Millisecond)
		require.Len(t, r.callNames(), 30)
		require.Equal(t, 10, r.Unacknowledged())
		close(over)
		advance(time.Second)
		require.Zero(t, r.Unacknowledged())
		require.Equal(t, 20, r.most, "the ten that are deaf and ten others")
		r.set(func() { r.most = 0 })
		r.owe(podNames(40)[20:]...)
		advance(time.Second)
		require.Equal(t, 10, r.most)
		require.Zero(t, r.Unacknowledged())
	})
}

// The group of the calls names what hangs, and for which pods.
func TestHangingCallsAreNamed(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		over := make(chan struct{})
		r.answer = func(context.Context, string, string, int) error { <-over; return nil }
		r.owe("a")
		r.Mark(pod("b"), time.Now().Add(time.Hour))
		r.Publish("on")
		synctest.Wait()
		group, enough := r.leave(), make(chan struct{})
		close(enough)
		require.Equal(t, []string{
			"Options.Reporter.FlushPod for pod default/a", "Options.Reporter.MarkNotReady for pod default/b", "Options.Reporter.PublishNode",
		}, group.Wait(enough))
		close(over)
		require.Empty(t, group.Wait(nil))
		require.Equal(t, []string{"a"}, r.acknowledged(), "what a call achieves after the end counts")
	})
}

// Nothing is sent before Open, and there is no goroutine: the bubble would not end.
func TestNothingIsSentBeforeOpen(t *testing.T) {
	closed(t, func(t *testing.T, r *rig) {
		r.owe("a")
		r.Mark(pod("b"), time.Now().Add(time.Hour))
		r.RestoreMarked(pods("c"))
		r.Publish("on")
		late := r.Mark(pod("d"), time.Now().Add(time.Second))
		advance(time.Minute)
		require.Empty(t, r.callNames())
		require.True(t, r.Owes(pod("a")))
		r.leave = r.Open(quiet(t))
		synctest.Wait()
		calls := r.callNames()
		slices.Sort(calls)
		require.Equal(t, []string{"mark b", "publish on", "restore c", "status a"}, calls)
		require.ErrorIs(t, awaitMark(t, late), call.ErrTimeSpent, "it was not sent in time")
	})
}

// The outbox sends until the last user has left. Then calls end, and their debts remain. They are
// sent when it is opened again.
func TestUsersOfTheOutbox(t *testing.T) {
	closed(t, func(t *testing.T, r *rig) {
		ctx, cancel := context.WithCancel(t.Context())
		first, second := r.Open(ctx), r.Open(quiet(t))
		cancel()
		require.Nil(t, first())
		require.Nil(t, first(), "leaving twice is leaving once")
		r.takes = time.Second
		r.owe(podNames(20)...)
		r.Publish("on")
		advance(1500 * time.Millisecond)
		require.Len(t, r.acknowledged(), 10)
		group := second()
		require.NotNil(t, group)
		require.Empty(t, group.Wait(nil))
		require.Equal(t, 1500*time.Millisecond, time.Since(r.began), "the calls have ended")
		r.owe("late")
		published := r.Publish("off")
		advance(time.Minute)
		require.Len(t, r.callNames(), 21)
		require.Equal(t, 11, r.Unacknowledged())
		require.NoError(t, r.Failure(), "that a call was ended says nothing")

		r.leave = r.Open(quiet(t))
		advance(1100 * time.Millisecond)
		require.Zero(t, r.Unacknowledged()-1, "all but the eleventh")
		require.NoError(t, published.Await(t.Context(), time.Now()))
		advance(time.Second)
		require.Zero(t, r.Unacknowledged())
		require.Same(t, group, second(), "the end of an earlier time does not end this one")
	})
}

// A call that outlives its opening is known to that one, and takes no place in the next one for
// longer than a second.
func TestCallThatOutlivesItsOpening(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		over := make(chan struct{})
		r.answer = func(context.Context, string, string, int) error { <-over; return nil }
		r.owe(podNames(10)...)
		r.Publish("on")
		synctest.Wait()
		before := r.leave()
		r.leave = r.Open(quiet(t))
		r.refuse(nil)
		r.owe("next")
		r.Publish("off")
		advance(999 * time.Millisecond)
		require.Empty(t, r.callStarts("status next"))
		advance(time.Millisecond)
		require.Len(t, r.callStarts("status next"), 1)
		require.Empty(t, r.callStarts("publish off"), "there is one call at a time")
		enough := make(chan struct{})
		close(enough)
		require.Len(t, before.Wait(enough), 11)
		close(over)
		require.Empty(t, before.Wait(nil))
		synctest.Wait()
		require.Zero(t, r.Unacknowledged())
		require.Len(t, r.callNames(), 13)
	})
}

// A reporter may change what it gets: it shares no memory with the caller's pod.
func TestSentPodIsACopy(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		web, db, etcd := staticPod("web"), staticPod("db"), staticPod("etcd")
		r.Owe(web, nil, nil)
		r.Mark(db, time.Now().Add(time.Hour))
		r.RestoreMarked([]*v1.Pod{etcd})
		synctest.Wait()
		require.Len(t, r.sent, 3)
		for _, sent := range r.sent {
			sent.Annotations["changed"] = "yes"
		}
		for _, own := range []*v1.Pod{web, db, etcd} {
			require.NotContains(t, own.Annotations, "changed")
		}
	})
}
