package statuses_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kubegrace/kubegrace/shutdown/internal/statuses"
)

func (r *rig) queueMark(name string, lasts time.Duration) *statuses.Mark {
	return r.Mark(r.callNamed("mark"), pod(name), time.Now().Add(lasts))
}

// result reports whether a mark has completed, and with which error.
func result(t *testing.T, m *statuses.Mark) (ok bool, err error) {
	t.Helper()
	select {
	case <-m.Done():
		_, err = m.Await(t.Context(), time.Now())
		return true, err
	default:
		return false, nil
	}
}

// A mark completes when the API server has it.
func TestMark(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.takes = time.Second
		m := r.queueMark("a", time.Hour)
		require.True(t, m.Sent())
		ok, _ := result(t, m)
		require.False(t, ok)
		advance(time.Second)
		ok, err := result(t, m)
		require.True(t, ok)
		require.NoError(t, err)
	})
}

// A failed mark is tried again until it expires, and no call goes on after that.
func TestMarkExpires(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.answer = func(context.Context, string, string, int) error { return errRefused }
		m := r.queueMark("a", time.Second)
		advance(time.Hour)
		ok, err := result(t, m)
		require.True(t, ok)
		require.Error(t, err)
		require.Len(t, r.callStarts("mark a"), 4, "at 0, 100, 300 and 700 ms")
		require.True(t, m.Sent())

		r.answer, r.takes = nil, time.Hour
		began := time.Now()
		m = r.queueMark("b", time.Second)
		_, err = m.Await(t.Context(), began.Add(time.Minute))
		require.Error(t, err)
		require.Equal(t, time.Second, time.Since(began))
	})
}

// A mark that expires before its turn is dropped and was never sent.
func TestMarkThatWasNotSent(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.takes = 2 * time.Second
		r.queueStatuses(podNames(10)...)
		m := r.queueMark("a", time.Second)
		advance(time.Minute)
		ok, err := result(t, m)
		require.True(t, ok)
		require.Error(t, err)
		require.False(t, m.Sent())
		require.Empty(t, r.callStarts("mark a"))
	})
}

// Dropped marks complete at once, or when their call returns if one is under way.
func TestDropMarks(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.takes = time.Second
		var marks []*statuses.Mark
		for _, name := range podNames(20) {
			marks = append(marks, r.queueMark(name, time.Hour))
		}
		r.queueStatuses("a")
		synctest.Wait()
		r.DropMarks()
		synctest.Wait()
		for i, m := range marks {
			ok, err := result(t, m)
			require.True(t, ok)
			require.Error(t, err)
			require.Equal(t, i < 10, m.Sent(), i)
		}
		advance(time.Minute)
		require.Equal(t, 10, countPrefix(r.callNames(), "mark"))
		require.Equal(t, []string{"a"}, r.acknowledged(), "statuses are not dropped")
	})
}

// A mark that is waiting for its next attempt is dropped too.
func TestDropMarksThatHaveFailed(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.answer = func(context.Context, string, string, int) error { return errRefused }
		m := r.queueMark("a", time.Hour)
		synctest.Wait()
		r.DropMarks()
		ok, _ := result(t, m)
		require.True(t, ok)
		advance(time.Minute)
		require.Len(t, r.callStarts("mark a"), 1)
	})
}

// The later one of a mark and a restore counts: neither is sent while the other is in flight,
// even if its call ignores its context.
func TestMarksAndRestoresExcludeEachOther(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		deaf := make(chan struct{})
		r.answer = func(_ context.Context, what, _ string, _ int) error {
			if what == "mark" {
				<-deaf
			}
			return nil
		}
		r.queueMark("a", time.Hour)
		synctest.Wait()
		r.DropMarks()
		r.queueRestore("a", time.Hour)
		r.queueStatuses("other")
		advance(time.Minute)
		require.Equal(t, []string{"mark a", "status other"}, r.callNames())
		close(deaf)
		advance(time.Second)
		require.Equal(t, []string{"mark a", "status other", "restore a"}, r.callNames())
		require.Empty(t, r.notRestored())
	})
	inBubble(t, func(t *testing.T, r *rig) {
		deaf := make(chan struct{})
		r.answer = func(_ context.Context, what, _ string, _ int) error {
			if what == "restore" {
				<-deaf
			}
			return nil
		}
		r.queueRestore("a", time.Hour)
		synctest.Wait()
		r.DropRestores()
		m := r.queueMark("a", time.Hour)
		advance(time.Minute)
		require.False(t, m.Sent())
		close(deaf)
		advance(time.Second)
		require.Equal(t, []string{"restore a", "mark a"}, r.callNames())
	})
}

// A mark that fails is tried again, but not while a restore is in flight.
func TestMarkThatFailsBesideARestore(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.takes = 150 * time.Millisecond
		r.answer = func(_ context.Context, what, _ string, n int) error {
			if what == "mark" && n == 0 {
				return errRefused
			}
			return nil
		}
		began := time.Now()
		r.queueMark("a", time.Hour)
		r.queueRestore("b", time.Hour)
		advance(time.Second)
		require.Equal(t, []string{"mark a", "restore b", "mark a"}, r.callNames())
		require.Equal(t, []time.Duration{0, 300 * time.Millisecond}, r.callStarts("mark a"), "at 250 ms the restore is in flight")
		require.Equal(t, time.Second, time.Since(began))
	})
}

// A restore is tried until it expires. Then its failure is reported, once.
func TestRestore(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.answer = func(_ context.Context, _, pod string, n int) error {
			if pod == "bad" || n < 2 {
				return errRefused
			}
			return nil
		}
		r.queueRestore("good", time.Minute)
		r.queueRestore("bad", time.Minute)
		advance(30 * time.Second)
		require.Len(t, r.callStarts("restore good"), 3)
		require.Empty(t, r.notRestored())
		advance(time.Hour)
		require.Len(t, r.notRestored(), 1)
		require.Contains(t, r.notRestored()[0], "bad: ")
		require.Zero(t, r.Pending(), "they are no final statuses")
		require.NoError(t, r.Failure())
	})
}

// Dropped restores are reported and not sent any more.
func TestDropRestores(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.takes = time.Minute
		for _, name := range podNames(11) {
			r.queueRestore(name, time.Hour)
		}
		synctest.Wait()
		r.DropRestores()
		synctest.Wait()
		require.Len(t, r.notRestored(), 11)
		advance(time.Hour)
		require.Len(t, r.callNames(), 10)
	})
}
