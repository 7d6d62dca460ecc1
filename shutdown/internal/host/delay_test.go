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

// The Host requests the delay every 10 s, and so notices a changed limit at the next request. The limit is lowered to 10 s at
// 15 s, which is noticed at 20 s. That grant costs pods time, so the next requests follow after 1, 2, 4 and 8 s, and then every
// 10 s. At 60 s the limit is removed, which the request at 65 s notices; requests then come every 10 s. At 85 s the limit is
// lowered again: after the request at 95 s the next one follows after 1 s.
func TestChangesOfTheLimitAreNoticed(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		requestedAt := r.recordDelayRequests()
		r.run()
		r.advance(15 * time.Second)
		r.script.set(func(s *script) { s.limit, s.limitFile = 10*time.Second, "/etc/zzz.conf" })
		r.advance(5*time.Second - time.Nanosecond)
		require.Equal(t, requestedDelay, r.host.Status().Granted)
		r.advance(time.Nanosecond)
		status := r.host.Status()
		require.Equal(t, host.StateHeld, status.State)
		require.Equal(t, 10*time.Second, status.Granted)
		require.ErrorAs(t, status.Err, new(*source.DelayCappedError))
		require.ErrorIs(t, status.Err, errRefused, "the host's error")
		require.Equal(t, "InhibitDelayMaxSec in /etc/zzz.conf", r.host.LimitSetBy())
		r.advance(40 * time.Second)
		require.Equal(t, []string{"0s pending false true", "0s tried", "20s capped"}, r.allReceived(), "reported once")
		require.Equal(t, []int{0, 10, 20, 21, 23, 27, 35, 45, 55}, seconds(*requestedAt), "pauses of 1, 2, 4, 8 and 10 s after the low grant at 20 s")

		r.script.set(func(s *script) { s.limit = 0 })
		r.advance(5 * time.Second)
		require.Equal(t, host.Status{State: host.StateHeld, Requested: requestedDelay, Granted: requestedDelay, Answered: true}, r.host.Status())
		require.Empty(t, r.host.LimitSetBy())
		r.advance(20 * time.Second)
		require.Equal(t, []int{65, 75, 85}, seconds((*requestedAt)[9:]), "every 10 s")
		require.Equal(t, 1, r.script.callCount("inhibit"))

		r.script.set(func(s *script) { s.limit = 10 * time.Second })
		r.advance(11 * time.Second)
		require.Equal(t, []int{95, 96}, seconds((*requestedAt)[12:]), "the first pause is short again")
		require.Contains(t, r.allReceived(), "1m35s capped")
	})
}

// seconds returns durations in whole seconds.
func seconds(all []time.Duration) (s []int) {
	for _, d := range all {
		s = append(s, int(d/time.Second))
	}
	return s
}

// The source grants 10 s of the requested 30 s, without an error that says why. The Host treats the grant like an error: its
// status has a DelayCappedError, and it calls the listener, which logs the error. The Host itself logs nothing. The limit then
// rises to 26 s, which the next request, 1 s later, notices. The status has no error any more: by the options of the rig, 25 s
// are enough for the pods.
func TestALowGrantWithoutAnErrorIsACap(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.script.capWithoutError, r.script.limit = true, 10*time.Second
		r.run()
		var capped *source.DelayCappedError
		require.ErrorAs(t, r.host.Status().Err, &capped)
		require.Equal(t, source.DelayCappedError{Requested: requestedDelay, Granted: 10 * time.Second}, *capped)
		require.Equal(t, 10*time.Second, r.host.Status().Granted)
		require.Contains(t, r.allReceived(), "0s capped", "HostCapped was called 0 s after the start")
		require.Empty(t, r.log.lines(), "the listener logs it")
		r.script.set(func(s *script) { s.limit = 26 * time.Second })
		r.advance(time.Second)
		require.NoError(t, r.host.Status().Err, "the limit is enough for the pods")
	})
}

