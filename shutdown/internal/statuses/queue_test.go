package statuses_test

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

	"github.com/kubegrace/kubegrace/shutdown/internal/call"
)

// Ten calls are made at a time, one for each pod in order.
func TestTenAtATime(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.takes = 100 * time.Millisecond
		r.queueStatuses(podNames(25)...)
		require.Equal(t, 25, r.Pending())
		advance(99 * time.Millisecond)
		require.Len(t, r.callNames(), 10)
		advance(time.Millisecond)
		require.Len(t, r.callNames(), 20)
		require.Equal(t, 15, r.Pending())
		advance(200 * time.Millisecond)
		require.Equal(t, 10, r.most)
		require.Zero(t, r.Pending())
		acknowledged := r.acknowledged()
		slices.Sort(acknowledged)
		require.Equal(t, podNames(25), acknowledged)
		require.Len(t, r.callNames(), 25, "one request each")
		require.NoError(t, r.Failure())
	})
}

// Final statuses come before marks, and those before restores.
func TestOrderOfKinds(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.answer = func(_ context.Context, _, pod string, _ int) error {
			if i := slices.Index(podNames(10), pod); i >= 0 { // one after the other, so that one call is free at a time
				<-time.After(time.Duration(i+1) * 100 * time.Millisecond)
			}
			return nil
		}
		r.queueStatuses(podNames(10)...) // all calls are taken
		r.queueRestore("c", time.Hour)
		r.Mark(r.callNamed("mark"), pod("b"), time.Now().Add(time.Hour))
		r.queueStatuses("a")
		advance(time.Second)
		require.Equal(t, []string{"status a", "mark b", "restore c"}, r.callNames()[10:])
	})
}

// New items come before failed ones, so that a pod that is refused for ever delays no other.
func TestFreshBeforeFailed(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.takes = 100 * time.Millisecond
		r.answer = func(_ context.Context, _, pod string, _ int) error {
			if pod == "pod-000" {
				return errRefused
			}
			return nil
		}
		r.queueStatuses(podNames(50)...)
		advance(450 * time.Millisecond)
		require.Len(t, r.callStarts("status pod-000"), 1, "nothing but fresh ones")
		advance(time.Hour)
		require.Equal(t, 1, r.Pending())
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
		r.queueStatuses("a")
		advance(time.Minute)
		ms := time.Millisecond
		require.Equal(t, []time.Duration{0, 100 * ms, 300 * ms, 700 * ms, 1500 * ms, 2500 * ms, 3500 * ms}, r.callStarts("status a"))
		require.Equal(t, []string{"a"}, r.acknowledged())
		require.Zero(t, r.Pending())
	})
}

// The first call for a pod may take 5 s, the second 10 s, and so on: a slow server gets time
// later, and a call that hangs is ended.
func TestAttemptsTakeLongerEachTime(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.takes = 18 * time.Second
		r.queueStatuses("a")
		advance(time.Minute)
		require.Equal(t, []time.Duration{5 * time.Second, 10 * time.Second, 20 * time.Second}, r.limit)
		require.Equal(t, []string{"a"}, r.acknowledged())
		require.ErrorIs(t, r.Failure(), call.ErrTimeSpent)
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
		r.queueStatuses(podNames(30)...)
		advance(time.Minute)
		require.Len(t, r.acknowledged(), 30)
		r.queueStatuses(podNames(10)...)
		synctest.Wait()
		r.server.mu.Lock()
		defer r.server.mu.Unlock()
		require.Equal(t, 10, r.now)
	})
}

// After the end of the queue's context nothing is sent, and running calls end.
func TestEndOfTheQueue(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.takes = time.Second
		r.queueStatuses(podNames(20)...)
		synctest.Wait()
		r.stop(errLetGo)
		advance(time.Minute)
		require.Len(t, r.callNames(), 10)
		require.Equal(t, 20, r.Pending())
		require.ErrorIs(t, r.Failure(), errLetGo)
		r.queueStatuses("late")
		advance(time.Minute)
		require.Len(t, r.callNames(), 10)
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
			r.queueStatuses(fmt.Sprint("deaf-", n))
		}
		r.queueStatuses(podNames(20)...)
		advance(5 * time.Second)
		require.Len(t, r.callNames(), 10)
		advance(2 * time.Second)
		require.Len(t, r.callNames(), 30)
		require.Equal(t, 10, r.Pending())
		close(over)
		advance(time.Second)
		require.Zero(t, r.Pending())
		require.Equal(t, 20, r.most, "the ten that are deaf and ten others")
		r.most = 0
		r.queueStatuses(podNames(40)[20:]...)
		advance(time.Second)
		require.Equal(t, 10, r.most)
		require.Zero(t, r.Pending())
	})
}

// Wait returns which calls hang, and for which pods.
func TestHangingCallsAreNamed(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		over := make(chan struct{})
		r.answer = func(context.Context, string, string, int) error { <-over; return nil }
		r.queueStatuses("a")
		r.Mark(r.callNamed("mark"), pod("b"), time.Now().Add(time.Hour))
		synctest.Wait()
		enough := make(chan struct{})
		close(enough)
		require.Equal(t, []string{
			"Options.Reporter.FlushPod for pod default/a", "Options.Reporter.MarkNotReady for pod default/b",
		}, r.group.Wait(enough))
		close(over)
		advance(time.Second)
		r.answer = nil
	})
}

// Every acknowledgement counts as an answer, even of another call. An error never does.
func TestAnswers(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		require.Zero(t, r.Answers())
		r.answer = func(_ context.Context, _, pod string, _ int) error {
			if pod == "bad" {
				return errRefused
			}
			return nil
		}
		r.queueStatuses("bad")
		advance(time.Second)
		require.Zero(t, r.Answers())
		r.queueStatuses("good")
		synctest.Wait()
		require.EqualValues(t, 1, r.Answers())
		r.Acknowledged()
		require.EqualValues(t, 2, r.Answers())
	})
}

// A final status that is queued again before its acknowledgement is sent once, with the newer
// function, and both callers are told.
func TestStatusThatIsHandedInAgain(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.takes = 100 * time.Millisecond
		r.answer = func(_ context.Context, what, _ string, _ int) error {
			if what == "status" {
				return errRefused
			}
			return nil
		}
		acknowledged := func() { r.acked = append(r.acked, "later") } // guarded by the queue until it is read
		r.queueStatuses("a")
		synctest.Wait()
		r.Status(r.callNamed("later"), pod("a"), acknowledged)
		require.Equal(t, 1, r.Pending())
		advance(time.Minute)
		require.Equal(t, []string{"status a", "later a"}, r.callNames())
		require.Equal(t, []string{"a", "later"}, r.acknowledged())
		require.Zero(t, r.Pending())
		r.Status(r.callNamed("later"), pod("a"), acknowledged)
		advance(time.Minute)
		require.Len(t, r.callNames(), 3, "what was acknowledged is another status")
	})
}
