//go:build go1.25

package host_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kubegrace/kubegrace/shutdown/internal/host"
	"github.com/kubegrace/kubegrace/shutdown/source"
)

// A shutdown is cancelled before the lock is released: a new lock is taken at once, and only then is the old one closed, so that the
// host is never without a lock.
func TestEndReplacesTheLockWithoutAGap(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.run()
		hold := r.host.BeginShutdown()
		r.advance(time.Minute)
		callsBefore := len(r.script.allCalls())
		hold.End() // the shutdown is cancelled
		synctest.Wait()
		require.Equal(t, []string{"delay", "inhibit", "release"}, r.script.allCalls()[callsBefore:])
		r.requireLockHeld()
	})
}

// A shutdown is cancelled after the release of the lock. A new lock is taken at once.
func TestEndAfterTheReleaseTakesANewLock(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.run()
		hold := r.host.BeginShutdown()
		require.NoError(t, releaseLock(t.Context(), hold))
		r.requireLockReleased()
		hold.End() // the shutdown is cancelled
		synctest.Wait()
		r.requireLockHeld()
	})
}

// The previous agent's lock is adopted before the first call to the host, so that the lock is kept even if every call fails. If
// no shutdown is pending, a lock of this agent replaces it at once. In all other cases the adopted lock stays.
func TestTheLockIsAdoptedFirst(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*script)
		state  host.State
	}{
		"nothing is pending":    {change: func(*script) {}, state: host.StateHeld},
		"a shutdown is pending": {change: func(s *script) { s.pending = &source.Event{} }, state: host.StateAdopted},
		"there is no bus":       {change: everyCallOf("connect", fault{err: errRefused}), state: host.StateAdopted},
		"Connect hangs":         {change: everyCallOf("connect", fault{hangs: true}), state: host.StateAdopted},
		"Pending hangs":         {change: everyCallOf("pending", fault{hangs: true}), state: host.StateAdopted},
		"Pending fails":         {change: everyCallOf("pending", fault{err: errRefused}), state: host.StateAdopted},
		"Inhibit fails":         {change: everyCallOf("inhibit", fault{err: errRefused}), state: host.StateAdopted},
	} {
		subtestInBubble(t, name, func(t *testing.T, r *rig) {
			r.useAdopter(withLock)
			test.change(r.script)
			r.run()
			require.Equal(t, "adopt", r.script.allCalls()[0])
			r.requireOneLock(test.state)
			r.advance(time.Minute)
			r.requireOneLock(test.state) // still
			if r.hold != nil {           // a shutdown is pending
				require.True(t, r.hold.HostWaits())
				require.Zero(t, r.script.callCount("inhibit"), "a lock is held")
				require.NoError(t, r.host.Status().Err)
			}
		})
	}
}

// In a shutdown the session asks the host for a lock. AwaitAttempt waits until this attempt has ended, whether it has
// succeeded or not, but at most until the given time, here 5 s. It returns at once if no attempt is in progress, or if its
// context has ended.
func TestAwaitAttemptIsBounded(t *testing.T) {
	for name, test := range map[string]struct {
		change func(r *rig)
		waits  time.Duration
	}{
		"Inhibit takes a second":            {change: func(r *rig) { r.script.set(everyCallOf("inhibit", fault{delay: time.Second})) }, waits: time.Second},
		"Inhibit is refused after a second": {change: func(r *rig) { r.script.set(everyCallOf("inhibit", fault{delay: time.Second, err: errRefused})) }, waits: time.Second},
		"Inhibit takes longer":              {change: func(r *rig) { r.script.set(everyCallOf("inhibit", fault{delay: 9 * time.Second})) }, waits: 5 * time.Second},
		"the session is lost during Inhibit": {change: func(r *rig) {
			r.script.set(everyCallOf("inhibit", fault{delay: time.Second, after: func() { r.script.loseSession() }}))
		}, waits: time.Second},
		"a lock is adopted": {change: func(r *rig) { r.useAdopter(withLock) }, waits: 0},
		"Close is called after a second": {change: func(r *rig) {
			r.script.set(everyCallOf("inhibit", fault{delay: 9 * time.Second}))
			time.AfterFunc(time.Second, func() { _ = r.host.Close(r.loggingContext()) })
		}, waits: time.Second},
		"there is no session": {change: func(r *rig) {
			r.script.faults = func(method string, n int) fault {
				switch {
				case method == "connect" && n > 1:
					return fault{err: errRefused}
				case method == "pending":
					return fault{after: func() { r.script.loseSession() }}
				}
				return fault{}
			}
		}, waits: 0},
		// Adopt has 2 s, and 1 s more to return before it is abandoned: 3 s.
		"Adopt hangs": {change: func(r *rig) { r.useAdopter(withoutLock); r.script.set(everyCallOf("adopt", fault{hangs: true})) }, waits: 3 * time.Second},
	} {
		subtestInBubble(t, name, func(t *testing.T, r *rig) {
			test.change(r)
			r.script.pending, r.script.grantsNextInShutdown = &source.Event{}, true
			r.run()
			hold := r.host.BeginShutdown()
			began := time.Now()
			hold.AwaitAttempt(t.Context(), began.Add(5*time.Second))
			require.Equal(t, test.waits, time.Since(began))

			ended, end := context.WithCancel(t.Context())
			end()
			hold.AwaitAttempt(ended, began.Add(time.Hour))
			require.Equal(t, test.waits, time.Since(began), "with an ended context it waits no longer")
			r.advance(time.Minute)
		})
	}
}

