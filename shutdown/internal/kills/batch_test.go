//go:build go1.25

package kills_test

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/shutdown/internal/kills"
)

// All pods are signalled at the same time, however long each takes, and each is reported once.
func TestBatchSignalsAllAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, began := newRig(t, takes(5*time.Second)), time.Now()
		batch, picked := r.startBatch(podNames(100)...)
		signalled, err := batch.Signalled.Await(t.Context(), began.Add(time.Hour))
		require.NoError(t, err)
		require.Equal(t, began, signalled)
		require.True(t, picked[99].UnderWay())
		require.Equal(t, 5*time.Second, awaitBatch(t, batch).Sub(began))
		require.False(t, picked[99].UnderWay())
		slices.Sort(r.signalled)
		require.Equal(t, podNames(100), r.signalled)
		require.Equal(t, podNames(100), r.endedPods())
		require.Empty(t, r.gaveUp)
		state := picked[7].State()
		require.Equal(t, kills.State{
			Seconds: 20, Signalled: true, Started: state.Started, Ended: state.Ended, Result: kills.Result{Outcome: "Graceful"},
		}, state)
		require.True(t, state.Started.Equal(began))
		require.True(t, state.Ended.Equal(began.Add(5*time.Second)))
		require.Empty(t, r.calls.Wait(nil))
	})
}

// Before delays only its own pod. A drain that is halted meanwhile signals no further pod.
func TestBatchBeforeAndHalted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, takes(0))
		var halted bool
		halt := make(chan struct{})
		r.Unless = func(signal func()) bool {
			r.mu.Lock()
			defer r.mu.Unlock()
			if !halted {
				signal()
			}
			return !halted
		}
		r.Before = func(k *kills.Kill) {
			if k.Pod().Name == "slow" {
				<-halt
			}
		}
		batch, picked := r.startBatch("slow", "web")
		synctest.Wait()
		require.Equal(t, []string{"web"}, r.endedPods())
		r.locked(func() { halted = true })
		close(halt)
		awaitBatch(t, batch)
		require.False(t, picked[0].Signalled())
		require.Equal(t, []string{"web"}, r.signalled)
		require.Empty(t, r.granted["slow"])

		batch, _ = r.startBatch("late")
		awaitBatch(t, batch)
		<-batch.Signalled.Done()
		require.Empty(t, r.granted["late"])
		require.Empty(t, r.gaveUp)
	})
}

// A failed call is repeated a second later with the rest of the grace period, with 0 once nothing
// is left. The last result counts.
func TestKillIsTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls := 0
		r := newRig(t, func(context.Context, *v1.Pod, int64) (kills.Result, error) {
			if calls++; calls < 5 {
				return kills.Result{Outcome: "Stuck"}, errBusy
			}
			return kills.Result{Outcome: "Graceful"}, nil
		})
		r.Seconds = func(*v1.Pod) int64 { return 2 }
		batch, picked := r.startBatch("web")
		synctest.Wait()
		require.ErrorIs(t, picked[0].State().Err, errBusy, "of the last call")
		require.Equal(t, "Stuck", picked[0].State().Result.Outcome)
		require.Empty(t, r.endedPods())
		awaitBatch(t, batch)
		require.Equal(t, []int64{2, 1, 0, 0, 0}, r.granted["web"])
		require.Equal(t, []time.Duration{0, time.Second, 2 * time.Second, 3 * time.Second, 4 * time.Second}, r.at["web"])
		require.Equal(t, 1, r.failed, "one report of the failure")
		require.True(t, picked[0].HasEnded())
		require.NoError(t, picked[0].State().Err)
		require.Equal(t, "Graceful", picked[0].State().Result.Outcome)
		require.EqualValues(t, 2, picked[0].State().Seconds, "what it was granted stays")
	})
}

