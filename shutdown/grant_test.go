package shutdown

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A manager's reserves follow its hooks: the defaults for those that are set,
// nothing for those that are not.
func TestReservesForHooks(t *testing.T) {
	var zero PlanOptions
	require.Equal(t, PlanOptions{UnmountReserve: DefaultUnmountReserve, FlushReserve: DefaultFlushReserve}, zero.forHooks(true, true))
	require.Equal(t, PlanOptions{FlushReserve: DefaultFlushReserve}, zero.forHooks(false, true))
	require.Equal(t, zero, zero.forHooks(false, false))

	asked := PlanOptions{UnmountReserve: 7 * time.Second, FlushReserve: -1}
	require.Equal(t, PlanOptions{UnmountReserve: 7 * time.Second}, asked.forHooks(true, true))
	require.Equal(t, zero, asked.forHooks(false, true))
}

func TestReservesAreHalfAtMost(t *testing.T) {
	opts := PlanOptions{UnmountReserve: 30 * time.Second, FlushReserve: 10 * time.Second}
	for has, want := range map[time.Duration][2]time.Duration{
		-time.Second:     {0, 0},
		0:                {0, 0},
		20 * time.Second: {7500 * time.Millisecond, 2500 * time.Millisecond},
		80 * time.Second: {30 * time.Second, 10 * time.Second},
		time.Hour:        {30 * time.Second, 10 * time.Second},
	} {
		unmount, flush := opts.reserves(has)
		require.Equal(t, want, [2]time.Duration{unmount, flush}, has)
	}
}
