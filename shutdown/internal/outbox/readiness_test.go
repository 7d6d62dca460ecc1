package outbox_test

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/shutdown/internal/call"
)

func (r *rig) mark(name string, lasts time.Duration) *call.Future[struct{}] {
	return r.Mark(pod(name), time.Now().Add(lasts))
}

func everybody(*v1.Pod) bool { return true }

func nobody(*v1.Pod) bool { return false }

// A mark completes when the API server has it.
func TestMark(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.takes = time.Second
		m := r.mark("a", time.Hour)
		advance(999 * time.Millisecond)
		require.True(t, r.changed(), "the server may have it")
		require.Equal(t, []string{"MarkNotReady a"}, r.record())
		select {
		case <-m.Done():
			require.Fail(t, "it has completed")
		default:
		}
		advance(time.Millisecond)
		require.NoError(t, awaitMark(t, m))
		advance(time.Minute)
		require.Len(t, r.callNames(), 1)
	})
}

// A failed mark is tried again until its time is over, and no call goes on after that. The mark
// has the error of the last call.
func TestMarkExpires(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.refuse(errRefused)
		m := r.mark("a", time.Second)
		advance(time.Hour)
		require.ErrorIs(t, awaitMark(t, m), errRefused)
		require.Len(t, r.callStarts("mark a"), 4, "at 0, 100, 300 and 700 ms")

		r.set(func() { r.answer = silent })
		began := time.Now()
		m = r.mark("b", time.Second)
		_, err := m.Await(t.Context(), began.Add(time.Minute))
		require.ErrorIs(t, err, call.ErrTimeSpent)
		require.Equal(t, time.Second, time.Since(began))
		r.owe("c")
		synctest.Wait()
		require.Equal(t, 2250*time.Millisecond, r.limit[len(r.limit)-1], "the server had no time to answer")
	})
}

// A mark of a bucket that comes later has no pause of an earlier one.
func TestMarkAfterOneThatExpired(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.refuseOnly("a")
		r.mark("a", time.Second)
		advance(time.Second)
		r.mark("a", time.Second)
		advance(100 * time.Millisecond)
		ms := time.Millisecond
		require.Equal(t, []time.Duration{0, 100 * ms, 300 * ms, 700 * ms, 1000 * ms}, r.callStarts("mark a"))
	})
}

// A mark whose time is over before its turn is withdrawn, and owes no restoration.
func TestMarkThatWasNotSent(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.takes = 2 * time.Second
		r.owe(podNames(10)...)
		m := r.mark("a", time.Second)
		advance(time.Minute)
		require.ErrorIs(t, awaitMark(t, m), call.ErrTimeSpent)
		require.Empty(t, r.record())
		r.Restore(everybody)
		synctest.Wait()
		require.Len(t, r.callNames(), 10)
	})
}

// A mark that was sent owes its restoration, whether it was answered, refused or not answered.
func TestSentMarksAreRestored(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.answer = func(ctx context.Context, _, pod string, _ int) error {
			switch pod {
			case "refused":
				return errRefused
			case "lost":
				return silent(ctx, "", "", 0)
			default:
				return nil
			}
		}
		for _, name := range []string{"refused", "lost", "answered", "gone"} {
			r.mark(name, time.Second)
		}
		advance(time.Minute)
		require.True(t, r.changed(), "what was sent belongs on record")
		require.Equal(t, []string{"MarkNotReady refused", "MarkNotReady lost", "MarkNotReady answered", "MarkNotReady gone"}, r.record())
		r.set(func() { r.answer, r.takes = nil, time.Second })
		r.Restore(func(pod *v1.Pod) bool { return pod.Name != "gone" })
		require.True(t, r.changed())
		require.Equal(t, []string{"RestoreReadiness refused", "RestoreReadiness lost", "RestoreReadiness answered"}, r.record())
		advance(time.Second)
		require.Equal(t, 3, countPrefix(r.callNames(), "restore"))
		require.Empty(t, r.callStarts("restore gone"))
		require.Empty(t, r.record())
		require.True(t, r.changed())
		r.Restore(everybody)
		advance(time.Minute)
		require.Equal(t, 3, countPrefix(r.callNames(), "restore"), "each once")
	})
}

