//go:build go1.25

package host_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"

	"github.com/kubegrace/kubegrace/metrics"
	"github.com/kubegrace/kubegrace/shutdown/internal/host"
	"github.com/kubegrace/kubegrace/shutdown/source"
)

// A session subscribes, reads the pending shutdown, requests the delay, and then takes the lock: no
// event is missed.
func TestWatchBeforeHolding(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.run()
		require.Equal(t, []string{"connect", "events", "pending", "delay", "inhibit"}, r.script.called())
		require.Equal(t, []string{"0s pending false true", "0s tried"}, r.allHeard())
		require.Equal(t, host.Status{State: host.StateHeld, Requested: wish, Granted: wish}, r.host.Status())
		require.True(t, r.host.Status().Held())
		require.False(t, r.host.Adopted())
		granted, known := r.host.Granted()
		require.True(t, known)
		require.Equal(t, wish, granted)
		r.end()
		require.ElementsMatch(t, []string{"release", "close"}, r.script.called()[5:])
	})
}

// Before Run nothing is known and nothing held, and a Hold works.
func TestBeforeRun(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		require.Equal(t, host.Status{State: host.StateTrying}, r.host.Status())
		_, known := r.host.Granted()
		require.False(t, known)
		hold := r.host.Suspend()
		began := time.Now()
		hold.AwaitAdoption(t.Context(), began.Add(time.Hour))
		require.Equal(t, began, time.Now(), "there is no session")
		require.False(t, hold.Waits())
		require.NoError(t, hold.Release()(t.Context()))
		require.Equal(t, host.StateReleased, r.host.Status().State)
		hold.End()
		require.Equal(t, host.StateTrying, r.host.Status().State)
		require.NoError(t, r.host.Close(t.Context()))
		require.Empty(t, r.script.called())
	})
}

// A host that grants no lock during a shutdown is asked once, and holds nothing.
func TestPendingAtStart(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.script.pending = &source.Event{Kind: source.KindReboot}
		r.run()
		r.advance(time.Minute)
		require.Equal(t, []string{"connect", "events", "pending", "inhibit"}, r.script.called())
		require.ErrorIs(t, r.host.Status().Err, errInProgress)
		r.holding(host.StateReleased, 0)
		require.False(t, r.hold.Waits())
	})
}

// An answer that is a cancelled event is none, and neither is one of a host that cannot tell.
func TestAnswersOfPending(t *testing.T) {
	for want, change := range map[string]func(*script){
		"0s pending false true":  func(s *script) { s.pending = &source.Event{Cancelled: true} },
		"0s pending true true":   func(s *script) { s.pending = &source.Event{} },
		"0s pending false false": func(s *script) { s.unknown, s.pending = true, &source.Event{} },
	} {
		inBubble(t, func(t *testing.T, r *rig) {
			change(r.script)
			r.run()
			require.Equal(t, want, r.allHeard()[0])
		})
	}
}

// Each refusal of the host, even the first, is followed by another attempt, for ever. In the end
// there is one lock.
func TestRefusals(t *testing.T) {
	for _, method := range []string{"connect", "pending", "delay", "inhibit"} {
		t.Run(method, func(t *testing.T) {
			inBubble(t, func(t *testing.T, r *rig) {
				always(method, fault{err: errRefused})(r.script)
				r.run()
				require.Contains(t, r.allHeard(), "0s tried")
				r.advance(10 * time.Minute)
				require.ErrorIs(t, r.host.Status().Err, errRefused)
				require.InDelta(t, 600, r.script.number(method), 5, "one each second")
				require.Equal(t, method == "delay", r.host.Status().Held(), "a host that grants no delay is held all the same")
				r.script.set(func(s *script) { s.faults = nil })
				r.advance(time.Second)
				r.holding(host.StateHeld, 1)
				require.NoError(t, r.host.Status().Err)
			})
		})
	}
}

// After the loss of a session there is one new lock, and the old one is closed after it was taken.
// Until then the status says that the lock may be lost.
func TestLostSession(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.run()
		for range 1000 {
			r.script.set((*script).lose)
			synctest.Wait()
			r.holding(host.StateHeld, 1)
			require.ErrorContains(t, r.host.Status().Err, "the host's session was lost")
			r.advance(time.Second)
			r.holding(host.StateHeld, 1)
			require.NoError(t, r.host.Status().Err)
		}
		calls := r.script.called()
		require.Equal(t, []string{"close", "connect", "events", "pending", "delay", "inhibit", "release"}, calls[len(calls)-7:])
	})
}

