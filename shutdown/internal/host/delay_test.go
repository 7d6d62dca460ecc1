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

// delaysAt returns when the delay was requested, since the start of Run.
func (r *rig) delaysAt() *[]time.Duration {
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

// A lowered or raised limit is noticed at the next read. After a grant that costs pods time, the next
// requests follow after 1 s, 2 s, 4 s, 8 s, and then every 10 s.
func TestChangesOfTheLimitAreNoticed(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		at := r.delaysAt()
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
		require.Equal(t, []int{0, 10, 20, 21, 23, 27, 35, 45, 55}, seconds(*at), "pauses of 1, 2, 4, 8 and 10 s after the low grant at 20 s")

		r.script.set(func(s *script) { s.limit = 0 })
		r.advance(5 * time.Second)
		require.Equal(t, host.Status{State: host.StateHeld, Requested: requestedDelay, Granted: requestedDelay}, r.host.Status())
		require.Empty(t, r.host.LimitSetBy())
		r.advance(20 * time.Second)
		require.Equal(t, []int{65, 75, 85}, seconds((*at)[9:]), "the old pace, except when it was raised")
		require.Equal(t, 1, r.script.number("inhibit"))

		r.script.set(func(s *script) { s.limit = 10 * time.Second })
		r.advance(11 * time.Second)
		require.Equal(t, []int{95, 96}, seconds((*at)[12:]), "the first pause is short again")
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

// A source may grant 10 s of 30 s without an error that says why. The host treats that like an error: its status
// has a DelayCappedError, and the listener is called, which logs it. The host itself logs nothing. When the limit rises
// to 26 s, the error goes: 26 s are enough for the pods (see rig.options).
func TestALowGrantWithoutAnErrorIsACap(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.script.capWithoutError, r.script.limit = true, 10*time.Second
		r.run()
		var capped *source.DelayCappedError
		require.ErrorAs(t, r.host.Status().Err, &capped)
		require.Equal(t, source.DelayCappedError{Requested: requestedDelay, Granted: 10 * time.Second}, *capped)
		require.Equal(t, 10*time.Second, r.host.Status().Granted)
		require.Contains(t, r.allReceived(), "0s capped")
		require.Empty(t, r.log.lines(), "the listener logs it")
		r.script.set(func(s *script) { s.limit = 26 * time.Second })
		r.advance(time.Second)
		require.NoError(t, r.host.Status().Err, "the limit is enough for the pods")
	})
}

// HostCapped is called for each new cap: for one of 5 s once, for one of 6 s, and again for the latter after
// the host had granted everything in between.
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

// Each change is logged once, with the limit before and after. One that costs pods time, which is a grant of less than 25 s
// (see rig.options), is reported to the listener instead, which logs it.
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

// A failed read is in the status and logged once for each reason. The lock and the last limit are kept.
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
		require.Len(t, r.log.lines(), 4, "it succeeded in between")
		require.Equal(t, 1, r.script.number("inhibit"))
		r.requireLock(host.StateHeld, 1)
	})
}

// A read of the limit hangs from 10 s on. It delays no event, and is abandoned after 6 s: its timeout of 5 s, and 1 s
// to return. The status then has an error, but the lock is kept. A lasting hang is logged once.
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
		require.Equal(t, host.Status{State: host.StateHeld, Requested: requestedDelay, Granted: 26 * time.Second}, r.host.Status())
	})
}