// When the shutdown is cancelled, marks that were not sent are withdrawn at once, and the calls of
// the others end. Their restoration follows.
func TestRestoreEndsMarks(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.takes = time.Second
		var marks []*call.Future[struct{}]
		for _, name := range podNames(20) {
			marks = append(marks, r.mark(name, time.Hour))
		}
		r.owe("a")
		synctest.Wait()
		r.Restore(everybody)
		for _, m := range marks {
			require.Error(t, awaitMark(t, m))
		}
		synctest.Wait()
		require.Contains(t, r.callNames(), "status a", "statuses are not withdrawn")
		advance(time.Minute)
		require.Equal(t, 10, countPrefix(r.callNames(), "mark"))
		require.Equal(t, 10, countPrefix(r.callNames(), "restore"))
		require.Equal(t, []string{"a"}, r.acknowledged())
	})
}

// A mark that waits for its next attempt is withdrawn too.
func TestRestoreEndsMarksThatHaveFailed(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.refuse(errRefused)
		m := r.mark("a", time.Hour)
		synctest.Wait()
		r.Restore(nobody)
		require.Error(t, awaitMark(t, m))
		advance(time.Minute)
		require.Len(t, r.callNames(), 1)
	})
}

// A mark of the cancelled shutdown that comes too late is withdrawn. The next shutdown marks
// again.
func TestMarkAfterACancellation(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.Restore(everybody)
		require.Error(t, awaitMark(t, r.mark("a", time.Hour)))
		synctest.Wait()
		require.Empty(t, r.callNames())
		r.Suspend()
		r.mark("a", time.Hour)
		synctest.Wait()
		require.Equal(t, []string{"mark a"}, r.callNames())
	})
}

// The later one of a mark and a restoration of a pod counts: neither is sent while the other is in
// flight, even if its call ignores its context. Other pods do not wait for that.
func TestMarksAndRestorationsExcludeEachOther(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		deaf := make(chan struct{})
		r.answer = func(_ context.Context, what, pod string, _ int) error {
			if what == "mark" && pod == "a" {
				<-deaf
			}
			return nil
		}
		r.mark("a", time.Hour)
		r.mark("b", time.Hour)
		synctest.Wait()
		r.Restore(everybody)
		advance(time.Minute)
		require.Equal(t, []string{"restore b"}, r.callNames()[2:])
		require.Equal(t, []string{"RestoreReadiness a"}, r.record())
		close(deaf)
		synctest.Wait()
		require.Equal(t, []string{"restore b", "restore a"}, r.callNames()[2:])
		require.Empty(t, r.record())
	})
	inBubble(t, func(t *testing.T, r *rig) {
		deaf := make(chan struct{})
		r.answer = func(_ context.Context, what, _ string, _ int) error {
			if what == "restore" {
				<-deaf
			}
			return nil
		}
		r.RestoreMarked(pods("a"))
		synctest.Wait()
		r.Suspend()
		r.mark("a", time.Hour)
		r.mark("b", time.Hour)
		advance(time.Minute)
		require.Equal(t, []string{"restore a", "mark b"}, r.callNames())
		close(deaf)
		synctest.Wait()
		require.Equal(t, []string{"restore a", "mark b", "mark a"}, r.callNames())
	})
}

// A restoration is owed until it is acknowledged, without a limit of time.
func TestRestorationHasNoLimit(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.refuse(errRefused)
		r.RestoreMarked(pods("a"))
		require.True(t, r.changed())
		advance(time.Hour)
		require.Equal(t, []string{"RestoreReadiness a"}, r.record())
		require.Zero(t, r.Unacknowledged(), "it is no final status")
		require.NoError(t, r.Failure())
		r.refuse(nil)
		advance(time.Second)
		require.Empty(t, r.record())
	})
}

// While another shutdown goes on, restorations are owed and not sent: neither those that wait nor
// those in flight nor those that arise. If it is cancelled too they are sent, but for pods that do
// not live on.
func TestSuspend(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.takes = time.Second
		r.RestoreMarked(pods(podNames(11)...))
		synctest.Wait()
		r.Suspend()
		synctest.Wait()
		r.RestoreMarked(pods("late"))
		advance(time.Hour)
		require.Len(t, r.callNames(), 10)
		require.Len(t, r.record(), 12)
		r.Restore(func(pod *v1.Pod) bool { return pod.Name != "pod-003" })
		require.Len(t, r.record(), 11)
		advance(3 * time.Second)
		require.Len(t, r.callNames(), 21)
		require.Empty(t, r.record())
	})
}

