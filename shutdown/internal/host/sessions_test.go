//go:build go1.25

package host_test

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/stretchr/testify/require"

	"github.com/kubegrace/kubegrace/shutdown/internal/host"
	"github.com/kubegrace/kubegrace/shutdown/source"
)

// A session subscribes to the events, reads the pending shutdown, requests the delay, and then takes the lock, so that no
// shutdown is missed. The listener is told that no shutdown is pending, and then that the host was tried.
func TestASessionSubscribesBeforeItTakesTheLock(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.run()
		require.Equal(t, []string{"connect", "events", "pending", "delay", "inhibit"}, r.script.allCalls())
		require.Equal(t, []string{"0s HostPending(none)", "0s HostTried"}, r.listenerCalls())
		require.Equal(t, host.Status{State: host.StateHeld, Requested: requestedDelay, Granted: requestedDelay, Answered: true}, r.host.Status())
		granted, known := r.host.Granted()
		require.True(t, known)
		require.Equal(t, requestedDelay, granted)
	})
}

// If the host's pending event is Cancelled, no shutdown is pending. If the host cannot know, its event does not count either.
func TestACancelledPendingEventIsNone(t *testing.T) {
	for want, change := range map[string]func(*script){
		"0s HostPending(none)":     func(s *script) { s.pending = &source.Event{Cancelled: true} },
		"0s HostPending(shutdown)": func(s *script) { s.pending = &source.Event{} },
		"0s HostPending(unknown)":  func(s *script) { s.pendingUnknown, s.pending = true, &source.Event{} },
	} {
		inBubble(t, func(t *testing.T, r *rig) {
			change(r.script)
			r.run()
			require.Equal(t, want, r.listenerCalls()[0])
		})
	}
}

// After the loss of a session the next one, 1 s later, takes a new lock before the old one is closed. Until then the status
// says that the lock may be lost. Sessions that are lost within a second are logged only once, because each is lost for the
// same reason. The loss of a session that has lasted a minute is logged again.
func TestALostSessionIsReplacedWithoutAGap(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.run()
		for range 10 {
			callsBefore := len(r.script.allCalls())
			r.script.loseSession()
			synctest.Wait()
			r.requireLockHeld()
			require.ErrorContains(t, r.host.Status().Err, "the host's session was lost")
			r.advance(time.Second)
			require.Equal(t, []string{"close", "connect", "events", "pending", "delay", "inhibit", "release"}, r.script.allCalls()[callsBefore:])
			r.requireLockHeld()
			require.NoError(t, r.host.Status().Err)
		}
		require.Len(t, r.log.lines(), 1)

		r.advance(time.Minute)
		r.script.loseSession()
		synctest.Wait()
		require.Len(t, r.log.lines(), 2)
	})
}

// The logger blocks, because nobody reads what it writes. Three events are logged: the first connection is refused, the
// limit is raised, and the session is lost. Nevertheless a second connection takes the lock, the raised limit is noticed,
// and a third connection replaces the lost session.
func TestALoggerThatBlocksDelaysNothing(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		isRead := make(chan struct{})
		r.log.Logger = funcr.New(func(string, string) { <-isRead }, funcr.Options{})
		r.script.limit = 26 * time.Second
		r.script.set(callNumber(1, "connect", fault{err: errRefused}))
		r.run()
		r.advance(2 * time.Second)
		r.requireLockHeld()

		r.script.set(func(s *script) { s.limit = 27 * time.Second })
		r.advance(time.Minute)
		require.Equal(t, 27*time.Second, r.host.Status().Granted)

		r.script.loseSession()
		r.advance(2 * time.Second)
		require.Equal(t, 3, r.script.callCount("connect"), "refused, lost, and the one in use")
		close(isRead)
	})
}

// The session is lost during a shutdown. The lock is kept, because the host grants no new lock in a shutdown, and the
// status says that the lock may be lost, until the shutdown is cancelled and a new lock is taken.
func TestASessionLostInAShutdownKeepsTheLock(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.run()
		r.script.announce()
		synctest.Wait()
		r.script.loseSession()
		r.advance(time.Minute)
		r.requireLockHeld()
		require.Equal(t, 1, r.script.callCount("inhibit"), "the first lock")
		require.ErrorContains(t, r.host.Status().Err, "the host's session was lost")

		r.script.cancel()
		synctest.Wait()
		r.requireLockHeld()
		require.Equal(t, 2, r.script.callCount("inhibit"), "a new lock")
		require.NoError(t, r.host.Status().Err)
	})
}

