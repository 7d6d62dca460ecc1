package shutdown

import (
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"
)

// A deadline that is a date, without a monotonic reading, is taken by the wall clock of the moment
// at which the event is received. An earlier or a later step of the wall clock does not move it. A
// suspend is such a step, because the monotonic clock stands still.
func TestDeadlineThatIsADate(t *testing.T) {
	for _, step := range []time.Duration{-time.Hour, 0, time.Hour} {
		now := time.Now()
		received := now                                                         // by a wall clock that was stepped meanwhile; see TestWallClockIsStepped
		*(*uint64)(unsafe.Pointer(&received)) += uint64(step/time.Second) << 30 //nolint:gosec // the wall clock's seconds begin at bit 30 if there is a monotonic reading
		event := Event{Deadline: received.Round(0).Add(30 * time.Second)}
		require.Equal(t, 30*time.Second+step, event.Deadline.Sub(now.Round(0)), "the date")
		require.Equal(t, 30*time.Second, (&effects{}).announcementOf(event, false, received).deadline.Sub(now))
	}
	require.Zero(t, (&effects{}).announcementOf(Event{}, false, time.Now()).deadline)
}
