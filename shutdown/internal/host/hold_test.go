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

// After End, the cancellation of a shutdown, a new lock is taken at once, and only then the old one is
// closed: the host is never without a lock.
func TestEndReplacesTheLockWithoutAGap(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.run()
		hold := r.host.Suspend()
		r.advance(time.Minute)
		require.Equal(t, 1, r.script.number("inhibit"))
		hold.End()
		synctest.Wait()
		require.Equal(t, []string{"delay", "inhibit", "release"}, r.script.called()[5:], "after the five calls of the start")
		r.requireLock(host.StateHeld, 1)

		hold = r.host.Suspend()
		require.NoError(t, hold.Release()(t.Context()))
		r.requireLock(host.StateReleased, 0)
		hold.End()
		synctest.Wait()
		r.requireLock(host.StateHeld, 1)
	})
}

// The previous agent's lock is adopted before the first call of the host, so that it is kept even if every
// call fails. If no shutdown is pending, a lock of this agent replaces it.
func TestTheLockIsAdoptedFirst(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*script)
		state  host.State
	}{
		"nothing is pending":    {func(*script) {}, host.StateHeld},
		"a shutdown is pending": {func(s *script) { s.pending = &source.Event{} }, host.StateAdopted},
		"there is no bus":       {always("connect", fault{err: errRefused}), host.StateAdopted},
		"Connect hangs":         {always("connect", fault{hangs: true}), host.StateAdopted},
		"Pending hangs":         {always("pending", fault{hangs: true}), host.StateAdopted},
		"Pending fails":         {always("pending", fault{err: errRefused}), host.StateAdopted},
		"Inhibit fails":         {always("inhibit", fault{err: errRefused}), host.StateAdopted},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, r *rig) {
				r.useAdopter(true)
				test.change(r.script)
				r.run()
				require.Equal(t, "adopt", r.script.called()[0])
				r.requireLock(test.state, 1)
				require.Equal(t, test.state == host.StateAdopted, r.host.Adopted())
				r.advance(time.Minute)
				r.requireLock(test.state, 1)
				if r.hold != nil { // a shutdown is pending
					require.True(t, r.hold.Waits())
					require.Zero(t, r.script.number("inhibit"), "a lock is held")
					require.NoError(t, r.host.Status().Err)
				}
			})
		})
	}
}

// AwaitAdoption waits for the attempt to get a lock in a shutdown: until it ends, whether it succeeds or not,
// but at most until the given time, here 5 s. It returns at once if no attempt is in progress, or its context
// has ended.
func TestAwaitAdoptionIsBounded(t *testing.T) {
	for name, test := range map[string]struct {
		change func(r *rig)
		waits  time.Duration
	}{
		"a second":    {func(r *rig) { always("inhibit", fault{delay: time.Second})(r.script) }, time.Second},
		"refused":     {func(r *rig) { always("inhibit", fault{delay: time.Second, err: errRefused})(r.script) }, time.Second},
		"not in time": {func(r *rig) { always("inhibit", fault{delay: 9 * time.Second})(r.script) }, 5 * time.Second},
		"the session lost": {func(r *rig) {
			always("inhibit", fault{delay: time.Second, after: func() { r.script.set((*script).lose) }})(r.script)
		}, time.Second},
		"one is held": {func(r *rig) { r.useAdopter(true) }, 0},
		"Close is called": {func(r *rig) {
			always("inhibit", fault{delay: 9 * time.Second})(r.script)
			time.AfterFunc(time.Second, func() { _ = r.host.Close(r.loggingContext()) })
		}, time.Second},
		"no session": {func(r *rig) {
			r.script.faults = func(method string, n int) fault {
				switch {
				case method == "connect" && n > 1:
					return fault{err: errRefused}
				case method == "pending":
					return fault{after: func() { r.script.set((*script).lose) }}
				}
				return fault{}
			}
		}, 0},
		// Adopt has 2 s, and 1 s to return before it is abandoned.
		"the attempt hangs": {func(r *rig) { r.useAdopter(false); always("adopt", fault{hangs: true})(r.script) }, 3 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, r *rig) {
				test.change(r)
				r.script.pending, r.script.keptLock = &source.Event{}, true
				r.run()
				hold := r.host.Suspend()
				began := time.Now()
				hold.AwaitAdoption(t.Context(), began.Add(5*time.Second))
				require.Equal(t, test.waits, time.Since(began))
				ctx, cancel := context.WithCancel(t.Context())
				cancel()
				hold.AwaitAdoption(ctx, began.Add(time.Hour))
				require.Equal(t, test.waits, time.Since(began))
				r.advance(time.Minute)
			})
		})
	}
}

