package shutdown_test

import (
	"fmt"
	"slices"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kubegrace/kubegrace/shutdown"
	"github.com/kubegrace/kubegrace/shutdown/shutdowntest"
)

// checkInvariants checks what must hold at any time.
func (s *stress) checkInvariants() {
	t := s.t
	s.observeReconnect()
	require.Empty(t, s.allViolations())
	require.NoError(t, s.host.Err())
	if s.connected {
		refuses := s.m.ShutdownStatus() != nil
		require.Equal(t, s.shuttingDown || s.terminatedAll, refuses, "admission is refused")
	}
	if s.shuttingDown && !s.hostEnd.IsZero() && time.Now().After(s.hostEnd) {
		require.Zero(t, s.host.Held(), "locks %v after the end of the host's time", time.Since(s.hostEnd))
	}
}

// observeReconnect updates what the test knows of the shutdown if there is a new session: the
// manager has asked it what is pending.
func (s *stress) observeReconnect() {
	if s.connected || s.pendingCalls() == s.pendingCallsBefore {
		return
	}
	s.connected = true
	switch {
	case s.cannotTellPending:
	case s.pending:
		s.shutdownBegan(s.deadline)
	case !s.triggered:
		s.shuttingDown, s.hostEnd = false, time.Time{}
	}
}

func (s *stress) pendingCalls() (n int) {
	for _, call := range s.host.Calls() {
		if call == "pending" {
			n++
		}
	}
	return n
}

// shutdownBegan updates what the test knows of the shutdown when one is announced or
// triggered. end is the end of the host's time; zero if it is not known.
func (s *stress) shutdownBegan(end time.Time) {
	if !s.shuttingDown {
		s.shuttingDown, s.hostEnd = true, end
		return
	}
	if s.hostEnd.IsZero() || !end.IsZero() && end.Before(s.hostEnd) {
		s.hostEnd = end
	}
}

func podName(i int) string { return fmt.Sprintf("pod-%d", i) }

func (s *stress) addPod() {
	s.mu.Lock()
	defer s.mu.Unlock()
	name := podName(len(s.pods))
	pod := shutdowntest.Pod(name, []int32{0, 0, 1000, topPriority}[s.rng.IntN(4)], int64(s.rng.IntN(40))-5)
	s.listed = append(s.listed, pod)
	how := killEnds
	if s.rng.IntN(2) == 0 {
		how = s.rng.IntN(killWays)
	}
	s.pods[name] = &stressPod{killWay: how}
}

// randomStep does something at random and returns what it was.
func (s *stress) randomStep() string {
	switch s.randomInt(20) {
	case 0, 1, 2:
		event := shutdown.Event{Kind: []shutdown.Kind{"", shutdown.KindReboot}[s.randomInt(2)]}
		if s.chance(2) {
			event.Deadline = time.Now().Add(time.Duration(s.randomInt(60_000)) * time.Millisecond)
		}
		s.host.Announce(event)
		s.pending, s.deadline = true, event.Deadline
		if s.connected {
			end := event.Deadline
			if i := s.m.Inhibitor(); end.IsZero() && i.Requested > 0 {
				end = time.Now().Add(i.Granted)
			}
			s.shutdownBegan(end)
		}
		return "announced " + time.Until(event.Deadline).String()
	case 3, 4, 5:
		s.host.Cancel()
		if s.pending = false; s.connected && !s.triggered {
			s.shuttingDown, s.hostEnd = false, time.Time{}
		}
		return "cancelled"
	case 6:
		synctest.Wait() // until the manager has received the host's events
		event := shutdown.Event{}
		if s.chance(2) {
			event.Deadline = time.Now().Add(time.Duration(s.randomInt(60_000)) * time.Millisecond)
		}
		require.NoError(s.t, s.m.Trigger(event))
		require.ErrorIs(s.t, s.m.ShutdownStatus(), shutdown.ErrNodeShuttingDown)
		s.triggered = true
		s.shutdownBegan(event.Deadline)
		return "triggered " + time.Until(event.Deadline).String()
	case 7:
		synctest.Wait()
		require.NoError(s.t, s.m.Trigger(shutdown.Event{Cancelled: true}))
		s.triggered, s.shuttingDown, s.hostEnd = false, false, time.Time{}
		return "trigger taken back"
	case 8:
		s.pendingCallsBefore = s.pendingCalls()
		s.host.Lose()
		s.connected = false
		return "session lost"
	case 9:
		if s.chance(3) {
			return s.terminateAll()
		}
		return "nothing"
	case 10, 11:
		s.addPod()
		return "a pod appears"
	case 12:
		s.mu.Lock()
		defer s.mu.Unlock()
		if len(s.listed) > 0 {
			i := s.rng.IntN(len(s.listed))
			s.listed = slices.Delete(slices.Clone(s.listed), i, i+1)
		}
		return "a pod goes"
	default:
		d := time.Duration(s.randomInt(8000)) * time.Millisecond
		if s.chance(8) {
			d *= 10
		}
		<-time.After(d)
		synctest.Wait()
		s.observeReconnect()
		return "waited " + d.String()
	}
}

func (s *stress) terminateAll() string {
	s.terminatedAll = true
	done := make(chan struct{})
	s.terminations = append(s.terminations, done)
	t := s.t
	go func() {
		defer close(done)
		report, err := s.m.TerminateAll(s.ctx)
		s.checkReport(report)
		if err != nil && err.Error() == "" {
			t.Error("an error without a text")
		}
	}()
	return "all are terminated"
}
