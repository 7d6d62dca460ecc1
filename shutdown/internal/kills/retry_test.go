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

// busyOnce is a killer whose first attempt fails; what the later ones do is said.
func busyOnce(then func()) func(context.Context, *v1.Pod, int64) (kills.Result, error) {
	attempts := 0
	return func(context.Context, *v1.Pod, int64) (kills.Result, error) {
		if attempts++; attempts == 1 {
			return kills.Result{}, errBusy
		}
		then()
		return kills.Result{}, nil
	}
}

// A killer that ends its goroutine in a later attempt is what the pod is reported with, not
// the error of the attempt before.
func TestKillerThatExitsInALaterAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, busyOnce(runtime.Goexit))
		batch, picked := r.start("web")
		done(t, batch)
		require.Len(t, r.granted["web"], 2)
		require.EqualError(t, picked[0].State().Err, "Options.Killer for pod default/web ended its goroutine")
		require.False(t, picked[0].HasEnded())
		require.Equal(t, []string{"web"}, r.over())
	})
}

// The grace of a pod counts from when it is signalled, however long that is after the event
// of its drain. One that has no end has none in later attempts either.
func TestGraceOfALaterAttempt(t *testing.T) {
	const endless = math.MaxInt64 / int64(time.Second)
	for seconds, want := range map[int64]int64{20: 19, math.MaxInt64: endless - 6} {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, busyOnce(func() {}))
			r.Seconds = func(*v1.Pod) int64 { return seconds }
			<-time.After(5 * time.Second)
			batch, _ := r.start("web")
			done(t, batch)
			require.Equal(t, []int64{seconds, want}, r.granted["web"])
		})
	}
}

// A third drain shortens what the first one tries again, also where the second one only
// waits for the first.
func TestTakeOverOfATakeOverShortensWhatIsTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fails := func(context.Context, *v1.Pod, int64) (kills.Result, error) { return kills.Result{}, errBusy }
		first := newRig(t, fails)
		first.start("web")
		<-time.After(1500 * time.Millisecond)
		second := again(t, first, fails)
		second.start("web")
		<-time.After(time.Second)
		third := again(t, second, fails)
		third.Seconds = func(*v1.Pod) int64 { return 5 }
		third.start("web")
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
