package kills_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/shutdown/internal/kills"
)

// newLaterRig returns a drain that begins while the kills of another one are under way.
func newLaterRig(t *testing.T, before *rig, kill func(context.Context, *v1.Pod, int64) (kills.Result, error)) *rig {
	t.Helper()
	r := newRig(t, kill)
	r.before = before.roster
	return r
}

// A pod that ends in time is not signalled again: the later kill takes the end, the outcome and
// the status of the earlier one.
func TestTakeOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		status := &v1.PodStatus{Phase: v1.PodSucceeded}
		first := newRig(t, func(context.Context, *v1.Pod, int64) (kills.Result, error) {
			<-time.After(8 * time.Second)
			return kills.Result{Outcome: "Graceful", Status: status}, nil
		})
		began := time.Now()
		first.startBatch("web")
		<-time.After(2 * time.Second)
		second := newLaterRig(t, first, killTaking(0))
		batch, picked := second.startBatch("web")
		require.Equal(t, 8*time.Second, awaitBatch(t, batch).Sub(began))
		require.Empty(t, second.granted)
		require.Equal(t, []string{"web"}, second.signalled)
		require.Equal(t, kills.Result{Outcome: "Graceful", Status: status}, picked[0].State().Result)
		require.True(t, picked[0].HasEnded())
	})
}

// A pod that would take longer than the later drain grants is killed again, with less time.
func TestTakeOverShortens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first := newRig(t, killTaking(15*time.Second))
		before, earlier := first.startBatch("web")
		<-time.After(2 * time.Second)
		second := newLaterRig(t, first, killTaking(5*time.Second))
		second.Seconds = func(*v1.Pod) int64 { return 17 }
		batch, _ := second.startBatch("web")
		awaitBatch(t, batch)
		require.Equal(t, []int64{17}, second.granted["web"])
		require.False(t, earlier[0].HasEnded(), "each call has its own end")
		awaitBatch(t, before)
	})
}

// If the earlier drain tries again, it grants no more than the later one did.
func TestTakeOverShortensWhatIsTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fails := func(context.Context, *v1.Pod, int64) (kills.Result, error) { return kills.Result{}, errBusy }
		first := newRig(t, fails)
		before, _ := first.startBatch("web")
		<-time.After(2500 * time.Millisecond)
		second := newLaterRig(t, first, fails)
		second.Seconds = func(*v1.Pod) int64 { return 5 }
		batch, _ := second.startBatch("web")
		<-time.After(1200 * time.Millisecond)
		first.letGo(errLetGo)
		second.letGo(errLetGo)
		awaitBatch(t, before)
		awaitBatch(t, batch)
		require.Equal(t, []int64{20, 19, 18, 4}, first.granted["web"])
		require.Equal(t, []int64{5}, second.granted["web"], "the earlier one goes on")
	})
}

// After an earlier kill has failed, the later one tries with the rest of the earlier grace
// period. The wait gives the pod no more time.
func TestTakeOverOfAFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first := newRig(t, func(context.Context, *v1.Pod, int64) (kills.Result, error) {
			<-time.After(15 * time.Second)
			return kills.Result{Outcome: "Stuck"}, errFinal
		})
		first.startBatch("web")
		<-time.After(2 * time.Second)
		second := newLaterRig(t, first, killTaking(time.Second))
		batch, picked := second.startBatch("web")
		awaitBatch(t, batch)
		require.Equal(t, []int64{5}, second.granted["web"])
		require.Equal(t, []time.Duration{13 * time.Second}, second.at["web"])
		require.True(t, picked[0].HasEnded())
		require.Equal(t, "Graceful", picked[0].State().Result.Outcome)
	})
}

// A pod that the earlier drain has given up, or that is still listed after its end, is killed
// again.
func TestNoTakeOverOfWhatIsOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first := newRig(t, func(context.Context, *v1.Pod, int64) (kills.Result, error) { return kills.Result{}, errFinal })
		batch, _ := first.startBatch("web")
		awaitBatch(t, batch)
		second := newLaterRig(t, first, killTaking(0))
		batch, picked := second.startBatch("web", "etcd")
		awaitBatch(t, batch)
		require.Equal(t, map[string][]int64{"web": {20}, "etcd": {20}}, second.granted)
		require.True(t, picked[0].HasEnded())
	})
}

// A pod that is waited for when the host is released has no end.
func TestTakeOverEndsWithTheHost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		over := make(chan struct{})
		first := newRig(t, func(context.Context, *v1.Pod, int64) (kills.Result, error) { <-over; return kills.Result{}, nil })
		first.startBatch("web")
		<-time.After(time.Second)
		second := newLaterRig(t, first, killTaking(0))
		batch, picked := second.startBatch("web")
		synctest.Wait()
		second.letGo(errLetGo)
		awaitBatch(t, batch)
		require.ErrorIs(t, picked[0].State().Err, errLetGo)
		require.False(t, picked[0].HasEnded())
		require.Empty(t, second.granted)
		close(over)
	})
}

// Each of three drains joins the one before it.
func TestTakeOverOfATakeOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		asked := 0
		kill := func(context.Context, *v1.Pod, int64) (kills.Result, error) {
			mu.Lock()
			asked++
			mu.Unlock()
			<-time.After(9 * time.Second)
			return kills.Result{Outcome: "Graceful"}, nil
		}
		first, began := newRig(t, kill), time.Now()
		first.startBatch("web")
		<-time.After(time.Second)
		second := newLaterRig(t, first, kill)
		second.startBatch("web")
		<-time.After(time.Second)
		third := newLaterRig(t, second, kill)
		batch, picked := third.startBatch("web")
		require.Equal(t, 9*time.Second, awaitBatch(t, batch).Sub(began))
		require.Equal(t, "Graceful", picked[0].State().Result.Outcome)
		require.Equal(t, 1, asked)
	})
}
