package shutdown

import (
	"fmt"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/shutdown/plan"
)

// stepped returns what [time.Now] would return instead of t if the wall clock had been stepped
// before: a time with another wall clock reading and the same monotonic one. It changes the
// representation of t, because a test cannot step the clock of the host, and the times in a
// bubble have no monotonic reading.
func stepped(t time.Time, by time.Duration) time.Time {
	*(*uint64)(unsafe.Pointer(&t)) += uint64(by/time.Second) << 30 //nolint:gosec // the wall clock's seconds begin at bit 30 if there is a monotonic reading
	return t
}

// steps returns the steps of the wall clock that the tests try.
func steps() []time.Duration { return []time.Duration{-time.Hour, time.Hour} }

func TestSteppedClocks(t *testing.T) {
	now := time.Now()
	for _, step := range steps() {
		require.Zero(t, stepped(now, step).Sub(now), "by the monotonic clock")
		require.Equal(t, step, stepped(now, step).Round(0).Sub(now.Round(0)), "by the wall clock")
	}
}

// A step of the wall clock changes neither the windows of a drain nor the grace periods of its
// pods.
func TestWallClockIsSteppedDuringADrain(t *testing.T) {
	schedule := plan.Schedule{{Priority: 0, Seconds: 20}, {Priority: 1000, Seconds: 10}}
	received := time.Now()
	table := plan.NewTimetable(schedule, plan.Options{}, plan.Announcement{Received: received, HostEnd: received.Add(25 * time.Second)})
	pod := &v1.Pod{}
	for _, after := range []time.Duration{0, 3 * time.Second, 17 * time.Second, 40 * time.Second} {
		now := received.Add(after)
		for i := range schedule {
			want := table.Window(i, now, 0)
			for _, step := range steps() {
				got := table.Window(i, stepped(now, step), 0)
				require.Zero(t, got.End.Sub(want.End))
				require.Equal(t, want.Seconds(pod, now), got.Seconds(pod, stepped(now, step)))
				require.Equal(t, want.Grace(now), got.Grace(stepped(now, step)))
				require.Zero(t, got.KillsEnd(stepped(now, step)).Sub(want.KillsEnd(now)))
			}
		}
	}
}

// A step of the wall clock, while an agent runs or before it is started, does not change what a
// stored shutdown means. Its end stays where it is on the clock of the boot, it is not taken
// for a shutdown of the future, and it is over when its time is over.
func TestWallClockIsSteppedBesideARecord(t *testing.T) {
	for _, step := range steps() {
		t.Run(fmt.Sprint(step), func(t *testing.T) {
			f := &stateFolder{
				boot:            func() (string, time.Duration, error) { return "one", time.Hour, nil },
				longestShutdown: func(plan.Schedule) time.Duration { return 30 * time.Second },
			}
			f.openLedger(t.TempDir())
			f.ledger.openedAt = stepped(f.ledger.openedAt, step)
			now := time.Now()
			require.InDelta(t, time.Hour+10*time.Second, f.ledger.sinceBoot(now.Add(10*time.Second)), float64(time.Second))
			require.InDelta(t, 10*time.Second, time.Until(f.ledger.timeOf(time.Hour+10*time.Second)), float64(time.Second))

			record := func(end time.Duration) storedState {
				p := storedProgress()
				p.BootID, p.HostEnd, p.Report.Started = "one", time.Hour+end, now.Add(step)
				return storedState{progress: &p}
			}
			for end, goesOn := range map[time.Duration]bool{20 * time.Second: true, -time.Second: false} {
				r := record(end)
				require.NoError(t, f.checkNotFuture(r.progress), "%v", end)
				require.Equal(t, goesOn, f.unfinished(r) != nil, "%v", end)
			}
			require.Error(t, f.checkNotFuture(record(2*time.Minute).progress), "it is of the future by the clock of the boot")
		})
	}
}

// A deadline without a monotonic reading is taken by the wall clock of the moment at which the
// event is received. A later step of the wall clock does not move it.
func TestDeadlineThatComesAsADate(t *testing.T) {
	for _, step := range steps() {
		l := newLedger("", false, nil, nil) // before the step
		received := stepped(l.openedAt, step)
		event := withSteadyDeadline(Event{Deadline: received.Round(0).Add(30 * time.Second)}, received)
		require.Equal(t, 30*time.Second, l.sinceBoot(event.Deadline), "what is stored")
		require.Equal(t, 30*time.Second, event.Deadline.Sub(l.openedAt))

		d := &drain{m: &Manager{}}
		release := l.openedAt.Add(35 * time.Second)
		d.endsAt.Store(&release)
		require.True(t, d.outlasts(event, received), "the drain ends after the deadline")
		release = l.openedAt.Add(25 * time.Second)
		require.False(t, d.outlasts(event, received))
	}
	require.Zero(t, withSteadyDeadline(Event{}, time.Now()))
}
