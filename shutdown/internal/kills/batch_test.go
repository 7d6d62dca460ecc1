package kills_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubegrace/kubegrace/shutdown/internal/call"
	"github.com/kubegrace/kubegrace/shutdown/internal/kills"
)

var (
	errBusy  = errors.New("busy")
	errFinal = errors.New("no such pod")
	errLetGo = errors.New("the host goes on")
)

// rig is a drain with a batch of kills. Each test sets its killer.
type rig struct {
	*kills.Killing

	calls  call.Group
	letGo  context.CancelCauseFunc
	roster *kills.Roster
	before *kills.Roster // of an earlier drain; nil: there was none

	mu        sync.Mutex
	granted   map[string][]int64 // of each call of the killer
	at        map[string][]time.Duration
	signalled []string
	ended     []string
	failed    int
}

// newRig returns a drain that gives each pod 20 s.
func newRig(t *testing.T, kill func(ctx context.Context, pod *v1.Pod, seconds int64) (kills.Result, error)) *rig {
	t.Helper()
	began := time.Now()
	r := &rig{roster: kills.NewRoster(began), granted: map[string][]int64{}, at: map[string][]time.Duration{}}
	ctx, letGo := context.WithCancelCause(t.Context())
	r.letGo = letGo
	t.Cleanup(func() { letGo(nil) })
	r.Killing = &kills.Killing{
		Context: ctx,
		Calls:   &r.calls,
		Halted:  func() bool { return false },
		Seconds: func(*v1.Pod) int64 { return 20 },
		Kill: func(ctx context.Context, pod *v1.Pod, seconds int64) (kills.Result, error) {
			r.locked(func() {
				r.granted[pod.Name] = append(r.granted[pod.Name], seconds)
				r.at[pod.Name] = append(r.at[pod.Name], time.Since(began))
			})
			return kill(ctx, pod, seconds)
		},
		Final: func(err error) bool { return errors.Is(err, errFinal) },
		Earlier: func(key types.UID) *kills.Kill {
			if r.before == nil {
				return nil
			}
			return r.before.Find(key)
		},
		Signalled: func(k *kills.Kill) { r.locked(func() { r.signalled = append(r.signalled, k.Pod.Name) }) },
		Ended:     func(k *kills.Kill) { r.locked(func() { r.ended = append(r.ended, k.Pod.Name) }) },
		Failed:    func(*kills.Kill, error) { r.locked(func() { r.failed++ }) },
	}
	return r
}

// finishedPods returns the pods that have ended or were given up so far.
func (r *rig) finishedPods() (names []string) {
	r.locked(func() { names = slices.Clone(r.ended) })
	slices.Sort(names)
	return names
}

func (r *rig) locked(what func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	what()
}

// startBatch kills pods of these names.
func (r *rig) startBatch(names ...string) (*kills.Batch, []*kills.Kill) {
	pods := make([]*v1.Pod, len(names))
	for i, name := range names {
		pods[i] = pod(name)
	}
	picked := r.roster.Pick(pods, 0, priorityOfAll)
	return r.Start(picked), picked
}

func podNames(n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("pod-%03d", i)
	}
	return names
}

// killTaking is a killer whose pods take some time.
func killTaking(d time.Duration) func(context.Context, *v1.Pod, int64) (kills.Result, error) {
	return func(context.Context, *v1.Pod, int64) (kills.Result, error) {
		<-time.After(d)
		return kills.Result{Outcome: "Graceful"}, nil
	}
}

// awaitBatch waits for the end of a batch and returns when that was.
func awaitBatch(t *testing.T, batch *kills.Batch) time.Time {
	t.Helper()
	at, err := batch.Done.Await(t.Context(), time.Now().Add(time.Hour))
	require.NoError(t, err)
	return at
}

