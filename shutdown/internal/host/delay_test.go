//go:build go1.25

package host_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kubegrace/kubegrace/shutdown/internal/host"
	"github.com/kubegrace/kubegrace/shutdown/source"
)

// recordDelayRequests returns a list that gets the time of each RequestDelay, since the start of Run.
func (r *rig) recordDelayRequests() *[]time.Duration {
	var at []time.Duration
	r.script.set(func(s *script) {
		s.faults = func(method string, _ int) fault {
			if method == "delay" {
				at = append(at, time.Since(r.began))
			}
			return fault{}
		}
	})
	return &at
}

// The Host requests the delay every 10 s. The limit is lowered at 15 s, and the request at 20 s notices it. After a grant that
// is too small the Host requests again after 1, 2, 4 and 8 s, and then every 10 s. The limit is removed at 60 s, and the request at
// 65 s notices it.
func TestChangesOfTheLimitAreNoticed(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		requestedAt := r.recordDelayRequests()
		r.run()
		r.advance(15 * time.Second)
		r.script.set(func(s *script) { s.limit, s.limitFile = 10*time.Second, "/etc/zzz.conf" })
		r.advance(5*time.Second - time.Nanosecond)
		require.Equal(t, requestedDelay, r.host.Status().Granted, "not yet noticed")

		r.advance(time.Nanosecond)
		require.Equal(t, 10*time.Second, r.host.Status().Granted)
		require.ErrorAs(t, r.host.Status().Err, new(*source.DelayCappedError))
		require.ErrorIs(t, r.host.Status().Err, errRefused, "the host's error")
		require.Equal(t, "InhibitDelayMaxSec in /etc/zzz.conf", r.host.LimitSetBy())

		r.advance(40 * time.Second)
		require.Equal(t, []string{"0s HostPending(none)", "0s HostTried", "20s HostCapped"}, r.listenerCalls(), "HostCapped was called once")
		require.Equal(t, []int{0, 10, 20, 21, 23, 27, 35, 45, 55}, seconds(*requestedAt))

		r.script.set(func(s *script) { s.limit = noLimit })
		r.advance(5 * time.Second)
		require.Equal(t, host.Status{State: host.StateHeld, Requested: requestedDelay, Granted: requestedDelay, Answered: true}, r.host.Status())
		require.Empty(t, r.host.LimitSetBy())
		require.Equal(t, 1, r.script.callCount("inhibit"), "the lock is kept")
	})
}

// The limit is low, then removed, and then low again. Each time the requests for the delay that follow the low grant come after 1, 2, 4
// and 8 s, and then every 10 s.
func TestALowGrantIsRequestedAgainSoon(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		requestedAt := r.recordDelayRequests()
		r.script.limit = 10 * time.Second
		r.run()
		r.advance(30 * time.Second)
		require.Equal(t, []int{0, 1, 3, 7, 15, 25}, seconds(*requestedAt))

		r.script.set(func(s *script) { s.limit = noLimit })
		r.advance(30 * time.Second)
		require.Equal(t, []int{35, 45, 55}, seconds((*requestedAt)[6:]))

		r.script.set(func(s *script) { s.limit = 10 * time.Second })
		r.advance(9 * time.Second)
		require.Equal(t, []int{65, 66, 68}, seconds((*requestedAt)[9:]))
	})
}

// seconds returns durations in whole seconds.
func seconds(all []time.Duration) (s []int) {
	for _, d := range all {
		s = append(s, int(d/time.Second))
	}
	return s
}

// The source grants 10 s of the requested 30 s, without an error that says why. The status has a DelayCappedError all the same, and the
// listener is told. When the limit rises to 26 s, the status has no error any more: 25 s are enough for the pods of the rig.
func TestALowGrantWithoutAnErrorIsACap(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.script.capWithoutError, r.script.limit = true, 10*time.Second
		r.run()
		var capped *source.DelayCappedError
		require.ErrorAs(t, r.host.Status().Err, &capped)
		require.Equal(t, source.DelayCappedError{Requested: requestedDelay, Granted: 10 * time.Second}, *capped)
		require.Equal(t, 10*time.Second, r.host.Status().Granted)
		require.Contains(t, r.listenerCalls(), "0s HostCapped")
		require.Empty(t, r.log.lines(), "it is the listener that logs a cap")
		r.script.set(func(s *script) { s.limit = 26 * time.Second })
		r.advance(time.Second)
		require.NoError(t, r.host.Status().Err, "the limit is enough for the pods")
	})
}

