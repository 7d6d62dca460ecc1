package host

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kubegrace/kubegrace/shutdown/source"
)

// recordingListener records which methods are called.
type recordingListener struct {
	Listener

	heard []string
}

// HostEvent records that it was called.
func (e *recordingListener) HostEvent(source.Event) { e.heard = append(e.heard, "event") }

// HostPending records that it was called.
func (e *recordingListener) HostPending(*source.Event, bool, time.Time) {
	e.heard = append(e.heard, "pending")
}

// An event and the result of Pending are there at the same time. Only the event is passed on, because it is newer. If
// the session is over, neither of them is.
func TestASimultaneousEventWinsOverPending(t *testing.T) {
	for range 100 { // the choice is random
		for _, over := range []bool{false, true} {
			e := &recordingListener{}
			s := &session{Host: &Host{Options: Options{Listener: e}, contact: &contact{}}, answers: make(chan pendingAnswer, 1)}
			events, closed := make(chan source.Event, 1), make(chan struct{})
			events <- source.Event{}
			ctx, cancel := context.WithCancel(t.Context())
			s.answers <- func(isOutdated bool) {
				require.True(t, isOutdated)
				close(closed)
			}
			if over {
				cancel()
			}
			s.listen(ctx, events, closed)
			cancel()
			require.Equal(t, over, len(e.heard) == 0)
		}
	}
}
