//go:build go1.25

package host_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/stretchr/testify/require"

	"github.com/kubegrace/kubegrace/shutdown/internal/host"
	"github.com/kubegrace/kubegrace/shutdown/source"
)

// A session subscribes to the events, reads the pending shutdown, requests the delay, and then takes the lock, so that no
// shutdown is missed. The listener is told at 0 s that none is pending and that the host knows this ("pending false true"), and
// then that the host was tried.
func TestASessionSubscribesBeforeItTakesTheLock(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.run()
		require.Equal(t, []string{"connect", "events", "pending", "delay", "inhibit"}, r.script.allCalls())
		require.Equal(t, []string{"0s pending false true", "0s tried"}, r.allReceived())
		require.Equal(t, host.Status{State: host.StateHeld, Requested: requestedDelay, Granted: requestedDelay, Answered: true}, r.host.Status())
		require.True(t, r.host.Status().Held())
		require.False(t, r.host.Adopted())
		granted, known := r.host.Granted()
		require.True(t, known)
		require.Equal(t, requestedDelay, granted)
		r.end()
		require.ElementsMatch(t, []string{"release", "close"}, r.script.allCalls()[5:])
	})
}

// If the host's pending event is Cancelled, no shutdown is pending. If the host cannot know, its event does not count either.
// The rig records "TIME pending IS_PENDING IS_KNOWN".
func TestACancelledPendingEventIsNone(t *testing.T) {
	for want, change := range map[string]func(*script){
		"0s pending false true":  func(s *script) { s.pending = &source.Event{Cancelled: true} },
		"0s pending true true":   func(s *script) { s.pending = &source.Event{} },
		"0s pending false false": func(s *script) { s.pendingUnknown, s.pending = true, &source.Event{} },
	} {
		inBubble(t, func(t *testing.T, r *rig) {
			change(r.script)
			r.run()
			require.Equal(t, want, r.allReceived()[0])
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
			r.script.set((*script).lose)
			synctest.Wait()
			r.requireLock(host.StateHeld, 1)
			require.ErrorContains(t, r.host.Status().Err, "the host's session was lost")
			r.advance(time.Second)
			r.requireLock(host.StateHeld, 1)
			require.NoError(t, r.host.Status().Err)
		}
		calls := r.script.allCalls()
		require.Equal(t, []string{"close", "connect", "events", "pending", "delay", "inhibit", "release"}, calls[len(calls)-7:])
		require.Len(t, r.log.lines(), 1, "each session is lost at once, for the same reason")
		r.advance(time.Minute)
		r.script.set((*script).lose)
		synctest.Wait()
		require.Len(t, r.log.lines(), 2, "a session that lasted is lost")
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
		nth("connect", 1, fault{err: errRefused})(r.script)
		r.run()
		r.advance(2 * time.Second)
		r.requireLock(host.StateHeld, 1)
		r.script.set(func(s *script) { s.limit = 27 * time.Second })
		r.advance(time.Minute)
		require.Equal(t, 27*time.Second, r.host.Status().Granted)
		r.script.set((*script).lose)
		r.advance(2 * time.Second)
		require.Equal(t, 3, r.script.callCount("connect"), "refused, lost, and the one in use")
		close(isRead)
	})
}

// The session is lost during a shutdown. The lock is kept, because the host grants no new lock in a shutdown, and the
// status says that the lock may be lost. It says so until the shutdown is cancelled, when a new lock is taken, or until
// the lock is released.
func TestASessionLostInAShutdownKeepsTheLock(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.run()
		r.script.announce()
		synctest.Wait()
		require.NoError(t, r.host.Status().Err)
		r.script.set((*script).lose)
		r.advance(time.Minute)
		r.requireLock(host.StateHeld, 1)
		require.Equal(t, 1, r.script.callCount("inhibit"))
		require.ErrorContains(t, r.host.Status().Err, "the host's session was lost")
		r.script.cancel()
		synctest.Wait()
		r.requireLock(host.StateHeld, 1)
		require.Equal(t, 2, r.script.callCount("inhibit"))
		require.NoError(t, r.host.Status().Err)

		r.script.announce()
		synctest.Wait()
		r.script.set((*script).lose)
		r.advance(time.Minute)
		require.Error(t, r.host.Status().Err)
		require.NoError(t, r.hold.Release()(t.Context()))
		require.NoError(t, r.host.Status().Err, "the lock cannot be lost any more")
	})
}

// A shutdown is cancelled while the session is lost, so that no event says so. The next session reads that
// none is pending ("1s pending false true": false for none, true for known), and a new lock is taken.
func TestACancellationDuringAnOutageIsNoticed(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.run()
		r.script.announce()
		synctest.Wait()
		r.script.set(func(s *script) { s.lose(); s.pending = nil })
		r.advance(2 * time.Second)
		require.Equal(t, []string{"0s pending false true", "0s tried", "0s event true", "1s pending false true"}, r.allReceived())
		r.requireLock(host.StateHeld, 1)
		require.Equal(t, 2, r.script.callCount("inhibit"))
	})
}

