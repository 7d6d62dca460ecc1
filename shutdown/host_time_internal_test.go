package shutdown

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kubegrace/kubegrace/shutdown/plan"
)

// The lock is let go half of the margin before the host's end, whatever the drain does.
func TestUnlockIsWithinTheMargin(t *testing.T) {
	host := hostTime{schedule: plan.Schedule{{Seconds: 20}}}
	received := time.Now()
	event := Event{Deadline: received.Add(30 * time.Second)}
	require.Equal(t, received.Add(30*time.Second-plan.DefaultReleaseMargin/2), host.unlockAt(event, received))
	host.options.ReleaseMargin = 3 * time.Second
	require.Equal(t, received.Add(28500*time.Millisecond), host.unlockAt(event, received))
}
