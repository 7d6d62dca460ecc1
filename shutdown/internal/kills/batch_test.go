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

// rig is a drain around a batch. Each test sets its killer.
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
			r.note(func() {
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
		Signalled: func(k *kills.Kill) { r.note(func() { r.signalled = append(r.signalled, k.Pod.Name) }) },
		Ended:     func(k *kills.Kill) { r.note(func() { r.ended = append(r.ended, k.Pod.Name) }) },
		Failed:    func(*kills.Kill, error) { r.note(func() { r.failed++ }) },
	}
	return r
}

// over returns the pods that have ended or were given up so far.
func (r *rig) over() (names []string) {
	r.note(func() { names = slices.Clone(r.ended) })
	slices.Sort(names)
	return names
}

func (r *rig) note(what func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	what()
}

// start kills pods of these names.
func (r *rig) start(names ...string) (*kills.Batch, []*kills.Kill) {
	pods := make([]*v1.Pod, len(names))
	for i, name := range names {
		pods[i] = pod(name)
	}
	picked := r.roster.Pick(pods, 0, all)
	return r.Start(picked), picked
}

func many(n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("pod-%03d", i)
	}
	return names
}

// takes is a killer whose pods take some time.
func takes(d time.Duration) func(context.Context, *v1.Pod, int64) (kills.Result, error) {
	return func(context.Context, *v1.Pod, int64) (kills.Result, error) {
		<-time.After(d)
		return kills.Result{Outcome: "Graceful"}, nil
	}
}

// done waits for a batch and says when that was.
func done(t *testing.T, batch *kills.Batch) time.Time {
	t.Helper()
	at, err := batch.Done.Await(t.Context(), time.Now().Add(time.Hour))
	require.NoError(t, err)
	return at
}

// All pods are signalled at the same time, however long each takes, and each is reported once.
func TestBatchSignalsAllAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, began := newRig(t, takes(5*time.Second)), time.Now()
		batch, picked := r.start(many(100)...)
		signalled, err := batch.Signalled.Await(t.Context(), began.Add(time.Hour))
		require.NoError(t, err)
		require.Equal(t, began, signalled)
		require.True(t, picked[99].Signalled())
		require.False(t, picked[99].HasEnded())
		require.Equal(t, 5*time.Second, done(t, batch).Sub(began))
		slices.Sort(r.signalled)
		require.Equal(t, many(100), r.signalled)
		require.Equal(t, many(100), r.over())
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
		r, began := newRig(t, takes(time.Second)), time.Now()
		_, picked := r.start("web")
		<-picked[0].Over()
		require.Equal(t, time.Second, time.Since(began))
		require.True(t, picked[0].HasEnded())
		<-picked[0].Over()
	})
}

// Before delays only its own pod. A drain that is halted meanwhile signals no further pod.
func TestBatchBeforeAndHalted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, takes(0))
		var halted bool
		halt := make(chan struct{})
		r.Halted = func() bool { r.mu.Lock(); defer r.mu.Unlock(); return halted }
		r.Before = func(k *kills.Kill) {
			if k.Pod.Name == "slow" {
				<-halt
			}
		}
		batch, picked := r.start("slow", "web")
		synctest.Wait()
		require.Equal(t, []string{"web"}, r.over())
		r.note(func() { halted = true })
		close(halt)
		done(t, batch)
		require.False(t, picked[0].Signalled())
		require.Equal(t, []string{"web"}, r.signalled)
		require.Empty(t, r.granted["slow"])

		batch, _ = r.start("late")
		done(t, batch)
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
		batch, picked := r.start("web")
		synctest.Wait()
		require.ErrorIs(t, picked[0].State().Err, errBusy, "of the last attempt")
		require.Empty(t, r.over())
		done(t, batch)
		require.Equal(t, []int64{2, 1, 0, 0, 0}, r.granted["web"])
		require.Equal(t, []time.Duration{0, time.Second, 2 * time.Second, 3 * time.Second, 4 * time.Second}, r.at["web"])
		require.Equal(t, 1, r.failed, "it is said once")
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
		batch, picked := r.start("web")
		done(t, batch)
		require.Len(t, r.granted["web"], 1)
		require.Zero(t, r.failed)
		require.ErrorIs(t, picked[0].State().Err, errFinal)
		require.Equal(t, "Stuck", picked[0].State().Result.Outcome)
		require.False(t, picked[0].HasEnded())
		require.Equal(t, []string{"web"}, r.over())
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
		batch, picked := r.start("waits", "fails")
		<-time.After(2500 * time.Millisecond)
		began := time.Now()
		r.letGo(errLetGo)
		require.Equal(t, began, done(t, batch))
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
		batch, picked := r.start(many(10)...)
		synctest.Wait()
		require.True(t, picked[9].Signalled(), "nobody waits for another")
		require.EqualError(t, picked[3].State().Err, "Options.Killer for pod default/pod-003 panicked: once")
		require.Equal(t, 6*time.Second, done(t, batch).Sub(began), "a second later, and 5 s")
		require.Equal(t, many(10), r.over())
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
		batch, _ := r.start("web", "quick", "etcd")
		synctest.Wait()
		enough := make(chan struct{})
		close(enough)
		require.Equal(t, []string{"Options.Killer for pod default/etcd", "Options.Killer for pod default/web"}, r.calls.Wait(enough))
		close(over)
		done(t, batch)
	})
}
