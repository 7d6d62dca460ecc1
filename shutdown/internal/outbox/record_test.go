package outbox_test

import (
	"context"
	"iter"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/shutdown/internal/outbox"
)

// entry is a debt on record.
type entry struct {
	kind outbox.Kind
	pod  *v1.Pod
}

func yields(entries ...entry) iter.Seq2[outbox.Kind, *v1.Pod] {
	return func(yield func(outbox.Kind, *v1.Pod) bool) {
		for _, e := range entries {
			if !yield(e.kind, e.pod) {
				return
			}
		}
	}
}

// Debts yields all debts, in the order in which they arose, with the final status of each pod as
// it is then. There is no limit to their number.
func TestDebts(t *testing.T) {
	closed(t, func(t *testing.T, r *rig) {
		phase := v1.PodRunning
		r.RestoreMarked(pods("c"))
		r.Owe(pod("a"), func() *v1.Pod {
			final := pod("a")
			final.Status.Phase = phase
			return final
		}, nil)
		r.Mark(pod("b"), time.Now().Add(time.Hour))
		require.Equal(t, []string{"RestoreReadiness c", "FlushPod a"}, r.record(), "a mark that was not sent is none")
		phase = v1.PodFailed
		debts, _ := r.Debts()
		for kind, pod := range debts {
			if kind == outbox.KindStatus {
				require.Equal(t, v1.PodFailed, pod.Status.Phase)
			}
		}
		for range debts {
			break
		}
		r.owe(podNames(1500)...)
		require.Len(t, r.record(), 1502)
	})
}

// The final statuses of a former agent are owed before Open, and sent then. Its marks are restored
// if the shutdown is cancelled.
func TestLoad(t *testing.T) {
	closed(t, func(t *testing.T, r *rig) {
		static := staticPod("static")
		r.Load(yields(
			entry{outbox.KindMark, pod("marked")}, entry{outbox.KindStatus, pod("ended")}, entry{outbox.KindStatus, static},
			entry{outbox.KindMark, pod("ended")},
		))
		require.False(t, r.changed(), "the record has them")
		require.True(t, r.Owes(pod("ended")))
		require.Equal(t, 2, r.Unacknowledged())
		require.Equal(t, []string{"MarkNotReady marked", "FlushPod ended", "FlushPod static"}, r.record())
		r.Withdraw(static)
		r.leave = r.Open(quiet(t))
		synctest.Wait()
		require.Equal(t, []string{"status ended"}, r.callNames())
		require.Equal(t, []string{"MarkNotReady marked"}, r.record())
		r.Restore(everybody)
		synctest.Wait()
		require.Equal(t, []string{"restore marked"}, r.callNames()[1:])
	})
}

// A status withdraws the marks of its pod on record, in any order.
func TestLoadedStatusWithdrawsReadiness(t *testing.T) {
	closed(t, func(t *testing.T, r *rig) {
		r.Load(yields(entry{outbox.KindMark, pod("a")}, entry{outbox.KindStatus, pod("a")}, entry{outbox.KindMark, pod("a")}))
		require.Equal(t, []string{"FlushPod a"}, r.record())
	})
}

// The record is read a second time once the former agent has ended. What that has paid meanwhile
// is no longer owed, and what it could not is, also if this agent owes it by now.
func TestLoadAgain(t *testing.T) {
	closed(t, func(t *testing.T, r *rig) {
		r.Load(yields(
			entry{outbox.KindStatus, pod("ended")}, entry{outbox.KindStatus, pod("paid ended")},
			entry{outbox.KindMark, pod("marked")}, entry{outbox.KindMark, pod("paid marked")}, entry{outbox.KindStatus, pod("taken over")},
		))
		require.True(t, r.Owes(pod("paid ended")))
		r.owe("taken over")
		newer := pod("ended")
		newer.Generation = 2
		r.Load(yields(entry{outbox.KindStatus, newer}, entry{outbox.KindMark, pod("marked")}, entry{outbox.KindStatus, pod("late")}))
		require.False(t, r.Owes(pod("paid ended")))
		require.True(t, r.Owes(pod("ended")))
		require.True(t, r.Owes(pod("taken over")))
		require.True(t, r.Owes(pod("late")))
		require.Equal(t, []string{"FlushPod ended", "MarkNotReady marked", "FlushPod taken over", "FlushPod late"}, r.record())
		debts, _ := r.Debts()
		for kind, pod := range debts {
			if kind == outbox.KindStatus && pod.Name == "ended" {
				require.EqualValues(t, 2, pod.Generation)
			}
		}
		r.leave = r.Open(quiet(t))
		synctest.Wait()
		require.Equal(t, []string{"status ended", "status late", "status taken over"}, sorted(r.callNames()))
	})
}

// A status that this agent has settled since the first reading is not owed by the second one,
// which may be older.
func TestLoadAfterItWasSettled(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.Load(yields(entry{outbox.KindStatus, pod("a")}))
		synctest.Wait()
		r.Load(yields(entry{outbox.KindStatus, pod("a")}))
		advance(time.Minute)
		require.Equal(t, []string{"status a"}, r.callNames())
		require.True(t, r.Owes(pod("a")))
		r.store()
		require.False(t, r.Owes(pod("a")))
	})
}

// A debt on record that is owed again is told once, with what is known now.
func TestOwedAgainAfterLoad(t *testing.T) {
	closed(t, func(t *testing.T, r *rig) {
		r.Load(yields(entry{outbox.KindStatus, pod("a")}))
		newer := pod("a")
		newer.Generation = 2
		r.Owe(newer, nil, r.tells("a"))
		r.leave = r.Open(quiet(t))
		synctest.Wait()
		require.Len(t, r.callNames(), 1)
		require.EqualValues(t, 2, r.sent[0].Generation)
		require.Equal(t, []string{"a"}, r.acknowledged())
	})
}

// A status that was withdrawn while its call is under way is not owed again by a record that has it
// still.
func TestLoadWhatIsBeingWithdrawn(t *testing.T) {
	closed(t, func(t *testing.T, r *rig) {
		static, answer := staticPod("static"), make(chan struct{})
		r.set(func() {
			r.answer = func(context.Context, string, string, int) error { <-answer; return errRefused } // it ignores its context
		})
		r.Load(yields(entry{outbox.KindStatus, static}))
		r.leave = r.Open(quiet(t))
		synctest.Wait()
		r.Withdraw(static)
		r.Load(yields(entry{outbox.KindStatus, static}))
		close(answer)
		<-time.After(time.Minute)
		require.Equal(t, []string{"status static"}, r.callNames())
		require.Zero(t, r.Unacknowledged())
	})
}
