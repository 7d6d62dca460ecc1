//go:build go1.25

package host_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kubegrace/kubegrace/shutdown/internal/host"
	"github.com/kubegrace/kubegrace/shutdown/source"
)

// A host that grants so little that pods lose time is asked until it grants enough, and no more
// then. The lock that is held stays. The listener is told once.
func TestCappedDelayIsAskedForAgain(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.script.limit = 10 * time.Second
		r.run()
		require.True(t, r.host.Status().Held())
		require.ErrorIs(t, r.host.Status().Err, errRefused, "the reason of the host")
		require.ErrorAs(t, r.host.Status().Err, new(*source.DelayCappedError))
		r.advance(10 * time.Minute)
		require.Equal(t, 10*time.Second, r.host.Status().Granted)
		require.Equal(t, []string{"0s pending false true", "0s capped", "0s tried"}, r.allHeard())
		asked := r.script.number("delay")
		require.InDelta(t, 30, asked, 10, "less and less often")

		r.script.set(func(s *script) { s.limit = 0 })
		r.advance(30 * time.Second)
		require.Equal(t, host.Status{State: host.StateHeld, Requested: wish, Granted: wish}, r.host.Status())
		require.Equal(t, asked+1, r.script.number("delay"))
		r.advance(10 * time.Minute)
		require.Equal(t, asked+1, r.script.number("delay"), "asked no more")
		require.Equal(t, 1, r.script.number("inhibit"))
	})
}

// A host that grants less than it was asked for is not asked again if no pod loses time.
func TestCappedDelayThatIsEnough(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.script.limit = 26 * time.Second
		r.run()
		r.advance(time.Hour)
		require.Equal(t, host.Status{State: host.StateHeld, Requested: wish, Granted: 26 * time.Second}, r.host.Status())
		require.Equal(t, 1, r.script.number("delay"))
		require.NotContains(t, r.allHeard(), "0s capped")
	})
}

// A host that comes to grant less than it was asked for and enough is asked no more.
func TestCappedDelayThatBecomesEnough(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.script.limit = 10 * time.Second
		r.run()
		r.script.set(func(s *script) { s.limit = 26 * time.Second })
		r.advance(time.Hour)
		require.NoError(t, r.host.Status().Err)
		require.Equal(t, 2, r.script.number("delay"))
	})
}

// The listener is told of each cap that is another, and of one that comes back.
func TestCapsThatAreNews(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		for _, limit := range []time.Duration{5 * time.Second, 5 * time.Second, 6 * time.Second, 0, 6 * time.Second} {
			r.script.set(func(s *script) { s.limit = limit })
			if r.stop == nil {
				r.run()
			} else {
				r.host.Suspend().End()
				r.advance(time.Minute)
			}
		}
		require.Equal(t, []string{"0s capped", "0s tried", "1m0s capped", "3m0s capped"}, r.allHeard()[1:])
	})
}

// A host that caps the delay again is asked again within a second, as it was after the first cap.
func TestCappedAgain(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.script.limit = 5 * time.Second
		r.run()
		r.advance(5 * time.Minute)
		r.script.set(func(s *script) { s.limit = 0 })
		r.advance(time.Minute)
		r.script.set(func(s *script) { s.limit = 5 * time.Second })
		r.script.announce()
		synctest.Wait()
		r.script.cancel()
		synctest.Wait()
		before := r.script.number("delay")
		r.advance(1100 * time.Millisecond)
		require.Greater(t, r.script.number("delay"), before)
	})
}

// A delay is not asked for during a shutdown.
func TestNoDelayIsAskedForInAShutdown(t *testing.T) {
	for _, f := range []func(*script){func(s *script) { s.limit = time.Second }, always("delay", fault{err: errRefused})} {
		inBubble(t, func(t *testing.T, r *rig) {
			f(r.script)
			r.run()
			r.script.announce()
			r.advance(2 * time.Second)
			asked := r.script.number("delay")
			r.advance(time.Hour)
			require.Equal(t, asked, r.script.number("delay"))
		})
	}
}

// A host whose answer about the delay does not come is held after five seconds all the same, and
// goes on being asked. The status says why.
func TestDelayThatNeverComes(t *testing.T) {
	for name, f := range map[string]fault{"slow": {takes: time.Hour, heeds: true}, "hangs": {hangs: true}} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, r *rig) {
				always("delay", f)(r.script)
				r.run()
				r.advance(6 * time.Second)
				for range 100 {
					require.Equal(t, host.StateHeld, r.host.Status().State)
					require.ErrorContains(t, r.host.Status().Err, "failed to request the shutdown delay")
					r.advance(700 * time.Millisecond)
				}
				_, known := r.host.Granted()
				require.False(t, known)
				require.Greater(t, r.script.number("delay"), 5)
			})
		})
	}
}
