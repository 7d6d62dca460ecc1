package shutdown_test

import (
	"fmt"
	"slices"
	"strings"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"k8s.io/klog/v2"

	"github.com/kubegrace/kubegrace/internal/staticpod"
	"github.com/kubegrace/kubegrace/shutdown"
	"github.com/kubegrace/kubegrace/shutdown/shutdowntest"
)

// step does something to the node.
func (s *soak) step() string {
	switch s.pick(22) {
	case 0, 1, 2, 3:
		return s.announce()
	case 4, 5:
		s.host.Cancel()
		return "cancelled"
	case 6:
		s.host.Lose()
		return "reconnects"
	case 7, 8:
		s.mu.Lock()
		defer s.mu.Unlock()
		s.server = serverState(s.rng.IntN(int(serverStates)))
		return fmt.Sprint("server ", s.server)
	case 9:
		from := s.upTo(20 * time.Second)
		s.runtime().Away(from, from+s.upTo(5*time.Second)+time.Millisecond)
		return "runtime is away"
	case 10, 11:
		return s.listAgain()
	case 12:
		return s.deletes()
	case 13:
		return s.startAgain()
	case 14, 15:
		if s.restarts {
			return s.restart()
		}
		return "nothing"
	default:
		d := s.upTo(12 * time.Second)
		<-time.After(d)
		return "waited " + d.String()
	}
}

// announce has the host shut down. Where that is all that it says, and no agent was restarted
// in the middle, pods have what their buckets have.
func (s *soak) announce() string {
	event := shutdown.Event{Kind: []shutdown.Kind{"", shutdown.KindReboot}[s.pick(2)]}
	text := "announced"
	s.mu.Lock()
	if s.rng.IntN(8) == 0 {
		event.Deadline = time.Now().Add(time.Duration(s.rng.IntN(40_000)) * time.Millisecond)
		s.full = false
		text += " for " + time.Until(event.Deadline).String()
	}
	s.mu.Unlock()
	s.host.Announce(event)
	return text
}

// some gives the UID of a pod that is listed; "": there is none.
func (s *soak) some() types.UID {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.listed) == 0 {
		return ""
	}
	return s.listed[s.rng.IntN(len(s.listed))].UID
}

// listAgain changes the list of pods.
func (s *soak) listAgain() string {
	uid := s.some()
	switch {
	case uid == "" || s.pick(3) == 0:
		return "list: " + s.addPod("").Name + " appears"
	case s.pick(2) == 0:
		s.drop(uid)
		for _, ended := range s.ended() {
			s.drop(ended.pod.UID)
		}
		return fmt.Sprint("list: ", uid, " vanishes, and what has ended")
	default:
		s.mu.Lock()
		name := s.pods[uid].pod.Name
		s.mu.Unlock()
		s.drop(uid)
		return fmt.Sprint("list: ", uid, " comes back as ", s.addPod(name).UID)
	}
}

// addPod adds a pod. One that comes too late for its bucket has what the last one has.
func (s *soak) addPod(name string) *v1.Pod {
	pod, late := s.newPod(name, ""), s.m.ShutdownStatus() != nil
	s.mu.Lock()
	defer s.mu.Unlock()
	if p := s.pods[pod.UID]; late {
		p.atLeast = min(p.atLeast, 10)
	}
	return pod
}

// deletes has the agent end a pod because somebody has deleted it.
func (s *soak) deletes() string {
	uid := s.some()
	if uid == "" {
		return "nothing"
	}
	seconds := int64(1 + s.pick(30))
	pod := s.delete(uid, seconds)
	killer, ctx := s.killer, klog.NewContext(s.t.Context(), klog.Logger{})
	s.deletions.Go(func() {
		_, _ = killer(ctx, pod, shutdown.KillRequest{GracePeriodSeconds: seconds}) // an agent that ends leaves it
	})
	return fmt.Sprint("deleted ", uid, " with ", seconds)
}

// ended are the pods that have ended, in an order that can be repeated.
func (s *soak) ended() []*soakPod {
	s.mu.Lock()
	defer s.mu.Unlock()
	var ended []*soakPod
	for _, p := range s.pods {
		if !p.ended.IsZero() && p.running == 0 {
			ended = append(ended, p)
		}
	}
	slices.SortFunc(ended, func(a, b *soakPod) int { return strings.Compare(string(a.pod.UID), string(b.pod.UID)) })
	return ended
}

// startAgain starts static pods that have ended, if the agent may: they keep their UIDs.
func (s *soak) startAgain() string {
	synctest.Wait()
	n := 0
	for _, p := range s.ended() {
		if staticpod.Is(p.pod) && s.asksTwice(p) {
			s.drop(p.pod.UID)
			s.terminator.Forget(p.pod.UID)
			s.newPod(p.pod.Name, p.pod.UID)
			n++
		}
	}
	return fmt.Sprint("started-again ", n)
}

// asksTwice tells whether a static pod may be started again. To ask withdraws its final status.
func (s *soak) asksTwice(p *soakPod) bool {
	if s.m.ShutdownStatus() == nil {
		s.mu.Lock()
		p.lost = true
		s.mu.Unlock()
	}
	if s.m.Admit(p.pod).Admit {
		return true
	}
	<-time.After(storedWithin)
	synctest.Wait()
	return s.m.Admit(p.pod).Admit
}

// restart ends the agent, or kills it, or boots the host, and starts an agent.
func (s *soak) restart() string {
	s.mu.Lock()
	s.whole, s.full = false, false
	s.mu.Unlock()
	shuts := s.m.ShutdownStatus() != nil
	switch s.pick(3) {
	case 0:
		s.stop()
		s.start()
		return fmt.Sprint("restarted, in a shutdown: ", shuts)
	case 1:
		s.crash()
		s.host.Script(func(h *shutdowntest.Host) { h.Kept = shuts && s.pick(2) == 0 })
		<-time.After(s.upTo(3 * time.Second))
		s.start()
		s.host.Script(func(h *shutdowntest.Host) { h.Kept = false })
		return fmt.Sprint("crashed, in a shutdown: ", shuts)
	default:
		s.crash()
		s.mu.Lock()
		for _, p := range s.pods {
			p.lost = p.lost || staticpod.Is(p.pod) // it would run again
			for _, id := range p.ids {
				s.rt.Exit(id)
			}
		}
		s.boots++
		s.boot = &boot{id: fmt.Sprint("boot-", s.boots), began: time.Now()}
		s.mu.Unlock()
		s.host.SetPending(nil)
		<-time.After(s.upTo(time.Minute))
		s.start()
		return "booted"
	}
}
