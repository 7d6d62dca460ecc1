//go:build go1.25

package lifecycle_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/lifecycle"
	"github.com/kubegrace/kubegrace/lifecycle/lifecycletest"
)

// unit is a PodStopper whose first calls fail.
type unit struct {
	*lifeBed

	failing int
	at      []time.Duration
	seconds []int64
}

func (u *unit) StopPod(ctx context.Context, _ *v1.Pod, seconds int64) error {
	u.at, u.seconds = append(u.at, time.Since(u.began)), append(u.seconds, seconds)
	if len(u.at) <= u.failing {
		return lifecycletest.ErrScripted
	}
	u.rt.Exit("p")
	return u.rt.StopContainer(ctx, "a", seconds)
}

// A pod that stops as a unit has all its hooks side by side, uncut, and then one stop.
func TestAUnitIsStoppedOnce(t *testing.T) {
	for name, test := range map[string]struct {
		hooks   time.Duration
		failing int
		at      []time.Duration
		seconds []int64
		outcome lifecycle.Outcome
	}{
		"after its hooks":       {10 * time.Second, 0, []time.Duration{10 * time.Second}, []int64{50}, lifecycle.Graceful},
		"at its deadline":       {100 * time.Second, 0, []time.Duration{60 * time.Second}, []int64{2}, lifecycle.GraceExceeded},
		"again after a failure": {10 * time.Second, 1, []time.Duration{10 * time.Second, 10100 * time.Millisecond}, []int64{50, 50}, lifecycle.Graceful},
	} {
		t.Run(name, func(t *testing.T) {
			u := &unit{failing: test.failing}
			inLife(t, func(b *lifeBed) {
				b.takes = test.hooks
				b.runs("app", "a", lifecycletest.Script{ExitAfterTerm: 5 * time.Second})
				b.runs("proxy", "p", lifecycletest.Script{})
				_, err := b.life.KillContainer(b.ctx, lifecycle.Container{Name: "app", ID: "a"}, lifecycle.ContainerRequest{})
				require.ErrorIs(b, err, lifecycle.ErrUnit)
				outcome, err := b.kill(lifecycle.Request{})
				require.NoError(b, err)
				require.Equal(b, test.outcome, outcome)
				require.Equal(b, test.at, u.at)
				require.Equal(b, test.seconds, u.seconds)
				b.requireHooks("a", "p")
			}, func(b *lifeBed, o *lifecycle.TerminatorOptions) { u.lifeBed, o.Pods = b, u })
		})
	}
}

// A container that joins while StopPod is under way has a StopPod of its own.
func TestAContainerThatJoinsAUnitThatIsStopped(t *testing.T) {
	u := &unit{}
	inLife(t, func(b *lifeBed) {
		b.runs("app", "a", lifecycletest.Script{ExitAfterTerm: 5 * time.Second})
		termination := b.life.Terminate(b.ctx, lifecycle.Request{})
		<-time.After(time.Second)
		b.life.Terminate(b.ctx, lifecycle.Request{Containers: only("app", "late"), Complete: true})
		_, err := termination.Wait(b.ctx)
		require.NoError(b, err)
		require.Equal(b, []int64{60, 55}, u.seconds)
	}, func(b *lifeBed, o *lifecycle.TerminatorOptions) { u.lifeBed, o.Pods = b, u })
}

// After a call of OneAttempt that has failed, all containers of a unit have a new grace period.
func TestAUnitOfOneAttemptBeginsAnew(t *testing.T) {
	u := &unit{failing: 1}
	inLife(t, func(b *lifeBed) {
		b.runs("app", "a", lifecycletest.Script{})
		b.runs("proxy", "p", lifecycletest.Script{})
		_, err := b.kill(lifecycle.Request{OneAttempt: true})
		require.ErrorIs(b, err, lifecycletest.ErrScripted)
		<-time.After(100 * time.Second)
		_, err = b.kill(lifecycle.Request{OneAttempt: true})
		require.NoError(b, err)
		require.Equal(b, []int64{60, 60}, u.seconds)
	}, func(b *lifeBed, o *lifecycle.TerminatorOptions) { u.lifeBed, o.Pods = b, u })
}

// A container that has no hook waits for the hooks of the others, and says so.
func TestPhasesOfAUnit(t *testing.T) {
	u := &unit{}
	inLife(t, func(b *lifeBed) {
		b.runs("app", "a", lifecycletest.Script{ExitAfterTerm: 5 * time.Second})
		b.runs("proxy", "p", lifecycletest.Script{})
		b.takes = 5 * time.Second
		termination := b.life.Terminate(b.ctx, lifecycle.Request{})
		for _, want := range [][]lifecycle.Phase{
			{lifecycle.PhaseHook, lifecycle.PhaseWaiting}, {lifecycle.PhaseStopping, lifecycle.PhaseStopping}, {lifecycle.PhaseEnded, lifecycle.PhaseEnded},
		} {
			<-time.After(4 * time.Second)
			var phases []lifecycle.Phase
			for _, container := range termination.Result().Containers {
				phases = append(phases, container.Phase)
			}
			require.Equal(b, want, phases)
		}
	}, func(b *lifeBed, o *lifecycle.TerminatorOptions) {
		u.lifeBed, o.Pods = b, u
		b.spec.Spec.InitContainers[0].Lifecycle = nil
	})
}