// After the release Retake asks the host for another lock, once, which the host may refuse. A granted lock counts as
// held, or as adopted if this agent has never held one of its own. Retake does nothing before the release.
func TestRetakeAsksTheHostForANewLock(t *testing.T) {
	for name, test := range map[string]struct {
		grants bool
		first  bool // the agent starts in the middle of the shutdown
		state  host.State
	}{
		"granted":           {grants: true, state: host.StateHeld},
		"refused":           {state: host.StateReleased},
		"granted at first":  {grants: true, first: true, state: host.StateAdopted},
		"refused from then": {first: true, state: host.StateReleased},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, r *rig) {
				if test.first {
					r.script.pending = &source.Event{}
				}
				r.run()
				if !test.first {
					r.script.announce()
					synctest.Wait()
				}
				hold := r.hold
				inhibits := r.script.number("inhibit")
				hold.Retake()
				synctest.Wait()
				require.Equal(t, inhibits, r.script.number("inhibit"), "nothing was released")
				hold.ReleaseAt(t.Context(), time.Now().Add(time.Minute))
				require.NoError(t, hold.Release()(t.Context()))
				r.script.set(func(s *script) { s.keptLock = test.grants })
				hold.Retake()
				hold.AwaitAdoption(t.Context(), time.Now().Add(time.Second))
				require.Equal(t, test.state, r.host.Status().State)
				require.Equal(t, test.grants, hold.Waits())
				r.advance(time.Minute)
				r.requireLock(host.StateReleased, 0)
				require.Equal(t, inhibits+1, r.script.number("inhibit"), "it is requested once")
			})
		})
	}
}

// The host refuses every lock. The session asks for one when it starts or a shutdown is cancelled, and once more when a
// shutdown begins without a lock: two requests for each shutdown. It requests the delay only outside shutdowns.
func TestAShutdownWithoutALockAsksOnce(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		always("inhibit", fault{err: errRefused})(r.script)
		r.run()
		for shutdowns := range 3 {
			hold := r.host.Suspend()
			synctest.Wait()
			require.Equal(t, 2*shutdowns+2, r.script.number("inhibit"))
			r.advance(time.Minute)
			require.Equal(t, 2*shutdowns+2, r.script.number("inhibit"))
			require.Equal(t, shutdowns+1, r.script.number("delay"))
			hold.End()
			synctest.Wait()
		}
		r.script.set(func(s *script) { s.faults = nil })
		r.advance(time.Second)
		r.requireLock(host.StateHeld, 1)
	})
}

// During a shutdown each new session tries to adopt a lock once, also after the release, when the lock
// is closed.
func TestEachSessionInAShutdownTriesToAdoptOnce(t *testing.T) {
	for _, released := range []bool{false, true} {
		inBubble(t, func(t *testing.T, r *rig) {
			r.ignoresEvents = true // so that the test's Hold is not replaced
			hold := r.host.Suspend()
			if released {
				require.NoError(t, hold.Release()(t.Context()))
			}
			r.script.pending = &source.Event{}
			r.run()
			r.advance(time.Minute)
			require.Equal(t, []string{"connect", "events", "pending", "inhibit"}, r.script.called())
			r.script.set(func(s *script) { s.keptLock = true; s.lose() })
			r.advance(time.Minute)
			require.Equal(t, 2, r.script.number("inhibit"))
			if released {
				r.requireLock(host.StateReleased, 0)
				require.Equal(t, 1, r.script.number("release"))
			} else {
				r.requireLock(host.StateAdopted, 1)
			}
		})
	}
}