// Pending takes 3 s, and an event arrives just before it returns. The event is newer than the result of Pending, so the result
// is dropped, even if both arrive at the same moment. HostTried is called after 2 s, because the call takes that long.
func TestAnEventIsNewerThanPending(t *testing.T) {
	for range 100 { // the event and the result arrive in random order
		inBubble(t, func(t *testing.T, r *rig) {
			always("pending", fault{delay: 3 * time.Second, after: r.script.announce})(r.script)
			r.run()
			r.advance(time.Minute)
			require.Equal(t, []string{"2s tried", "3s event true"}, r.allReceived())
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
		r.script.set((*script).lose)
		synctest.Wait()
		require.Equal(t, []string{"0s event true", "0s event false", "0s event true"}, r.allReceived()[2:], "after Pending's answer and HostTried")
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
		require.Equal(t, []string{"0s tried", "2s pending false true"}, r.allReceived())
	})
}

// The agent's start waits for HostTried. It is called after 2 s (5 s for RequestDelay) even if a call to the host does
// not return. The lock is taken once the host answers.
func TestAnUnresponsiveHostDoesNotDelayTheStart(t *testing.T) {
	for method, tried := range map[string]time.Duration{
		"adopt": 2 * time.Second, "connect": 2 * time.Second, "events": 2 * time.Second, "pending": 2 * time.Second, "delay": 5 * time.Second, "inhibit": 2 * time.Second,
	} {
		t.Run(method, func(t *testing.T) {
			inBubble(t, func(t *testing.T, r *rig) {
				r.useAdopter(withoutLock)
				always(method, fault{delay: time.Hour, endsWithContext: true})(r.script)
				r.run()
				r.advance(tried - time.Millisecond)
				require.NotContains(t, r.allReceived(), tried.String()+" tried")
				r.advance(time.Millisecond)
				require.Contains(t, r.allReceived(), tried.String()+" tried")
				if method != "delay" {
					require.ErrorContains(t, r.host.Status().Err, "the host does not answer")
				}
				r.script.set(func(s *script) { s.faults = nil })
				r.advance(15 * time.Second)
				r.requireLock(host.StateHeld, 1)
				require.NoError(t, r.host.Status().Err)
			})
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
		"Connect fails":                   {fault: always("connect", fault{err: errRefused})},
		"Connect hangs":                   {fault: always("connect", fault{hangs: true})},
		"Pending fails":                   {fault: always("pending", fault{err: errRefused})},
		"Pending takes longer than 5 s":   {fault: always("pending", fault{delay: 5100 * time.Millisecond})},
		"Pending hangs, an event arrives": {fault: always("pending", fault{delay: time.Minute}), announces: true, isReached: true},
		"Pending takes less than 5 s":     {fault: always("pending", fault{delay: 4900 * time.Millisecond}), isReached: true},
		"Inhibit fails":                   {fault: always("inhibit", fault{err: errRefused}), isReached: true},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, r *rig) {
				test.fault(r.script)
				r.run()
				if test.announces {
					r.script.announce()
				}
				r.advance(time.Hour)
				count := 0
				for _, heard := range r.allReceived() {
					if heard == "5s unreached" {
						count++
					}
				}
				require.Equal(t, test.isReached, count == 0, r.allReceived())
				require.LessOrEqual(t, count, 1)
			})
		})
	}
}

// A call of the source returns neither a value nor an error. It counts as a failure, and is repeated every second: 11 calls
// from 0 s to 10 s.
func TestANilResultIsAnError(t *testing.T) {
	for method, text := range map[string]string{
		"connect": "the host returned no session", "events": "the session has no channel of events", "inhibit": "the host returned no lock",
	} {
		inBubble(t, func(t *testing.T, r *rig) {
			r.script.returnsNil = method
			r.run()
			r.advance(10 * time.Second)
			r.requireLock(host.StateTrying, 0)
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
		r.script.set((*script).lose)
		synctest.Wait()
		require.Error(t, firstContext.Err())
	})
}

// Run returns an error if the session that it closes at the end cannot be closed. If an earlier session could not be
// closed, only the status has the error.
func TestRunReturnsTheErrorOfTheLastClose(t *testing.T) {
	for text, f := range map[string]fault{"refused": {err: errRefused}, "panicked": {panics: true}, "does not return": {hangs: true}} {
		inBubble(t, func(t *testing.T, r *rig) {
			nth("close", 2, f)(r.script) // of the second session, which is the last one
			r.run()
			r.script.set((*script).lose)
			r.advance(2 * time.Second)
			r.stop()
			err := <-r.ended
			require.ErrorContains(t, err, "failed to close the session with the host: ")
			require.ErrorContains(t, err, text)
			r.ended <- nil // inBubble waits for the result of Run again
		})
	}
	inBubble(t, func(t *testing.T, r *rig) {
		nth("close", 1, fault{err: errRefused})(r.script)
		r.run()
		r.script.set((*script).lose)
		synctest.Wait()
		require.ErrorIs(t, r.host.Status().Err, errRefused)
		r.advance(2 * time.Second)
		r.stop()
		require.NoError(t, <-r.ended)
		r.ended <- nil
	})
}