// A final error is not tried again, and the pod is not known to have ended.
func TestKillThatFailsForGood(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, func(context.Context, *v1.Pod, int64) (kills.Result, error) {
			return kills.Result{Outcome: "Stuck"}, fmt.Errorf("gone: %w", errFinal)
		})
		batch, picked := r.startBatch("web")
		awaitBatch(t, batch)
		require.Len(t, r.granted["web"], 1)
		require.Zero(t, r.failed)
		require.ErrorIs(t, picked[0].State().Err, errFinal)
		require.Equal(t, "Stuck", picked[0].State().Result.Outcome)
		require.False(t, picked[0].HasEnded())
		require.Empty(t, r.ended)
		require.ErrorIs(t, r.gaveUp["web"], errFinal)
	})
}

// After the release of the host nothing is tried again, neither a kill that fails then nor one
// that waits for its next call.
func TestKillIsNotTriedAgainOnceTheHostIsLetGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, func(ctx context.Context, pod *v1.Pod, _ int64) (kills.Result, error) {
			if pod.Name == "waits" {
				<-ctx.Done()
			}
			return kills.Result{}, errBusy
		})
		batch, picked := r.startBatch("waits", "fails")
		<-time.After(2500 * time.Millisecond)
		began := time.Now()
		r.letGo(errLetGo)
		require.Equal(t, began, awaitBatch(t, batch))
		require.Len(t, r.granted["waits"], 1)
		require.Len(t, r.granted["fails"], 3)
		require.Equal(t, 1, r.failed, "of the one that was tried again")
		for _, k := range picked {
			require.ErrorIs(t, k.State().Err, errBusy)
			require.ErrorIs(t, r.gaveUp[k.Pod().Name], errBusy)
			require.False(t, k.HasEnded())
		}
	})
}

// A killer that panics, or ends its goroutine, has failed: it is called again. No other pod is affected.
func TestKillerThatPanicsOrExits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		exited, panicked := false, false
		r := newRig(t, func(_ context.Context, pod *v1.Pod, _ int64) (kills.Result, error) {
			switch {
			case pod.Name == "pod-005" && !exited:
				exited = true
				runtime.Goexit()
			case pod.Name == "pod-003" && !panicked:
				panicked = true
				panic("once")
			}
			<-time.After(5 * time.Second)
			return kills.Result{}, nil
		})
		began := time.Now()
		batch, picked := r.startBatch(podNames(10)...)
		synctest.Wait()
		require.True(t, picked[9].Signalled(), "nobody waits for another")
		require.EqualError(t, picked[3].State().Err, "Options.Killer for pod default/pod-003 panicked: once")
		require.EqualError(t, picked[5].State().Err, "Options.Killer for pod default/pod-005 ended its goroutine")
		require.Equal(t, 6*time.Second, awaitBatch(t, batch).Sub(began), "a second later, and 5 s")
		require.Len(t, r.endedPods(), 10)
		require.Empty(t, r.gaveUp)
		require.Equal(t, []int64{20, 19}, r.granted["pod-003"])
		require.Equal(t, []int64{20, 19}, r.granted["pod-005"])
		require.Empty(t, r.calls.Wait(nil))
	})
}

// An error whose methods panic is an error like others.
func TestKillersErrorThatPanics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, fails)
		r.Final = func(error) bool { panic("of the error") }
		batch, picked := r.startBatch("web")
		<-time.After(1500 * time.Millisecond)
		synctest.Wait()
		require.EqualError(t, picked[0].State().Err, "Options.Killer for pod default/web panicked: of the error")
		require.Len(t, r.granted["web"], 2)
		r.letGo(errLetGo)
		awaitBatch(t, batch)
	})
}

// Wait returns the names of the pods whose killer hangs.
func TestKillerThatHangsIsNamed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		over := make(chan struct{})
		r := newRig(t, func(_ context.Context, pod *v1.Pod, _ int64) (kills.Result, error) {
			if pod.Name != "quick" {
				<-over
			}
			return kills.Result{}, nil
		})
		batch, _ := r.startBatch("web", "quick", "etcd")
		synctest.Wait()
		enough := make(chan struct{})
		close(enough)
		require.Equal(t, []string{"Options.Killer for pod default/etcd", "Options.Killer for pod default/web"}, r.calls.Wait(enough))
		close(over)
		awaitBatch(t, batch)
	})
}
