package outbox_test

import (
	"context"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/shutdown/internal/outbox"
)

// A final status that is owed again before its acknowledgement is sent once, with the newer pod,
// and both are told. One that is owed after it is another one.
func TestStatusThatIsOwedTwice(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.refuse(errRefused)
		r.owe("a")
		synctest.Wait()
		newer := pod("a")
		newer.Generation = 2
		r.Owe(pod("a"), func() *v1.Pod { return newer }, r.tells("later"))
		require.Equal(t, 1, r.Unacknowledged())
		r.refuse(nil)
		advance(time.Minute)
		require.Equal(t, []string{"status a", "status a"}, r.callNames())
		require.EqualValues(t, 2, r.sent[1].Generation)
		require.Equal(t, []string{"a", "later"}, r.acknowledged())
		require.Zero(t, r.Unacknowledged())
		r.Owe(pod("a"), nil, r.tells("again"))
		synctest.Wait()
		require.Len(t, r.callNames(), 3)
		require.Equal(t, []string{"a", "later", "again"}, r.acknowledged())
	})
}

// A status that is owed again while it is being sent is not sent again.
func TestStatusThatIsOwedTwiceWhileItIsSent(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.takes = time.Second
		r.owe("a")
		synctest.Wait()
		r.Owe(pod("a"), nil, r.tells("later"))
		advance(time.Minute)
		require.Len(t, r.callNames(), 1)
		require.Equal(t, []string{"a", "later"}, r.acknowledged())
	})
}

// A pod is known by its UID, so that a newer one of the same name is another pod; without a UID by
// its namespace and name.
func TestOwesByUID(t *testing.T) {
	closed(t, func(t *testing.T, r *rig) {
		older, newer, other := pod("web"), pod("web"), pod("web")
		older.UID, newer.UID, other.Namespace = "1", "2", "other"
		r.Owe(older, nil, nil)
		require.True(t, r.Owes(older))
		require.False(t, r.Owes(newer))
		require.False(t, r.Owes(pod("web")))
		r.Owe(pod("web"), nil, nil)
		require.True(t, r.Owes(pod("web")))
		require.False(t, r.Owes(other))
		require.Equal(t, 2, r.Unacknowledged())
	})
}

// A pod is owed until its acknowledgement is on record: a write that began before does not have
// it, and one that has failed counts, because a full disk must not keep a pod from its start.
func TestOwedUntilItIsOnRecord(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		web := pod("web")
		r.takes = time.Second
		r.Owe(web, nil, nil)
		require.True(t, r.changed(), "it arose")
		debts, stored := r.Debts()
		require.False(t, r.changed())
		advance(time.Second)
		require.Zero(t, r.Unacknowledged())
		require.True(t, r.Owes(web))
		require.True(t, r.changed(), "it was acknowledged")
		for kind, pod := range debts {
			require.Equal(t, outbox.KindStatus, kind)
			require.Same(t, web, pod)
		}
		stored()
		require.True(t, r.Owes(web), "that write had it")
		require.Empty(t, r.record())
		r.store()
		require.False(t, r.Owes(web))

		r.Owe(web, nil, nil)
		advance(time.Second)
		_, stored = r.Debts()
		r.Owe(web, nil, nil)
		advance(time.Second)
		stored()
		require.True(t, r.Owes(web), "it was settled a second time after that")
		r.store()
		require.False(t, r.Owes(web))
	})
}

// An outbox that stores nothing owes no pod that is acknowledged.
func TestOwedWithoutARecord(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := outbox.New(outbox.Options{FlushPod: func(context.Context, *v1.Pod) error { return nil }})
		o.Owe(pod("a"), nil, nil)
		require.True(t, o.Owes(pod("a")))
		leave := o.Open(t.Context())
		synctest.Wait()
		require.False(t, o.Owes(pod("a")))
		require.Empty(t, leave().Wait(nil))
	})
}

// A reporter without a function has no debts of its kind.
func TestReporterWithoutFunctions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := outbox.New(outbox.Options{})
		leave := o.Open(t.Context())
		o.Owe(pod("a"), nil, func() { require.Fail(t, "it was not acknowledged") })
		require.NoError(t, awaitMark(t, o.Mark(pod("b"), time.Now().Add(time.Hour))))
		o.RestoreMarked(pods("c"))
		o.Restore(func(*v1.Pod) bool { return true })
		o.Load(func(yield func(outbox.Kind, *v1.Pod) bool) {
			_ = yield(outbox.KindStatus, pod("d")) && yield(outbox.KindMark, pod("e"))
		})
		require.False(t, o.Owes(pod("a")))
		require.False(t, o.Owes(pod("d")))
		require.Zero(t, o.Unacknowledged())
		debts, _ := o.Debts()
		for kind := range debts {
			require.Fail(t, kind.String())
		}
		require.NoError(t, o.Publish("on").Await(t.Context(), time.Now()))
		require.Empty(t, leave().Wait(nil))
	})
}