// The limit is 5 s at first, and is set every minute: again to 5 s, to 6 s, to none, and again to 6 s. HostCapped is called at
// the start, and each time that the limit changes to one that is too low: three times.
func TestEachNewCapIsReported(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.script.limit = 5 * time.Second
		r.run()
		require.Contains(t, r.listenerCalls(), "0s HostCapped")
		for _, step := range []struct {
			limit time.Duration
			calls int // of HostCapped so far
		}{{5 * time.Second, 1}, {6 * time.Second, 2}, {noLimit, 2}, {6 * time.Second, 3}} {
			r.script.set(func(s *script) { s.limit = step.limit })
			r.advance(time.Minute)
			calls := strings.Count(strings.Join(r.listenerCalls(), " "), "HostCapped")
			require.Equal(t, step.calls, calls, "limit %v", step.limit)
		}
	})
}

// The limit changes from none to 26 s, to 10 s, and to none again. A change is logged once, with the delay that the host granted before
// and grants now. A change that costs pods time (to less than 25 s) is not logged: it is reported to the listener, which logs it.
func TestChangesOfTheLimitAreLogged(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.run()
		for _, limit := range []time.Duration{26 * time.Second, 10 * time.Second, noLimit} {
			r.script.set(func(s *script) { s.limit = limit })
			r.advance(time.Minute)
		}
		require.Equal(t, []line{
			// No line for the change from 26 s to 10 s, which costs pods time.
			{values: map[string]any{"requested": requestedDelay, "before": requestedDelay, "granted": 26 * time.Second, "setBy": "InhibitDelayMaxSec"}},
			{values: map[string]any{"requested": requestedDelay, "before": 10 * time.Second, "granted": requestedDelay, "setBy": ""}},
		}, r.log.lines())
	})
}

// RequestDelay fails for three minutes, and the error changes every minute. The status has the current error, and the log gets
// a line for each change. The lock and the last known limit are kept. After a success the same error is logged again.
func TestAFailedReadKeepsTheLockAndTheLimit(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.script.limit = 26 * time.Second
		r.run()
		for i, err := range []error{errRefused, errInProgress, errRefused} {
			r.script.set(everyCallOf("delay", fault{err: err}))
			r.advance(time.Minute)
			require.ErrorIs(t, r.host.Status().Err, err)
			require.Equal(t, 26*time.Second, r.host.Status().Granted)
			require.Len(t, r.log.lines(), i+1, "a line for each change")
		}
		r.script.set(func(s *script) { s.faults = nil })
		r.advance(time.Second)
		require.NoError(t, r.host.Status().Err, "it is read again after a second")
		r.script.set(everyCallOf("delay", fault{err: errRefused}))
		r.advance(time.Minute)
		require.Len(t, r.log.lines(), 4, "logged again, because a request succeeded in between")
		require.Equal(t, 1, r.script.callCount("inhibit"), "the first lock is kept")
		r.requireLockHeld()
	})
}

// The session calls RequestDelay every 10 s, and each call but the first hangs. Events still arrive at once, and the lock stays held.
// The call at 10 s is abandoned at 16 s: it has a timeout of 5 s, and 1 s more to return. From then on the status has an error. One
// line is logged, although later calls hang too. When the hang is over, the next call reads the new limit.
func TestAHangingRequestDelayDelaysNoEvent(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.run()
		r.script.set(everyCallOf("delay", fault{hangs: true}))
		r.advance(12 * time.Second)
		r.script.announce()
		r.script.cancel()
		synctest.Wait()
		calls := r.listenerCalls()[2:] // without those of the start: HostPending and HostTried
		require.Equal(t, []string{"12s HostEvent(shutdown)", "12s HostEvent(cancelled)"}, calls)
		r.advance(4 * time.Second)
		require.Error(t, r.host.Status().Err, "16 s have passed")
		for range 60 {
			r.requireLockHeld()
			r.advance(time.Second)
		}
		require.Len(t, r.log.lines(), 1)

		r.script.set(func(s *script) { s.faults = nil; s.limit = 26 * time.Second })
		r.script.unblock()
		r.advance(13 * time.Second)
		require.Equal(t, host.Status{State: host.StateHeld, Requested: requestedDelay, Granted: 26 * time.Second, Answered: true}, r.host.Status())
	})
}