// The session is lost during a shutdown, and the status says that the lock may be lost. Once the lock is released, it cannot be lost any
// more.
func TestAReleasedLockIsNotLostWithItsSession(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.run()
		r.script.announce()
		synctest.Wait()
		r.script.loseSession()
		r.advance(time.Minute)
		require.Error(t, r.host.Status().Err)
		require.NoError(t, releaseLock(t.Context(), r.hold))
		require.NoError(t, r.host.Status().Err)
	})
}

// A shutdown is cancelled while the session is lost, so that no event says so. The next session, 1 s later, asks the host, which says
// that no shutdown is pending. A new lock is taken.
func TestACancellationDuringAnOutageIsNoticed(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.run()
		r.script.announce()
		synctest.Wait()
		r.script.set(func(s *script) { s.lose(); s.pending = nil })
		r.advance(2 * time.Second)
		require.Equal(t, []string{"0s HostPending(none)", "0s HostTried", "0s HostEvent(shutdown)", "1s HostPending(none)"}, r.listenerCalls())
		r.requireLockHeld()
		require.Equal(t, 2, r.script.callCount("inhibit"), "a new lock")
	})
}

// Pending takes 3 s, and an event arrives just before it returns. The event is newer than the result of Pending, so the result
// is dropped, even if both arrive at the same moment. (HostTried does not wait longer than 2 s.)
func TestAnEventIsNewerThanPending(t *testing.T) {
	for range 100 { // the event and the result arrive in random order
		inBubble(t, func(t *testing.T, r *rig) {
			r.script.set(everyCallOf("pending", fault{delay: 3 * time.Second, after: r.script.announce}))
			r.run()
			r.advance(time.Minute)
			require.Equal(t, []string{"2s HostTried", "3s HostEvent(shutdown)"}, r.listenerCalls())
		})
	}
}

// All events are passed on in order, also those that were sent just before the session was lost.
func TestEventsKeepTheirOrder(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.run()
		r.script.announce()
		r.script.cancel()
		r.script.announce()
		r.script.loseSession()
		synctest.Wait()
		require.Equal(t, []string{"0s HostEvent(shutdown)", "0s HostEvent(cancelled)", "0s HostEvent(shutdown)"}, r.listenerCalls()[2:], "after Pending's answer and HostTried")
	})
}

// Pending fails, so the session has failed, and its Close takes 1 s. Until it is closed its events are dropped, so that a
// sender of more events than the channel can hold does not block. The next session is connected at 2 s: 1 s for the Close and
// 1 s of pause.
func TestEventsOfAFailedSessionAreDropped(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.script.faults = func(method string, n int) fault {
			switch {
			case method == "pending" && n == 1:
				return fault{err: errRefused}
			case method == "close":
				return fault{delay: time.Second}
			}
			return fault{}
		}
		r.run()
		r.script.set(func(s *script) {
			for range 1000 { // more than the channel can hold
				s.sessions[0].events <- source.Event{}
			}
		})
		r.advance(10 * time.Second)
		require.Equal(t, []string{"0s HostTried", "2s HostPending(none)"}, r.listenerCalls())
	})
}

// The agent's start waits for HostTried. It is called after 2 s (5 s for RequestDelay) even if a call to the host does
// not return. The lock is taken once the host answers.
func TestAnUnresponsiveHostDoesNotDelayTheStart(t *testing.T) {
	for method, tried := range map[string]time.Duration{
		"adopt": 2 * time.Second, "connect": 2 * time.Second, "events": 2 * time.Second, "pending": 2 * time.Second, "delay": 5 * time.Second, "inhibit": 2 * time.Second,
	} {
		subtestInBubble(t, method, func(t *testing.T, r *rig) {
			r.useAdopter(withoutLock)
			r.script.set(everyCallOf(method, fault{delay: time.Hour, endsWithContext: true}))
			r.run()
			r.advance(tried - time.Millisecond)
			require.NotContains(t, r.listenerCalls(), tried.String()+" HostTried")
			r.advance(time.Millisecond)
			require.Contains(t, r.listenerCalls(), tried.String()+" HostTried")
			if method != "delay" {
				require.ErrorContains(t, r.host.Status().Err, "the host does not answer")
			}

			r.script.set(func(s *script) { s.faults = nil })
			r.advance(15 * time.Second)
			r.requireLockHeld()
			require.NoError(t, r.host.Status().Err)
		})
	}
}