// The limit is 5 s for a minute, then 6 s, then none, and then 6 s again, for a minute each. HostCapped is called once for each
// of the three caps: at the start, in the second minute and in the fourth.
func TestEachNewCapIsReported(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.script.limit = 5 * time.Second
		r.run()
		for _, limit := range []time.Duration{5 * time.Second, 6 * time.Second, 0, 6 * time.Second} {
			r.script.set(func(s *script) { s.limit = limit })
			r.advance(time.Minute)
		}
		heard := r.allReceived()[1:] // without the first, "pending"
		require.Len(t, heard, 4)
		require.Equal(t, []string{"0s capped", "0s tried"}, heard[:2])
		require.Regexp(t, `^1m\d+s capped$`, heard[2], "the limit of 6 s begins after a minute")
		require.Regexp(t, `^3m\d+s capped$`, heard[3], "and again after three")
	})
}

// Each change of the limit is logged once, with the limit before and after. Each limit lasts a minute. A change to less than
// 25 s costs pods time (see rig.options): it is not logged but reported to the listener, which logs it.
func TestChangesOfTheLimitAreLogged(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.run()
		require.Empty(t, r.log.lines())
		want := []line{}
		for _, change := range []struct {
			limit, before, granted time.Duration
			setBy                  string
			capped                 bool
		}{
			{26 * time.Second, requestedDelay, 26 * time.Second, "InhibitDelayMaxSec", false},
			{10 * time.Second, 26 * time.Second, 10 * time.Second, "", true},
			{0, 10 * time.Second, requestedDelay, "", false},
		} {
			r.script.set(func(s *script) { s.limit = change.limit })
			r.advance(time.Minute)
			if !change.capped {
				want = append(want, line{values: map[string]any{
					"requested": requestedDelay, "before": change.before, "granted": change.granted, "setBy": change.setBy,
				}})
			}
			require.Equal(t, want, r.log.lines())
		}
	})
}

// RequestDelay fails for three minutes, and the error changes every minute. The status has the current error, and the log gets
// a line for each change. The lock and the last known limit are kept. After a success the same error is logged again.
func TestAFailedReadKeepsTheLockAndTheLimit(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.script.limit = 26 * time.Second
		r.run()
		for i, err := range []error{errRefused, errInProgress, errRefused} {
			r.script.set(always("delay", fault{err: err}))
			r.advance(time.Minute)
			require.ErrorIs(t, r.host.Status().Err, err)
			require.Equal(t, 26*time.Second, r.host.Status().Granted)
			require.Len(t, r.log.lines(), i+1)
		}
		r.script.set(func(s *script) { s.faults = nil })
		r.advance(time.Second)
		require.NoError(t, r.host.Status().Err, "it is read again after a second")
		r.script.set(always("delay", fault{err: errRefused}))
		r.advance(time.Minute)
		require.Len(t, r.log.lines(), 4, "logged again, because a request succeeded in between")
		require.Equal(t, 1, r.script.callCount("inhibit"))
		r.requireLock(host.StateHeld, 1)
	})
}

// RequestDelay hangs from the second call on, at 10 s. The hang delays no event. The call is abandoned after 6 s: its
// timeout of 5 s, and 1 s to return. The status then has an error, but the lock is kept. A lasting hang is logged once.
func TestAHangingReadDelaysNoEvent(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.run()
		r.script.set(always("delay", fault{hangs: true}))
		r.advance(12 * time.Second)
		r.script.announce()
		synctest.Wait()
		require.Contains(t, r.allReceived(), "12s event true")
		r.script.cancel()
		synctest.Wait()
		require.Contains(t, r.allReceived(), "12s event false")
		r.advance(4 * time.Second)
		require.Error(t, r.host.Status().Err)
		for range 60 {
			r.requireLock(host.StateHeld, 1)
			r.advance(time.Second)
		}
		require.Len(t, r.log.lines(), 1)
		r.script.set(func(s *script) { s.faults = nil; s.limit = 26 * time.Second })
		r.script.unblock()
		r.advance(13 * time.Second)
		require.Equal(t, host.Status{State: host.StateHeld, Requested: requestedDelay, Granted: 26 * time.Second, Answered: true}, r.host.Status())
	})
}
