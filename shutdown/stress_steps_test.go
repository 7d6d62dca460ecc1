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

// look checks what must be so at any time.
func (s *stress) look() {
	t := s.t
	s.reconnect()
	require.Empty(t, s.blamed())
	require.NoError(t, s.host.Err())
	if s.connected {
		refuses := s.m.ShutdownStatus() != nil
		require.Equal(t, s.shutting || s.final, refuses, "admission is refused")
	}
	if s.shutting && !s.end.IsZero() && time.Now().After(s.end) {
		require.Zero(t, s.host.Held(), "locks %v after the end of the host's time", time.Since(s.end))
	}
}

// reconnect takes note of a new session, which reads what is pending.
func (s *stress) reconnect() {
	if s.connected || s.questions() == s.asked {
		return
	}
	s.connected = true
	switch {
	case s.blind:
	case s.pending:
		s.begin(s.deadline)
	case !s.triggered:
		s.shutting, s.end = false, time.Time{}
	}
}

func (s *stress) questions() (n int) {
	for _, call := range s.host.Calls() {
		if call == "pending" {
			n++
		}
	}
	return n
}

// begin takes note of a shutdown; zero: its end is not known.
func (s *stress) begin(end time.Time) {
	if !s.shutting {
		s.shutting, s.end = true, end
		return
	}
	if s.end.IsZero() || !end.IsZero() && end.Before(s.end) {
		s.end = end
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
	s.pods[name] = &stressPod{how: how}
}

// step does something.
func (s *stress) step() string {
	switch s.pick(20) {
	case 0, 1, 2:
		event := shutdown.Event{Kind: []shutdown.Kind{"", shutdown.KindReboot}[s.pick(2)]}
		if s.chance(2) {
			event.Deadline = time.Now().Add(time.Duration(s.pick(60_000)) * time.Millisecond)
		}
		s.host.Announce(event)
		s.pending, s.deadline = true, event.Deadline
		if s.connected {
			end := event.Deadline
			if i := s.m.Inhibitor(); end.IsZero() && i.Requested > 0 {
				end = time.Now().Add(i.Granted)
			}
			s.begin(end)
		}
		return "announced " + time.Until(event.Deadline).String()
	case 3, 4, 5:
		s.host.Cancel()
		if s.pending = false; s.connected && !s.triggered {
			s.shutting, s.end = false, time.Time{}
		}
		return "cancelled"
	case 6:
		synctest.Wait() // what the host has said comes first
		event := shutdown.Event{}
		if s.chance(2) {
			event.Deadline = time.Now().Add(time.Duration(s.pick(60_000)) * time.Millisecond)
		}
		require.NoError(s.t, s.m.Trigger(event))
		require.ErrorIs(s.t, s.m.ShutdownStatus(), shutdown.ErrNodeShuttingDown)
		s.triggered = true
		s.begin(event.Deadline)
		return "triggered " + time.Until(event.Deadline).String()
	case 7:
		synctest.Wait()
		require.NoError(s.t, s.m.Trigger(shutdown.Event{Cancelled: true}))
		s.triggered, s.shutting, s.end = false, false, time.Time{}
		return "trigger taken back"
	case 8:
		s.asked = s.questions()
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
		d := time.Duration(s.pick(8000)) * time.Millisecond
		if s.chance(8) {
			d *= 10
		}
		<-time.After(d)
		synctest.Wait()
		s.reconnect()
		return "waited " + d.String()
	}
}

func (s *stress) terminateAll() string {
	s.final = true
	done := make(chan struct{})
	s.all = append(s.all, done)
	t := s.t
	go func() {
		defer close(done)
		report, err := s.m.TerminateAll(s.ctx)
		s.check(report)
		if err != nil && err.Error() == "" {
			t.Error("an error without a word")
		}
	}()
	return "all are terminated"
}