// A session that is lost during a shutdown costs no lock. No new one can be taken, so the status
// goes on saying that the lock may be lost, until the shutdown is over.
func TestLostSessionInAShutdown(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.run()
		r.script.announce()
		synctest.Wait()
		require.NoError(t, r.host.Status().Err)
		r.script.set((*script).lose)
		r.advance(time.Minute)
		r.holding(host.StateHeld, 1)
		require.Equal(t, 1, r.script.number("inhibit"))
		require.ErrorContains(t, r.host.Status().Err, "the host's session was lost")
		r.script.cancel()
		synctest.Wait()
		r.holding(host.StateHeld, 1)
		require.Equal(t, 2, r.script.number("inhibit"))
		require.NoError(t, r.host.Status().Err)

		r.script.announce()
		synctest.Wait()
		r.script.set((*script).lose)
		r.advance(time.Minute)
		require.Error(t, r.host.Status().Err)
		require.NoError(t, r.hold.Release()(t.Context()))
		require.NoError(t, r.host.Status().Err, "no lock is in doubt any more")
	})
}

// A host that was away for long is held again within a second.
func TestHostThatWasAway(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.run()
		r.script.set(always("connect", fault{err: errRefused}))
		r.script.set((*script).lose)
		r.advance(2*time.Minute + 300*time.Millisecond)
		require.ErrorIs(t, r.host.Status().Err, errRefused)
		r.holding(host.StateHeld, 1)
		r.script.set(func(s *script) { s.faults = nil })
		r.advance(time.Second)
		require.NoError(t, r.host.Status().Err)
		r.holding(host.StateHeld, 1)
	})
}

// A shutdown that was cancelled while the session was lost is over.
func TestCancelledBehindALostSession(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.run()
		r.script.announce()
		synctest.Wait()
		r.script.set(func(s *script) { s.lose(); s.pending = nil })
		r.advance(2 * time.Second)
		require.Equal(t, []string{"0s pending false true", "0s tried", "0s event true", "1s pending false true"}, r.allHeard())
		r.holding(host.StateHeld, 1)
		require.Equal(t, 2, r.script.number("inhibit"))
	})
}

// An event is newer than the answer of Pending in the same session, also if both come at once.
func TestEventOvertakesPending(t *testing.T) {
	for range 100 { // of two things that are there, either may be seen first
		inBubble(t, func(t *testing.T, r *rig) {
			always("pending", fault{takes: 3 * time.Second, then: r.script.announce})(r.script)
			r.run()
			r.advance(time.Minute)
			require.Equal(t, []string{"2s tried", "3s event true"}, r.allHeard())
		})
	}
}

// All events are told in order, those before the loss of the session too.
func TestEventsInOrder(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.run()
		r.script.announce()
		r.script.cancel()
		r.script.announce()
		r.script.set((*script).lose)
		synctest.Wait()
		require.Equal(t, []string{"0s event true", "0s event false", "0s event true"}, r.allHeard()[2:])
	})
}

// The events of a session whose Pending has failed are dropped, and a Close that waits until they
// are read does not wait for ever.
func TestEventsOfASessionThatIsOver(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.script.faults = func(method string, n int) fault {
			switch {
			case method == "pending" && n == 1:
				return fault{err: errRefused}
			case method == "close":
				return fault{takes: time.Second}
			}
			return fault{}
		}
		r.run()
		r.script.set(func(s *script) {
			for range 1000 { // more than fit
				s.sessions[0].events <- source.Event{}
			}
		})
		r.advance(10 * time.Second)
		require.Equal(t, []string{"0s tried", "2s pending false true"}, r.allHeard())
	})
}

// A host that does not answer does not delay the agent's start, and is held once it answers.
func TestSilentHost(t *testing.T) {
	for method, tried := range map[string]time.Duration{
		"adopt": 2 * time.Second, "connect": 2 * time.Second, "events": 2 * time.Second, "pending": 2 * time.Second, "delay": 5 * time.Second, "inhibit": 2 * time.Second,
	} {
		t.Run(method, func(t *testing.T) {
			inBubble(t, func(t *testing.T, r *rig) {
				r.adopts(false)
				always(method, fault{takes: time.Hour, heeds: true})(r.script)
				r.run()
				r.advance(tried - time.Millisecond)
				require.NotContains(t, r.allHeard(), tried.String()+" tried")
				r.advance(time.Millisecond)
				require.Contains(t, r.allHeard(), tried.String()+" tried")
				if method != "delay" {
					require.ErrorContains(t, r.host.Status().Err, "the host does not answer")
				}
				r.script.set(func(s *script) { s.faults = nil })
				r.advance(15 * time.Second)
				r.holding(host.StateHeld, 1)
				require.NoError(t, r.host.Status().Err)
			})
		})
	}
}