// HostUnreached is called once, 5 s after the start of Run, if until then no session has answered Pending or sent an event.
func TestAnUnreachableHostIsReportedOnce(t *testing.T) {
	for name, test := range map[string]struct {
		fault     func(*script)
		announces bool // the host announces a shutdown at once
		isReached bool // HostUnreached must not be called
	}{
		"Connect fails":                   {fault: everyCallOf("connect", fault{err: errRefused})},
		"Connect hangs":                   {fault: everyCallOf("connect", fault{hangs: true})},
		"Pending fails":                   {fault: everyCallOf("pending", fault{err: errRefused})},
		"Pending takes longer than 5 s":   {fault: everyCallOf("pending", fault{delay: 5100 * time.Millisecond})},
		"Pending hangs, an event arrives": {fault: everyCallOf("pending", fault{delay: time.Minute}), announces: true, isReached: true},
		"Pending takes less than 5 s":     {fault: everyCallOf("pending", fault{delay: 4900 * time.Millisecond}), isReached: true},
		"Inhibit fails":                   {fault: everyCallOf("inhibit", fault{err: errRefused}), isReached: true},
	} {
		subtestInBubble(t, name, func(t *testing.T, r *rig) {
			test.fault(r.script)
			r.run()
			if test.announces {
				r.script.announce()
			}
			r.advance(time.Hour)
			var want []string
			if !test.isReached {
				want = []string{"5s HostUnreached"}
			}
			isOther := func(call string) bool { return !strings.HasSuffix(call, " HostUnreached") }
			require.ElementsMatch(t, want, slices.DeleteFunc(r.listenerCalls(), isOther))
		})
	}
}

// Each call of a method of the source returns neither a value nor an error. That counts as a failure, and the call is repeated every
// second: 11 calls from 0 s to 10 s.
func TestANilResultIsAnError(t *testing.T) {
	for method, text := range map[string]string{
		"connect": "the host returned no session", "events": "the session has no channel of events", "inhibit": "the host returned no lock",
	} {
		inBubble(t, func(t *testing.T, r *rig) {
			r.script.returnsNil = method
			r.run()
			r.advance(10 * time.Second)
			require.Equal(t, host.StateTrying, r.host.Status().State)
			require.ErrorContains(t, r.host.Status().Err, text)
			require.InDelta(t, 11, r.script.callCount(method), 1, "it is retried every second")
		})
	}
}

// The context of Connect lasts as long as the session, because some sources close the connection with
// it.
func TestTheConnectionContextLastsAsLongAsTheSession(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.run()
		r.advance(time.Hour)
		firstContext := r.script.sessions[0].ctx
		require.NoError(t, firstContext.Err())
		r.script.loseSession()
		synctest.Wait()
		require.Error(t, firstContext.Err())
	})
}

// The session that Run closes at its end cannot be closed. Run returns the error.
func TestRunReturnsTheErrorOfTheLastClose(t *testing.T) {
	for text, f := range map[string]fault{"refused": {err: errRefused}, "panicked": {panics: true}, "does not return": {hangs: true}} {
		inBubble(t, func(t *testing.T, r *rig) {
			r.script.set(callNumber(2, "close", f)) // of the second session, which is the last one
			r.run()
			r.script.loseSession()
			r.advance(2 * time.Second)
			r.stop()
			err := <-r.ended
			require.ErrorContains(t, err, "failed to close the session with the host: ")
			require.ErrorContains(t, err, text)
			r.ended <- nil // inBubble waits for the result of Run again
		})
	}
}

// A session that was lost cannot be closed. Only the status has the error, and Run does not return it.
func TestRunReturnsNoErrorOfAnEarlierClose(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.script.set(callNumber(1, "close", fault{err: errRefused}))
		r.run()
		r.script.loseSession()
		synctest.Wait()
		require.ErrorIs(t, r.host.Status().Err, errRefused)
		r.advance(2 * time.Second)
		r.stop()
		require.NoError(t, <-r.ended)
		r.ended <- nil // inBubble waits for the result of Run again
	})
}