// Retake does nothing while the lock is held. After the release it asks the host once for another lock, which the host may refuse. A
// lock that is granted counts as held. If the agent has never taken a lock of its own, it counts as adopted: the host grants no new
// lock in a shutdown, so the lock must be the previous agent's. The new lock is released at the time given to ReleaseAt, too.
func TestRetakeAsksTheHostForANewLock(t *testing.T) {
	for name, test := range map[string]struct {
		grants           bool
		startsInShutdown bool // the agent starts in the middle of the shutdown
		state            host.State
	}{
		"granted": {grants: true, state: host.StateHeld},
		"refused": {state: host.StateReleased},
		"granted, the agent starts in the shutdown": {grants: true, startsInShutdown: true, state: host.StateAdopted},
		"refused, the agent starts in the shutdown": {startsInShutdown: true, state: host.StateReleased},
	} {
		subtestInBubble(t, name, func(t *testing.T, r *rig) {
			if test.startsInShutdown {
				r.script.pending = &source.Event{}
			}
			r.run()
			if !test.startsInShutdown {
				r.script.announce()
				synctest.Wait()
			}
			hold := r.hold
			inhibits := r.script.callCount("inhibit")
			hold.Retake()
			synctest.Wait()
			require.Equal(t, inhibits, r.script.callCount("inhibit"), "the lock was not released yet")

			hold.ReleaseAt(t.Context(), time.Now().Add(time.Minute))
			require.NoError(t, releaseLock(t.Context(), hold))
			r.script.set(func(s *script) { s.grantsNextInShutdown = test.grants })
			hold.Retake()
			hold.AwaitAttempt(t.Context(), time.Now().Add(time.Second))
			require.Equal(t, test.state, r.host.Status().State)
			require.Equal(t, test.grants, hold.HostWaits())

			r.advance(time.Minute)
			r.requireLockReleased()
			require.Equal(t, inhibits+1, r.script.callCount("inhibit"), "one lock was requested")
		})
	}
}

// The host refuses every lock. The session asks for a lock when it starts, once when a shutdown begins, and once when it is cancelled.
// When the host grants locks again, the lock is held within a second.
func TestAShutdownWithoutALockAsksOnce(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.script.set(everyCallOf("inhibit", fault{err: errRefused}))
		r.run()
		for shutdowns := range 3 {
			hold := r.host.BeginShutdown()
			synctest.Wait()
			r.advance(time.Minute)
			require.Equal(t, 1+2*shutdowns+1, r.script.callCount("inhibit"), "at the start, two for each shutdown before, and at the beginning of this one")
			hold.End()
			synctest.Wait()
		}
		r.script.set(func(s *script) { s.faults = nil })
		r.advance(time.Second)
		r.requireLockHeld()
	})
}

// During a shutdown each new session asks the host for a lock once. The host refuses the first request, and grants the second
// one, of the next session. If the shutdown's lock was released before, the granted lock is closed at once.
func TestEachSessionInAShutdownTriesToAdoptOnce(t *testing.T) {
	for _, released := range []bool{false, true} {
		inBubble(t, func(t *testing.T, r *rig) {
			r.ignoresEvents = true // so that the test's Hold is not replaced
			hold := r.host.BeginShutdown()
			if released {
				require.NoError(t, releaseLock(t.Context(), hold))
			}
			r.script.pending = &source.Event{}
			r.run()
			r.advance(time.Minute)
			require.Equal(t, []string{"connect", "events", "pending", "inhibit"}, r.script.allCalls())
			r.script.set(func(s *script) { s.grantsNextInShutdown = true; s.lose() })
			r.advance(time.Minute)
			require.Equal(t, 2, r.script.callCount("inhibit"))
			if released {
				r.requireLockReleased()
				require.Equal(t, 1, r.script.callCount("release"))
			} else {
				r.requireLockAdopted()
			}
		})
	}
}

