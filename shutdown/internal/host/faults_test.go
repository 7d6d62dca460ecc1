//go:build go1.25

package host_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kubegrace/kubegrace/shutdown/internal/host"
	"github.com/kubegrace/kubegrace/shutdown/source"
)

// methods has the names, in the script, of the methods of a source and its sessions.
var methods = []string{"adopt", "connect", "events", "pending", "delay", "inhibit", "close"}

// faultKinds has the faults by name.
var faultKinds = map[string]fault{"hangs": {hangs: true}, "fails": {err: errRefused}, "panics": {panics: true}}

// One call of a method, the first or the tenth, hangs, fails or panics. A lock is held all the time. Within 13 s a new session has taken
// the lock, without an error: a call that hangs is abandoned after at most 11 s (its timeout of 10 s and 1 s to return), and
// reconnecting takes another second.
func TestOneFaultyCallIsRecovered(t *testing.T) {
	for _, method := range methods {
		for kind, f := range faultKinds {
			for _, number := range []int{1, 10} {
				subtestInBubble(t, fmt.Sprint(method, " ", kind, " ", number), func(t *testing.T, r *rig) {
					r.useAdopter(withLock)
					r.script.set(callNumber(number, method, f))
					r.run()
					for range 12 { // one session each, so that the tenth call is among theirs
						r.advance(13 * time.Second)
						r.requireLockHeld()
						require.NoError(t, r.host.Status().Err)
						r.script.loseSession()
						synctest.Wait()
						require.Equal(t, 1, r.script.heldLocks(), "the lock outlasts its session")
					}
				})
			}
		}
	}
}

// lockDuringFault has the state of the lock while all calls of a method are faulty: StateAdopted, the previous agent's lock, if
// no new lock can be taken without the method.
var lockDuringFault = map[string]host.State{
	"adopt": host.StateHeld, "delay": host.StateHeld, "close": host.StateHeld,
	"connect": host.StateAdopted, "events": host.StateAdopted, "pending": host.StateAdopted, "inhibit": host.StateAdopted,
}

// All calls of a method hang, fail or panic for 11 min: 60 steps of 11 s, because a hanging call is abandoned after at most
// 11 s. After each step one lock is held. Within 13 s of the end of the fault a lock of this agent is held and the status has no
// error, as after a single fault.
func TestALastingFaultIsRecoveredWhenItEnds(t *testing.T) {
	for _, method := range methods {
		for kind, f := range faultKinds {
			if method == "events" && kind == "fails" {
				continue // Events returns no error
			}
			if method == "adopt" && kind != "hangs" {
				continue // Adopt is called only once, so this fault does not last
			}
			subtestInBubble(t, fmt.Sprint(method, " ", kind), func(t *testing.T, r *rig) {
				r.useAdopter(withLock)
				r.script.set(everyCallOf(method, f))
				r.run()
				for range 60 {
					r.advance(11 * time.Second)
					r.requireOneLock(lockDuringFault[method])
				}
				r.script.set(func(s *script) { s.faults = nil })
				r.advance(13 * time.Second)
				r.requireLockHeld()
				require.NoError(t, r.host.Status().Err)
			})
		}
	}
}

// Adopt returns no lock, or panics. A lock of this agent is held at once. A panic is logged twice: with its stack, and as a
// failed adoption.
func TestAFaultyAdoptDelaysNoLock(t *testing.T) {
	for kind, logLines := range map[string]int{"fails": 0, "panics": 2} {
		subtestInBubble(t, kind, func(t *testing.T, r *rig) {
			r.useAdopter(withLock)
			r.script.set(everyCallOf("adopt", faultKinds[kind]))
			r.run()
			r.requireLockHeld()
			require.Len(t, r.log.lines(), logLines)
		})
	}
}

// Connect never returns. Each call is abandoned after 11 s. The pause before the next call is one second for each ten calls
// that hang, but at least one second. So the first 20 calls are 12 s apart, the next ten 13 s, the next ten 14 s, and then
// 15 s: about 45 calls in the first ten minutes. In a day there are only 1200. Once the calls return, the pause is one second
// again.
func TestHangingCallsSlowDownReconnects(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.script.set(everyCallOf("connect", fault{hangs: true}))
		r.run()
		r.advance(10 * time.Minute)
		require.InDelta(t, 45, r.script.callCount("connect"), 5)
		r.advance(24 * time.Hour)
		require.InDelta(t, 1200, r.script.callCount("connect"), 200)
		r.script.set(everyCallOf("connect", fault{err: errRefused}))
		r.script.unblock()
		r.advance(2 * time.Minute) // the current pause, of one second for each ten of 1200 calls, ends
		before := r.script.callCount("connect")
		r.advance(10 * time.Second)
		require.Equal(t, before+10, r.script.callCount("connect"))
	})
}

// The first call of a method hangs, and so does the first Close of a session. After at most 11 s the call is abandoned, 2 s later the
// Close, and 1 s later a new session takes the lock. Then the hanging calls return: a lock that Inhibit returns so late is closed, and
// so is a session (inBubble requires that none is open at the end). Events of the abandoned session are dropped.
func TestLateResultsOfAnAbandonedSessionAreClosed(t *testing.T) {
	for _, method := range []string{"connect", "events", "pending", "delay", "inhibit"} {
		subtestInBubble(t, method, func(t *testing.T, r *rig) {
			r.script.faults = func(called string, n int) fault {
				return fault{hangs: n == 1 && (called == method || called == "close")}
			}
			r.run()
			r.advance(20 * time.Second) // more than 11 s + 2 s + 1 s
			r.requireLockHeld()
			listenerCallsBefore, releasesBefore := r.listenerCalls(), r.script.callCount("release")
			r.script.set(func(s *script) {
				if method != "connect" { // otherwise there is no first session to send an event
					s.sessions[0].events <- source.Event{}
				}
			})
			r.script.unblock() // the hanging calls return
			r.advance(time.Minute)
			r.requireLockHeld()
			require.Equal(t, listenerCallsBefore, r.listenerCalls(), "the event was dropped")
			if method == "inhibit" {
				require.Equal(t, releasesBefore+1, r.script.callCount("release"), "the late lock is released")
			}
		})
	}
}

// Run may be ended at any moment, in any call and in a shutdown. It returns within 4 s, and all locks and sessions are closed, which
// inBubble requires.
func TestRunEndsInAnyCall(t *testing.T) {
	for _, method := range append([]string{"release"}, methods...) {
		for kind, f := range map[string]fault{
			"no fault": {}, "fails": {err: errRefused}, "panics": {panics: true}, "hangs": {hangs: true},
			"takes 5 s": {delay: 5 * time.Second}, "takes 5 s or until its context ends": {delay: 5 * time.Second, endsWithContext: true},
		} {
			if method == "release" && f.panics {
				continue // the lock would never be released
			}
			for _, after := range []time.Duration{0, 500 * time.Millisecond, 3 * time.Second, 5 * time.Second} {
				for _, shutdown := range []bool{false, true} {
					t.Run(fmt.Sprint(method, " ", kind, ", ended after ", after, ", in a shutdown: ", shutdown), func(t *testing.T) {
						inBubble(t, func(_ *testing.T, r *rig) {
							r.useAdopter(withLock)
							if shutdown {
								r.script.pending = &source.Event{}
							}
							if after == 0 {
								f.after = func() { r.stop() }
							}
							r.script.set(everyCallOf(method, f))
							r.script.allowsTwoLocks = method == "release"
							r.run()
							r.advance(after) // and then inBubble ends Run
						})
					})
				}
			}
		}
	}
}
