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
	bubble(t, func(t *testing.T, r *rig) {
		r.takes = 100 * time.Millisecond
		r.status(many(25)...)
		require.Equal(t, 25, r.Pending())
		pass(99 * time.Millisecond)
		require.Len(t, r.seen(), 10)
		pass(time.Millisecond)
		require.Len(t, r.seen(), 20)
		require.Equal(t, 15, r.Pending())
		pass(200 * time.Millisecond)
		require.Equal(t, 10, r.most)
		require.Zero(t, r.Pending())
		acknowledged := r.acknowledged()
		slices.Sort(acknowledged)
		require.Equal(t, many(25), acknowledged)
		require.Len(t, r.seen(), 25, "one request each")
		require.NoError(t, r.Failure())
	})
}

// Final statuses come before marks, and those before restores.
func TestOrderOfKinds(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		r.answer = func(_ context.Context, _, pod string, _ int) error {
			if i := slices.Index(many(10), pod); i >= 0 { // one after the other, so that one call is free at a time
				<-time.After(time.Duration(i+1) * 100 * time.Millisecond)
			}
			return nil
		}
		r.status(many(10)...) // all calls are taken
		r.restore("c", time.Hour)
		r.Mark(r.tell("mark"), pod("b"), time.Now().Add(time.Hour))
		r.status("a")
		pass(time.Second)
		require.Equal(t, []string{"status a", "mark b", "restore c"}, r.seen()[10:])
	})
}

// New items come before failed ones, so that a pod that is refused for ever delays no other.
func TestFreshBeforeFailed(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		r.takes = 100 * time.Millisecond
		r.answer = func(_ context.Context, _, pod string, _ int) error {
			if pod == "pod-000" {
				return errRefused
			}
			return nil
		}
		r.status(many(50)...)
		pass(450 * time.Millisecond)
		require.Len(t, r.times("status pod-000"), 1, "nothing but fresh ones")
		pass(time.Hour)
		require.Equal(t, 1, r.Pending())
		require.Greater(t, len(r.times("status pod-000")), 1000)
		require.ErrorIs(t, r.Failure(), errRefused)
		require.ErrorContains(t, r.Failure(), "pod default/pod-000: ")
	})
}

// The pauses of a pod double from 100 ms to 1 s, and each pod has its own.
func TestPausesOfAPod(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		r.answer = func(_ context.Context, _, _ string, n int) error {
			if n < 6 {
				return errRefused
			}
			return nil
		}
		r.status("a")
		pass(time.Minute)
		ms := time.Millisecond
		require.Equal(t, []time.Duration{0, 100 * ms, 300 * ms, 700 * ms, 1500 * ms, 2500 * ms, 3500 * ms}, r.times("status a"))
		require.Equal(t, []string{"a"}, r.acknowledged())
		require.Zero(t, r.Pending())
	})
}

// The first call for a pod may take 5 s, the second 10 s, and so on: a slow server gets time
// later, and a call that hangs is ended.
func TestAttemptsTakeLongerEachTime(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		r.takes = 18 * time.Second
		r.status("a")
		pass(time.Minute)
		require.Equal(t, []time.Duration{5 * time.Second, 10 * time.Second, 20 * time.Second}, r.limit)
		require.Equal(t, []string{"a"}, r.acknowledged())
		require.ErrorIs(t, r.Failure(), call.ErrTimeSpent)
	})
}

// A function that panics or ends its goroutine has failed. Neither reduces the ten calls.
func TestFunctionThatPanicsOrExits(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
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
		r.status(many(30)...)
		pass(time.Minute)
		require.Len(t, r.acknowledged(), 30)
		r.status(many(10)...)
		synctest.Wait()
		r.server.mu.Lock()
		defer r.server.mu.Unlock()
		require.Equal(t, 10, r.now)
	})
}

// After the end of the queue's context nothing is sent, and running calls end.
func TestEndOfTheQueue(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		r.takes = time.Second
		r.status(many(20)...)
		synctest.Wait()
		r.stop(errLetGo)
		pass(time.Minute)
		require.Len(t, r.seen(), 10)
		require.Equal(t, 20, r.Pending())
		require.ErrorIs(t, r.Failure(), errLetGo)
		r.status("late")
		pass(time.Minute)
		require.Len(t, r.seen(), 10)
	})
}

// Calls that ignore the end of their context do not keep others from being sent, and their
// results count.
func TestDeafCalls(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		over := make(chan struct{})
		r.takes = time.Millisecond
		r.answer = func(_ context.Context, _, pod string, _ int) error {
			if strings.HasPrefix(pod, "deaf") {
				<-over
			}
			return nil
		}
		for n := range 10 {
			r.status(fmt.Sprint("deaf-", n))
		}
		r.status(many(20)...)
		pass(5 * time.Second)
		require.Len(t, r.seen(), 10)
		pass(2 * time.Second)
		require.Len(t, r.seen(), 30)
		require.Equal(t, 10, r.Pending())
		close(over)
		pass(time.Second)
		require.Zero(t, r.Pending())
		require.Equal(t, 20, r.most, "the ten that are deaf and ten others")
		r.most = 0
		r.status(many(40)[20:]...)
		pass(time.Second)
		require.Equal(t, 10, r.most)
		require.Zero(t, r.Pending())
	})
}

// Wait returns which calls hang, and for which pods.
func TestHangingCallsAreNamed(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		over := make(chan struct{})
		r.answer = func(context.Context, string, string, int) error { <-over; return nil }
		r.status("a")
		r.Mark(r.tell("mark"), pod("b"), time.Now().Add(time.Hour))
		synctest.Wait()
		enough := make(chan struct{})
		close(enough)
		require.Equal(t, []string{
			"Options.Reporter.FlushPod for pod default/a", "Options.Reporter.MarkNotReady for pod default/b",
		}, r.group.Wait(enough))
		close(over)
		pass(time.Second)
		r.answer = nil
	})
}

// Every acknowledgement counts as an answer, even of another call. An error never does.
func TestAnswers(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		require.Zero(t, r.Answers())
		r.answer = func(_ context.Context, _, pod string, _ int) error {
			if pod == "bad" {
				return errRefused
			}
			return nil
		}
		r.status("bad")
		pass(time.Second)
		require.Zero(t, r.Answers())
		r.status("good")
		synctest.Wait()
		require.EqualValues(t, 1, r.Answers())
		r.Acknowledged()
		require.EqualValues(t, 2, r.Answers())
	})
}

// A final status that is queued again before its acknowledgement is sent once, with the newer
// function, and both callers are told.
func TestStatusThatIsHandedInAgain(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		r.takes = 100 * time.Millisecond
		r.answer = func(_ context.Context, what, _ string, _ int) error {
			if what == "status" {
				return errRefused
			}
			return nil
		}
		acknowledged := func() { r.acked = append(r.acked, "later") } // guarded by the queue until it is read
		r.status("a")
		synctest.Wait()
		r.Status(r.tell("later"), pod("a"), acknowledged)
		require.Equal(t, 1, r.Pending())
		pass(time.Minute)
		require.Equal(t, []string{"status a", "later a"}, r.seen())
		require.Equal(t, []string{"a", "later"}, r.acknowledged())
		require.Zero(t, r.Pending())
		r.Status(r.tell("later"), pod("a"), acknowledged)
		pass(time.Minute)
		require.Len(t, r.seen(), 3, "what was acknowledged is another status")
	})
}
