//go:build go1.25

package shutdown_test

import (
	"fmt"
	"slices"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kubegrace/kubegrace/internal/times"
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
		require.Equal(t, s.shuttingDown() || s.terminatedAll, refuses, "admission is refused")
		for _, pod := range s.beingKilled() {
			require.False(t, s.m.Admit(pod).Admit, "%s is being killed", pod.Name)
		}
	}
	if s.dismissed && time.Now().Before(s.keptUntil) {
		require.NotZero(t, s.host.Held(), "the lock of a dismissed shutdown")
	}
	if !s.hostEnd.IsZero() && time.Now().After(s.hostEnd) {
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
	case !s.pending:
		s.hostCancelled()
	case s.dismissed, !s.deadline.IsZero() && !time.Now().Before(s.deadline): // it does not come back
	default:
		s.shutdownAnnounced(byHost, s.deadline)
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

// byHost is the announcer that is no Origin of Trigger.
const byHost = "the host"

func (s *stress) shuttingDown() bool { return len(s.announced) > 0 }

// shutdownAnnounced updates what the test knows of the shutdown when somebody announces it. end is
// the end of the host's time; zero if it is not known. It only moves earlier, unless the host was let
// go before and somebody else announces the shutdown; the test does not know which, and takes the
// later one.
func (s *stress) shutdownAnnounced(by string, end time.Time) {
	again := s.shuttingDown() && !s.announced[by]
	if now := time.Now(); s.dismissed && now.Before(s.goesAt) && (end.IsZero() || s.goesAt.Before(end)) {
		end = s.goesAt // the host goes all the same
	}
	if !s.shuttingDown() {
		s.goesAt = time.Time{}
		s.hostEnd, s.keptUntil = time.Time{}, time.Now().Add(s.leastTime)
	}
	if left := time.Until(end); !end.IsZero() {
		s.keptUntil = times.Earlier(s.keptUntil, time.Now().Add(max(left*8/10, 0)))
	}
	if s.dismissed, s.announced[by] = false, true; by == byHost && !end.IsZero() && (s.goesAt.IsZero() || end.Before(s.goesAt)) {
		s.goesAt = end
	}
	switch {
	case again && (end.IsZero() || s.hostEnd.IsZero()):
		s.hostEnd = time.Time{}
	case again && end.After(s.hostEnd), s.hostEnd.IsZero(), !end.IsZero() && end.Before(s.hostEnd):
		s.hostEnd = end
	}
}

// hostCancelled updates what the test knows when the host has nothing pending any more.
func (s *stress) hostCancelled() {
	if delete(s.announced, byHost); !s.shuttingDown() {
		s.shutdownEnded()
	}
}

// triggerCancelled updates what the test knows when Trigger takes back the announcement of an
// origin, or all of them.
func (s *stress) triggerCancelled(origin string) {
	switch delete(s.announced, origin); {
	case origin == "" && s.announced[byHost]: // it keeps the lock until the end of its time
		clear(s.announced)
		if s.dismissed = true; s.host.Held() == 0 {
			s.keptUntil = time.Time{}
		}
	case origin == "":
		clear(s.announced)
		fallthrough
	default:
		if !s.shuttingDown() && !s.dismissed {
			s.shutdownEnded()
		}
	}
}

func (s *stress) shutdownEnded() {
	clear(s.announced)
	s.dismissed, s.hostEnd = false, time.Time{}
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
		if !s.connected {
			return "nothing" // what the next session finds pending depends on when it asks
		}
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
			s.shutdownAnnounced(byHost, end)
		}
		return "announced " + time.Until(event.Deadline).String()
	case 3, 4, 5:
		s.host.Cancel()
		if s.pending = false; s.connected {
			s.hostCancelled()
		}
		return "cancelled"
	case 6:
		synctest.Wait() // until the manager has received the host's events
		s.observeReconnect()
		event := shutdown.Event{Origin: s.randomOrigin()}
		if s.chance(2) {
			event.Deadline = time.Now().Add(time.Duration(s.randomInt(60_000)) * time.Millisecond)
		}
		require.NoError(s.t, s.m.Trigger(event))
		require.ErrorIs(s.t, s.m.ShutdownStatus(), shutdown.ErrNodeShuttingDown)
		s.shutdownAnnounced(event.Origin, event.Deadline)
		return "triggered by " + event.Origin + " " + time.Until(event.Deadline).String()
	case 7:
		synctest.Wait()
		s.observeReconnect()
		origin := s.randomOrigin()
		require.NoError(s.t, s.m.Trigger(shutdown.Event{Cancelled: true, Origin: origin}))
		s.triggerCancelled(origin)
		return "trigger taken back by " + origin
	case 8:
		if s.pending && !s.deadline.IsZero() {
			return "nothing"
		}
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

// randomOrigin returns an Origin of Trigger.
func (s *stress) randomOrigin() string { return []string{"", "", "notice"}[s.randomInt(3)] }

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