// The first attempt waits for each answer on its own.
func TestSlowHost(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.script.faults = func(method string, _ int) fault {
			return map[string]fault{
				"connect": {takes: 1900 * time.Millisecond}, "pending": {takes: 1900 * time.Millisecond},
				"delay": {takes: 4900 * time.Millisecond}, "inhibit": {takes: 1900 * time.Millisecond},
			}[method]
		}
		r.run()
		r.advance(time.Minute)
		require.Equal(t, []string{"3.8s pending false true", "10.6s tried"}, r.allHeard())
		r.script.set(func(s *script) { s.faults = nil })
	})
}

// A host that no session has reached for 5 s is said to be unreached, once. An event reaches it.
func TestUnreached(t *testing.T) {
	for name, test := range map[string]struct {
		fault   func(*script)
		event   bool
		reached bool
	}{
		"no bus":              {fault: always("connect", fault{err: errRefused})},
		"silent":              {fault: always("connect", fault{hangs: true})},
		"no answer":           {fault: always("pending", fault{err: errRefused})},
		"a slow answer":       {fault: always("pending", fault{takes: 5100 * time.Millisecond})},
		"an event":            {fault: always("pending", fault{takes: time.Minute}), event: true, reached: true},
		"an answer in time":   {fault: always("pending", fault{takes: 4900 * time.Millisecond}), reached: true},
		"a lock that is late": {fault: always("inhibit", fault{err: errRefused}), reached: true},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, r *rig) {
				test.fault(r.script)
				r.run()
				if test.event {
					r.script.announce()
				}
				r.advance(time.Hour)
				count := 0
				for _, heard := range r.allHeard() {
					if heard == "5s unreached" {
						count++
					}
				}
				require.Equal(t, test.reached, count == 0, r.allHeard())
				require.LessOrEqual(t, count, 1)
			})
		})
	}
}

// A source that gives neither what it is asked for nor an error is one that has failed.
func TestNothingIsGiven(t *testing.T) {
	for method, text := range map[string]string{"connect": "the host has given no session", "inhibit": "the host has given no lock"} {
		inBubble(t, func(t *testing.T, r *rig) {
			r.script.nothing = method
			r.run()
			r.advance(10 * time.Second)
			r.holding(host.StateTrying, 0)
			require.ErrorContains(t, r.host.Status().Err, text)
			require.InDelta(t, 11, r.script.number(method), 1)
		})
	}
}

// The context of Connect lives as long as the session, because some sources tie a connection to it.
func TestContextOfTheConnection(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.run()
		r.advance(time.Hour)
		first := r.script.sessions[0].life
		require.NoError(t, first.Err())
		r.script.set((*script).lose)
		synctest.Wait()
		require.Error(t, first.Err())
	})
}

// Run ends with the error of closing the last session, and of no other.
func TestErrorOfRun(t *testing.T) {
	for text, f := range map[string]fault{"refused": {err: errRefused}, "panicked": {panics: true}, "does not return": {hangs: true}} {
		inBubble(t, func(t *testing.T, r *rig) {
			nth("close", 2, f)(r.script)
			r.run()
			r.script.set((*script).lose)
			r.advance(2 * time.Second)
			r.stop()
			err := <-r.ended
			require.ErrorContains(t, err, "failed to close the session with the host: ")
			require.ErrorContains(t, err, text)
			r.ended <- nil
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

// The metrics show whether a lock is held, and the delay.
func TestMetrics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		registry := prometheus.NewRegistry()
		collectors, err := metrics.NewShutdown(registry, metrics.Options{})
		require.NoError(t, err)
		r := newRig(t)
		r.script.limit = 27 * time.Second
		options := r.options(r.script)
		options.Metrics = collectors
		r.host = host.New(options)
		r.run()
		hold := r.host.Suspend()
		held := func(want int) {
			t.Helper()
			require.NoError(t, testutil.GatherAndCompare(registry, strings.NewReader(fmt.Sprintf(`
# HELP kubelet_graceful_shutdown_delay_seconds Delay of the host's shutdown in seconds, as requested and as granted
# TYPE kubelet_graceful_shutdown_delay_seconds gauge
kubelet_graceful_shutdown_delay_seconds{kind="granted"} 27
kubelet_graceful_shutdown_delay_seconds{kind="requested"} 30
# HELP kubelet_graceful_shutdown_inhibitor_held Whether the inhibitor lock is held (1) or not (0)
# TYPE kubelet_graceful_shutdown_inhibitor_held gauge
kubelet_graceful_shutdown_inhibitor_held %d
`, want)), "kubelet_graceful_shutdown_delay_seconds", "kubelet_graceful_shutdown_inhibitor_held"))
		}
		held(1)
		require.NoError(t, hold.Release()(t.Context()))
		held(0)
		r.end()
	})
}