// All pods are signalled at the same time, however long each takes, and each is reported once.
func TestBatchSignalsAllAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, began := newRig(t, killTaking(5*time.Second)), time.Now()
		batch, picked := r.startBatch(podNames(100)...)
		signalled, err := batch.Signalled.Await(t.Context(), began.Add(time.Hour))
		require.NoError(t, err)
		require.Equal(t, began, signalled)
		require.True(t, picked[99].Signalled())
		require.False(t, picked[99].HasEnded())
		require.Equal(t, 5*time.Second, awaitBatch(t, batch).Sub(began))
		slices.Sort(r.signalled)
		require.Equal(t, podNames(100), r.signalled)
		require.Equal(t, podNames(100), r.finishedPods())
		state := picked[7].State()
		require.Equal(t, kills.State{
			Seconds: 20, Signalled: true, Started: state.Started, Ended: state.Ended, Result: kills.Result{Outcome: "Graceful"},
		}, state)
		require.True(t, state.Started.Equal(began))
		require.True(t, state.Ended.Equal(began.Add(5*time.Second)))
		<-picked[7].Over()
		require.Empty(t, r.calls.Wait(nil))
	})
}

// Over is closed for callers before and after the end of a kill.
func TestOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, began := newRig(t, killTaking(time.Second)), time.Now()
		_, picked := r.startBatch("web")
		<-picked[0].Over()
		require.Equal(t, time.Second, time.Since(began))
		require.True(t, picked[0].HasEnded())
		<-picked[0].Over()
	})
}

// Before delays only its own pod. A drain that is halted meanwhile signals no further pod.
func TestBatchBeforeAndHalted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, killTaking(0))
		var halted bool
		halt := make(chan struct{})
		r.Halted = func() bool { r.mu.Lock(); defer r.mu.Unlock(); return halted }
		r.Before = func(k *kills.Kill) {
			if k.Pod.Name == "slow" {
				<-halt
			}
		}
		batch, picked := r.startBatch("slow", "web")
		synctest.Wait()
		require.Equal(t, []string{"web"}, r.finishedPods())
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
	})
}

// A failed attempt is repeated a second later with the rest of the grace period, with 0 once
// nothing is left. The last result counts.
func TestKillIsTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		attempts := 0
		r := newRig(t, func(context.Context, *v1.Pod, int64) (kills.Result, error) {
			if attempts++; attempts < 5 {
				return kills.Result{}, errBusy
			}
			return kills.Result{Outcome: "Graceful"}, nil
		})
		r.Seconds = func(*v1.Pod) int64 { return 2 }
		batch, picked := r.startBatch("web")
		synctest.Wait()
		require.ErrorIs(t, picked[0].State().Err, errBusy, "of the last attempt")
		require.Empty(t, r.finishedPods())
		awaitBatch(t, batch)
		require.Equal(t, []int64{2, 1, 0, 0, 0}, r.granted["web"])
		require.Equal(t, []time.Duration{0, time.Second, 2 * time.Second, 3 * time.Second, 4 * time.Second}, r.at["web"])
		require.Equal(t, 1, r.failed, "one report of the failure")
		require.True(t, picked[0].HasEnded())
		require.NoError(t, picked[0].State().Err)
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
		require.Equal(t, []string{"web"}, r.finishedPods())
	})
}

// After the release of the host nothing is tried again, neither a kill that fails then nor one
// that waits for its next attempt.
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
		for _, k := range picked {
			require.ErrorIs(t, k.State().Err, errBusy)
			require.False(t, k.HasEnded())
		}
	})
}

// A killer that panics has failed. One that ends its goroutine affects no other pod, and its own
// pod is given up.
func TestKillerThatPanicsOrExits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		panicked := false
		r := newRig(t, func(_ context.Context, pod *v1.Pod, _ int64) (kills.Result, error) {
			switch {
			case pod.Name == "pod-000" || pod.Name == "pod-005":
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
		require.Equal(t, 6*time.Second, awaitBatch(t, batch).Sub(began), "a second later, and 5 s")
		require.Equal(t, podNames(10), r.finishedPods())
		for i, k := range picked {
			require.Equal(t, i != 0 && i != 5, k.HasEnded(), i)
		}
		require.EqualError(t, picked[5].State().Err, "Options.Killer for pod default/pod-005 ended its goroutine")
		require.Equal(t, []int64{20, 19}, r.granted["pod-003"])
		require.Empty(t, r.calls.Wait(nil))
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