// A mark that cannot be restored leaves nothing behind.
func TestReporterThatCannotRestore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := outbox.New(outbox.Options{MarkNotReady: func(context.Context, *v1.Pod) error { return nil }})
		leave := o.Open(t.Context())
		mark := o.Mark(pod("b"), time.Now().Add(time.Hour))
		synctest.Wait()
		require.NoError(t, awaitMark(t, mark))
		debts, _ := o.Debts()
		for kind := range debts {
			require.Fail(t, kind.String())
		}
		require.Empty(t, leave().Wait(nil))
	})
}

// The final status of a static pod that is to be started again is withdrawn, as if it were
// acknowledged. Other pods keep theirs.
func TestWithdraw(t *testing.T) {
	closed(t, func(t *testing.T, r *rig) {
		static := staticPod("static")
		r.Owe(static, nil, r.tells("static"))
		r.owe("web")
		r.Withdraw(static)
		r.Withdraw(pod("web"))
		r.Withdraw(staticPod("other"))
		require.Equal(t, []string{"static"}, r.acknowledged())
		require.True(t, r.Owes(static), "its withdrawal is not on record")
		require.Equal(t, []string{"FlushPod web"}, r.record())
		r.store()
		require.False(t, r.Owes(static))
		require.True(t, r.Owes(pod("web")))
		r.Withdraw(static)
		r.leave = r.Open(quiet(t))
		synctest.Wait()
		require.Equal(t, []string{"status web"}, r.callNames())
		r.Owe(static, nil, nil)
		synctest.Wait()
		require.Equal(t, []string{"status web", "status static"}, r.callNames(), "another one is sent")
	})
}

// A status that is being sent is withdrawn when its call has returned, which Withdraw ends. Until
// then it is owed. It is acknowledged if the call succeeds all the same.
func TestWithdrawWhileItIsSent(t *testing.T) {
	for _, heard := range []bool{true, false} {
		inBubble(t, func(t *testing.T, r *rig) {
			static, over := staticPod("static"), make(chan struct{})
			r.answer = func(ctx context.Context, _, _ string, _ int) error {
				if <-ctx.Done(); !heard {
					<-over
					return nil
				}
				return context.Cause(ctx)
			}
			r.Owe(static, nil, r.tells("static"))
			synctest.Wait()
			r.Withdraw(static)
			r.store()
			require.True(t, r.Owes(static))
			synctest.Wait()
			if !heard {
				r.store()
				require.True(t, r.Owes(static), "the server may still get it")
				r.Withdraw(static)
			}
			close(over)
			synctest.Wait()
			r.store()
			require.False(t, r.Owes(static))
			require.Equal(t, []string{"static"}, r.acknowledged())
			require.NoError(t, r.Failure())
			advance(time.Minute)
			require.Len(t, r.callNames(), 1)
		})
	}
}

// A status that is owed again while its withdrawal waits for its call is sent again.
func TestOwedAgainWhileItIsWithdrawn(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		static := staticPod("static")
		r.answer = silent
		r.Owe(static, nil, r.tells("first"))
		synctest.Wait()
		r.Withdraw(static)
		r.Owe(static, nil, r.tells("second"))
		r.refuse(nil)
		synctest.Wait()
		require.Len(t, r.callNames(), 2)
		require.Equal(t, []string{"first", "second"}, r.acknowledged())
	})
}

// A withdrawal ends the wait for it.
func TestWithdrawEndsAwait(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		static := staticPod("static")
		r.refuse(errRefused)
		r.Owe(static, nil, nil)
		time.AfterFunc(550*time.Millisecond, func() { r.Withdraw(static) })
		require.True(t, r.AwaitAll(t.Context(), r.began.Add(time.Hour), time.Second))
		require.Equal(t, 550*time.Millisecond, time.Since(r.began))
	})
}

// There may be an owed status for each pod of a large node, so each takes little memory besides
// its pod. 300 bytes are also for the two functions of the caller.
func TestMemoryOfADebt(t *testing.T) {
	const count = 50_000
	all := make([]v1.Pod, count)
	keys := make([]string, count)
	for n := range all {
		keys[n] = time.Duration(n).String()
		all[n].Name = keys[n]
	}
	o := outbox.New(outbox.Options{FlushPod: func(context.Context, *v1.Pod) error { return nil }})
	before := heap()
	for n := range all {
		p := &all[n]
		o.Owe(p, func() *v1.Pod { return p }, func() { p.Generation++ })
	}
	require.LessOrEqual(t, (heap()-before)/count, uint64(300), "bytes")
	require.Equal(t, count, o.Unacknowledged())
	runtime.KeepAlive(all)
}

// heap returns the bytes that are in use.
func heap() uint64 {
	var stats runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}