// RequestDelay takes a second. In the middle of it a shutdown begins: the session then asks for a lock only once, which the
// host refuses in a shutdown. Or the session is lost: it then does not ask at all, and the next session does not either,
// because Pending fails.
func TestAShutdownDuringRequestDelayTakesNoLock(t *testing.T) {
	for name, test := range map[string]struct {
		during   func(r *rig) // called during RequestDelay
		inhibits int
	}{
		"a shutdown begins": {during: func(r *rig) { r.script.announce() }, inhibits: 1},
		"the session is lost": {during: func(r *rig) {
			r.script.set(func(s *script) {
				s.lose()
				s.pending = &source.Event{}
				everyCallOf("pending", fault{err: errRefused})(s)
			})
		}, inhibits: 0},
	} {
		subtestInBubble(t, name, func(t *testing.T, r *rig) {
			r.script.set(everyCallOf("delay", fault{delay: time.Second}))
			r.run()
			time.AfterFunc(time.Second/2, func() { test.during(r) })
			r.advance(time.Minute)
			require.Equal(t, test.inhibits, r.script.callCount("inhibit"))
		})
	}
}

// The context of Release has ended, and closing the lock takes 500 ms. Release still waits until the lock is closed:
// otherwise the host would go on waiting.
func TestTheLockIsClosedAfterTheContextEnds(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.script.set(everyCallOf("release", fault{delay: 500 * time.Millisecond}))
		r.run()
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		require.NoError(t, releaseLock(ctx, r.host.BeginShutdown()))
		r.requireLockReleased()
	})
}

// The Close of a lock hangs, fails or panics. Release (in a shutdown) and Host.Close return an error within a second. The
// lock counts as released, and its Close is not called again.
func TestAFailedCloseIsReportedWithinASecond(t *testing.T) {
	for text, f := range map[string]fault{
		"timed out":                       {hangs: true},
		"refused":                         {err: errRefused},
		"panicked: a fault of the script": {panics: true},
	} {
		for name, release := range map[string]func(r *rig) error{
			"Release": func(r *rig) error { return releaseLock(r.loggingContext(), r.host.BeginShutdown()) },
			"Close":   func(r *rig) error { return r.host.Close(r.loggingContext()) },
		} {
			subtestInBubble(t, name+" "+text, func(t *testing.T, r *rig) {
				r.run()
				r.script.set(callNumber(1, "release", f))
				began := time.Now()
				err := release(r)
				require.ErrorContains(t, err, "failed to release the shutdown inhibitor: ")
				require.ErrorContains(t, err, text)
				require.LessOrEqual(t, time.Since(began), time.Second)
				require.Equal(t, host.StateReleased, r.host.Status().State)
				giveUpAtOnce := make(chan struct{})
				close(giveUpAtOnce)
				if f.hangs { // the Close still runs in the background
					require.Equal(t, []string{"the closing of the shutdown inhibitor"}, r.calls.Wait(giveUpAtOnce))
				}
				require.NoError(t, release(r), "there is no lock to close any more")
				if f.panics { // the Close of the fake lock has panicked before it counted as closed, which r.end requires
					r.script.set(func(s *script) { s.locks[0].release() })
				}
			})
		}
	}
}

// After a cancellation a new lock replaces the old one, whose Close hangs or fails. The new lock is held, and no third one
// is taken.
func TestAFailedCloseOfThePreviousLockKeepsTheNewOne(t *testing.T) {
	for _, f := range []fault{{hangs: true}, {err: errRefused}} {
		inBubble(t, func(t *testing.T, r *rig) {
			r.run()
			r.script.set(callNumber(1, "release", f))
			r.host.BeginShutdown().End()
			r.advance(time.Minute)
			require.Equal(t, host.StateHeld, r.host.Status().State)
			require.NoError(t, r.host.Status().Err)
			require.Equal(t, 2, r.script.callCount("inhibit"), "the old lock and the new one")
			r.script.set(func(s *script) { s.allowsTwoLocks = true })
		})
	}
}

// After Host.Close no lock is taken any more: neither by a Hold from before Close or after it, nor by another session.
func TestNothingIsHeldAfterClose(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.run()
		hold := r.host.BeginShutdown()
		require.NoError(t, r.host.Close(t.Context()))
		for _, h := range []*host.Hold{hold, r.host.BeginShutdown()} {
			h.Retake()
			h.End()
			h.ReleaseAt(t.Context(), time.Now())
			require.NoError(t, releaseLock(t.Context(), h))
			require.False(t, h.HostWaits())
		}
		r.script.loseSession()
		r.advance(time.Minute)
		r.requireLockReleased()
		require.Equal(t, 2, r.script.callCount("connect"), "there is another session")
		require.Equal(t, 1, r.script.callCount("inhibit"), "it asks for no lock")
	})
}
