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

// randomStep does something to the node and returns what it was.
func (s *soak) randomStep() string {
	switch s.randomInt(22) {
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
		from := s.randomDuration(20 * time.Second)
		s.runtime().Away(from, from+s.randomDuration(5*time.Second)+time.Millisecond)
		return "runtime is away"
	case 10, 11:
		return s.changeList()
	case 12:
		return s.deletePod()
	case 13:
		return s.restartStaticPods()
	case 14, 15:
		if s.mayRestart {
			return s.restartAgent()
		}
		return "nothing"
	default:
		d := s.randomDuration(12 * time.Second)
		<-time.After(d)
		return "waited " + d.String()
	}
}

// announce makes the host announce a shutdown, sometimes with a deadline. Without one, and if
// the agent is not restarted, pods are granted at least the time of their buckets.
func (s *soak) announce() string {
	event := shutdown.Event{Kind: []shutdown.Kind{"", shutdown.KindReboot}[s.randomInt(2)]}
	text := "announced"
	s.mu.Lock()
	if s.rng.IntN(8) == 0 {
		event.Deadline = time.Now().Add(time.Duration(s.rng.IntN(40_000)) * time.Millisecond)
		s.wantFullGrace = false
		text += " for " + time.Until(event.Deadline).String()
	}
	s.mu.Unlock()
	s.host.Announce(event)
	return text
}

// pickListedPod returns the UID of a random pod of the list; "" if the list is empty.
func (s *soak) pickListedPod() types.UID {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.listed) == 0 {
		return ""
	}
	return s.listed[s.rng.IntN(len(s.listed))].UID
}

// changeList adds a pod to the list, removes one with all that have ended, or replaces one by
// a new pod of the same name.
func (s *soak) changeList() string {
	uid := s.pickListedPod()
	switch {
	case uid == "" || s.randomInt(3) == 0:
		return "list: " + s.addPod("").Name + " appears"
	case s.randomInt(2) == 0:
		s.removeFromList(uid)
		for _, ended := range s.endedPods() {
			s.removeFromList(ended.pod.UID)
		}
		return fmt.Sprint("list: ", uid, " vanishes, and what has ended")
	default:
		s.mu.Lock()
		name := s.pods[uid].pod.Name
		s.mu.Unlock()
		s.removeFromList(uid)
		return fmt.Sprint("list: ", uid, " comes back as ", s.addPod(name).UID)
	}
}

// addPod adds a pod to the list. If it comes in a shutdown it may be too late for its bucket, and has
// what the one that is under way has left.
func (s *soak) addPod(name string) *v1.Pod {
	pod, late := s.newPod(name, ""), s.m.ShutdownStatus() != nil
	s.mu.Lock()
	defer s.mu.Unlock()
	if p := s.pods[pod.UID]; late {
		p.minSeconds = 0
	}
	return pod
}

// deletePod makes the agent end a pod because somebody has deleted it.
func (s *soak) deletePod() string {
	uid := s.pickListedPod()
	if uid == "" {
		return "nothing"
	}
	seconds := int64(1 + s.randomInt(30))
	pod := s.markDeleted(uid, seconds)
	killer, ctx := s.killer, klog.NewContext(s.t.Context(), klog.Logger{})
	s.deletions.Go(func() {
		_, _ = killer(ctx, pod, shutdown.KillRequest{GracePeriodSeconds: &seconds}) // fails if the agent ends meanwhile
	})
	return fmt.Sprint("deleted ", uid, " with ", seconds)
}

// endedPods returns the pods that have ended, in the order of their UIDs.
func (s *soak) endedPods() []*soakPod {
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

// restartStaticPods starts static pods that have ended again, under the same UIDs, if the
// manager admits them.
func (s *soak) restartStaticPods() string {
	synctest.Wait()
	n := 0
	for _, p := range s.endedPods() {
		if staticpod.Is(p.pod) && s.admitsAgain(p) {
			s.removeFromList(p.pod.UID)
			s.terminator.ForgetPod(p.pod.UID)
			s.newPod(p.pod.Name, p.pod.UID)
			n++
		}
	}
	return fmt.Sprint("started-again ", n)
}

// admitsAgain reports whether a static pod may be started again. The first call of Admit
// withdraws the final status of the pod; a later one admits the pod once that is stored.
func (s *soak) admitsAgain(p *soakPod) bool {
	if s.m.ShutdownStatus() == nil {
		s.mu.Lock()
		p.endUnknown = true
		s.mu.Unlock()
	}
	if s.m.Admit(p.pod).Admit {
		return true
	}
	<-time.After(storedWithin)
	synctest.Wait()
	return s.m.Admit(p.pod).Admit
}

// restartAgent ends the agent, kills it or boots the host, and then starts an agent.
func (s *soak) restartAgent() string {
	s.mu.Lock()
	s.sameAgent, s.wantFullGrace = false, false
	s.mu.Unlock()
	shuts := s.m.ShutdownStatus() != nil
	switch s.randomInt(3) {
	case 0:
		s.stopAgent()
		s.startAgent()
		return fmt.Sprint("restarted, in a shutdown: ", shuts)
	case 1:
		s.crashAgent()
		s.host.Script(func(h *shutdowntest.Host) { h.Kept = shuts && s.randomInt(2) == 0 })
		<-time.After(s.randomDuration(3 * time.Second))
		s.startAgent()
		s.host.Script(func(h *shutdowntest.Host) { h.Kept = false })
		return fmt.Sprint("crashed, in a shutdown: ", shuts)
	default:
		s.crashAgent()
		s.mu.Lock()
		for _, p := range s.pods {
			p.endUnknown = p.endUnknown || staticpod.Is(p.pod) // a static pod runs again after the boot
			for _, id := range p.containerIDs {
				s.rt.Exit(id)
			}
		}
		s.boots++
		s.boot = &boot{id: fmt.Sprint("boot-", s.boots), began: time.Now()}
		s.mu.Unlock()
		s.host.SetPending(nil)
		<-time.After(s.randomDuration(time.Minute))
		s.startAgent()
		return "booted"
	}
}
