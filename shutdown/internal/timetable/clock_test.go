package timetable_test

import (
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/shutdown/internal/timetable"
	"github.com/kubegrace/kubegrace/shutdown/plan"
)

// stepped returns the time that [time.Now] would return instead of t if the wall clock had been stepped. It
// changes the representation of t, because a test cannot step the host's clock, and times in a bubble
// have no monotonic reading.
func stepped(t time.Time, by time.Duration) time.Time {
	*(*uint64)(unsafe.Pointer(&t)) += uint64(by/time.Second) << 30 //nolint:gosec // the wall clock's seconds begin at bit 30 if there is a monotonic reading
	return t
}

// The wall clock is set an hour back or forward. The windows and grace periods at 0 s, 3 s, 17 s and 40 s after the event are
// the same as without that step.
func TestWallClockStepsDoNotMoveWindows(t *testing.T) {
	schedule := plan.Schedule{{Priority: 0, Seconds: 20}, {Priority: 1000, Seconds: 10}}
	received := time.Now()
	table := timetable.New(timetable.Request{Schedule: schedule, Received: received, HostEnd: received.Add(25 * time.Second)})
	pod := &v1.Pod{}
	for _, step := range []time.Duration{-time.Hour, time.Hour} {
		require.Zero(t, stepped(received, step).Sub(received), "a step does not move the monotonic clock")
		require.Equal(t, step, stepped(received, step).Round(0).Sub(received.Round(0)), "a step moves the wall clock")
		for _, after := range []time.Duration{0, 3 * time.Second, 17 * time.Second, 40 * time.Second} {
			now := received.Add(after)
			for i := range schedule {
				want, got := table.Window(i, now), table.Window(i, stepped(now, step))
				require.Zero(t, got.End.Sub(want.End))
				require.Zero(t, got.KillsEnd.Sub(want.KillsEnd))
				require.Equal(t, want.Seconds(pod, now), got.Seconds(pod, stepped(now, step)))
			}
		}
	}
}