// A shutdown that begins and is cancelled before anything is sent changes nothing.
func TestSuspendAndRestoreAtOnce(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		over := make(chan struct{})
		r.answer = func(ctx context.Context, _, _ string, n int) error {
			if n == 0 {
				<-over
			}
			return context.Cause(ctx)
		}
		r.RestoreMarked(pods("a"))
		synctest.Wait()
		r.Suspend()
		m := r.mark("a", time.Hour)
		r.Restore(everybody)
		require.Error(t, awaitMark(t, m))
		close(over)
		synctest.Wait()
		require.Equal(t, []string{"restore a", "restore a"}, r.callNames(), "the first call was ended")
		require.Empty(t, r.record())
	})
}

// A mark of the next shutdown is sent again, and its restoration is owed once.
func TestMarkedAgain(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.mark("a", time.Second)
		advance(time.Minute)
		r.set(func() { r.takes = 100 * time.Millisecond })
		again := r.mark("a", time.Second)
		both := r.mark("a", time.Second)
		advance(100 * time.Millisecond)
		require.NoError(t, awaitMark(t, again))
		require.NoError(t, awaitMark(t, both))
		require.Equal(t, []string{"mark a", "mark a"}, r.callNames())
		require.Equal(t, []string{"MarkNotReady a"}, r.record())
		r.refuse(errRefused)
		r.Restore(everybody)
		synctest.Wait()
		r.Suspend()
		r.mark("a", time.Second)
		synctest.Wait()
		require.Equal(t, []string{"MarkNotReady a", "RestoreReadiness a"}, sorted(r.record()))
		r.refuse(nil)
		r.Restore(everybody)
		advance(time.Minute)
		require.Equal(t, []string{"mark a", "mark a", "restore a", "mark a", "restore a"}, r.callNames())
	})
}

// A mark whose call was ended by a cancellation is sent again if the next shutdown marks the pod
// before that call has returned.
func TestMarkedAgainWhileItsCallEnds(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.answer = silent
		r.mark("a", time.Hour)
		synctest.Wait()
		r.Restore(nobody)
		r.Suspend()
		m := r.mark("a", time.Hour)
		r.refuse(nil)
		synctest.Wait()
		require.NoError(t, awaitMark(t, m))
		require.Len(t, r.callNames(), 2)
	})
}

// A mark that was withdrawn in flight is forgotten: the next one of its pod that is not sent owes no
// restoration.
func TestMarkedAgainAndNotSent(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.answer = silent
		r.mark("a", time.Hour)
		synctest.Wait()
		r.Restore(nobody)
		synctest.Wait()
		r.Suspend()
		r.owe(podNames(10)...)
		r.mark("a", time.Second)
		require.Len(t, r.record(), 10)
		advance(time.Minute)
		require.Len(t, r.record(), 10)
	})
}

// The final status of a pod withdraws its mark and its restoration, in flight or not, and waits for
// neither. Later ones do not arise.
func TestStatusWithdrawsReadiness(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		deaf := make(chan struct{})
		r.answer = func(_ context.Context, what, _ string, _ int) error {
			if what != "status" {
				<-deaf
			}
			return errRefused
		}
		inFlight := r.mark("a", time.Hour)
		r.RestoreMarked(pods("b"))
		synctest.Wait()
		r.owe("a", "b")
		require.Error(t, awaitMark(t, inFlight))
		require.Error(t, awaitMark(t, r.mark("a", time.Hour)))
		r.RestoreMarked(pods("a", "b"))
		synctest.Wait()
		require.Equal(t, []string{"status a", "status b"}, sorted(r.callNames()[2:]))
		require.Equal(t, []string{"FlushPod a", "FlushPod b"}, r.record())
		close(deaf)
		r.Restore(everybody)
		advance(time.Hour)
		require.Equal(t, 2, len(r.callNames())-countPrefix(r.callNames(), "status"))
	})
}

func sorted(names []string) []string {
	names = slices.Clone(names)
	slices.Sort(names)
	return names
}