// If a shutdown begins, or the session is lost, during RequestDelay, no lock is taken afterwards. In the shutdown the
// session asks once for the previous agent's lock, which the host refuses.
func TestAShutdownDuringRequestDelayTakesNoLock(t *testing.T) {
	for name, test := range map[string]struct {
		then     func(r *rig)
		inhibits int
	}{
		"shutdown": {func(r *rig) { r.script.announce() }, 1},
		"loss": {func(r *rig) {
			r.script.set(func(s *script) { s.lose(); s.pending = &source.Event{}; always("pending", fault{err: errRefused})(s) })
		}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, r *rig) {
				always("delay", fault{delay: time.Second})(r.script)
				r.run()
				time.AfterFunc(time.Second/2, func() { test.then(r) })
				r.advance(time.Minute)
				require.Equal(t, test.inhibits, r.script.number("inhibit"))
			})
		})
	}
}

// A lock is closed completely even if the context of the release has ended: the host would wait otherwise.
func TestTheLockIsClosedAfterTheContextEnds(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		always("release", fault{delay: 500 * time.Millisecond})(r.script)
		r.run()
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		require.NoError(t, r.host.Suspend().Release()(ctx))
		r.requireLock(host.StateReleased, 0)
	})
}

// If the Close of a lock hangs, fails or panics, Release and Host.Close return an error within a second. The
// lock counts as released, and its Close is not called again.
func TestAFailedCloseIsReportedWithinASecond(t *testing.T) {
	for text, f := range map[string]fault{
		"timed out":               {hangs: true},
		"refused":                 {err: errRefused},
		"panicked: of the source": {panics: true},
	} {
		for name, release := range map[string]func(r *rig) error{
			"Release": func(r *rig) error { return r.host.Suspend().Release()(r.loggingContext()) },
			"Close":   func(r *rig) error { return r.host.Close(r.loggingContext()) },
		} {
			t.Run(name+" "+text, func(t *testing.T) {
				inBubble(t, func(t *testing.T, r *rig) {
					r.run()
					r.script.set(nth("release", 1, f))
					began := time.Now()
					err := release(r)
					require.ErrorContains(t, err, "failed to release the shutdown inhibitor: ")
					require.ErrorContains(t, err, text)
					require.LessOrEqual(t, time.Since(began), time.Second)
					require.Equal(t, host.StateReleased, r.host.Status().State)
					hung := make(chan struct{})
					close(hung)
					if f.hangs {
						require.Equal(t, []string{"the closing of the shutdown inhibitor"}, r.calls.Wait(hung))
					}
					require.NoError(t, release(r))
					if f.panics {
						r.script.set(func(s *script) { s.locks[0].release() }) // it panicked before
					}
				})
			})
		}
	}
}

// If the previous lock cannot be closed, the new one is held and not taken again.
func TestAFailedCloseOfThePreviousLockKeepsTheNewOne(t *testing.T) {
	for _, f := range []fault{{hangs: true}, {err: errRefused}} {
		inBubble(t, func(t *testing.T, r *rig) {
			r.run()
			r.script.set(nth("release", 1, f))
			r.host.Suspend().End()
			r.advance(time.Minute)
			require.Equal(t, host.StateHeld, r.host.Status().State)
			require.NoError(t, r.host.Status().Err)
			require.Equal(t, 2, r.script.number("inhibit"))
			r.script.set(func(s *script) { s.allowsTwoLocks = true })
		})
	}
}

// After Host.Close nothing takes a lock again: neither a Hold, old or new, nor another session.
func TestNothingIsHeldAfterClose(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.run()
		hold := r.host.Suspend()
		require.NoError(t, r.host.Close(t.Context()))
		for _, h := range []*host.Hold{hold, r.host.Suspend()} {
			h.Retake()
			h.End()
			h.ReleaseAt(t.Context(), time.Now())
			require.NoError(t, h.Release()(t.Context()))
			require.False(t, h.Waits())
		}
		r.script.set((*script).lose)
		r.advance(time.Minute)
		r.requireLock(host.StateReleased, 0)
		require.Equal(t, 2, r.script.number("connect"))
		require.Equal(t, 1, r.script.number("inhibit"))
	})
}
