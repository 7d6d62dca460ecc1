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

// failFirst returns a killer whose first attempt fails and whose later attempts call then.
func failFirst(then func()) func(context.Context, *v1.Pod, int64) (kills.Result, error) {
	attempts := 0
	return func(context.Context, *v1.Pod, int64) (kills.Result, error) {
		if attempts++; attempts == 1 {
			return kills.Result{}, errBusy
		}
		then()
		return kills.Result{}, nil
	}
}

// If a killer ends its goroutine in a later attempt, that is the reported error of the pod, and
// not the error of the attempt before.
func TestKillerThatExitsInALaterAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, failFirst(runtime.Goexit))
		batch, picked := r.startBatch("web")
		awaitBatch(t, batch)
		require.Len(t, r.granted["web"], 2)
		require.EqualError(t, picked[0].State().Err, "Options.Killer for pod default/web ended its goroutine")
		require.False(t, picked[0].HasEnded())
		require.Equal(t, []string{"web"}, r.finishedPods())
	})
}

// The grace period of a pod begins with its signal, however long that is after the event of its
// drain. A pod without an end has none in later attempts either.
func TestGraceOfALaterAttempt(t *testing.T) {
	const endless = math.MaxInt64 / int64(time.Second)
	for seconds, want := range map[int64]int64{20: 19, math.MaxInt64: endless - 6} {
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

// A third drain shortens a kill that the first one repeats, even if the second drain only waits
// for the first.
func TestTakeOverOfATakeOverShortensWhatIsTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fails := func(context.Context, *v1.Pod, int64) (kills.Result, error) { return kills.Result{}, errBusy }
		first := newRig(t, fails)
		first.startBatch("web")
		<-time.After(1500 * time.Millisecond)
		second := newLaterRig(t, first, fails)
		second.startBatch("web")
		<-time.After(time.Second)
		third := newLaterRig(t, second, fails)
		third.Seconds = func(*v1.Pod) int64 { return 5 }
		third.startBatch("web")
		<-time.After(700 * time.Millisecond)
		for _, r := range []*rig{third, second, first} {
			r.letGo(errLetGo)
		}
		synctest.Wait()
		require.Equal(t, []int64{20, 19, 18, 4}, first.granted["web"])
		require.Empty(t, second.granted["web"])
		require.Equal(t, []int64{5}, third.granted["web"])
	})
}
