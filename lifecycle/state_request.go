package lifecycle

import (
	"context"
	"fmt"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/graceperiod"
)

// terminate starts the termination of a pod, or continues the one that exists.
func (s *state) terminate(ctx context.Context, pod *v1.Pod, req *Request, confirmed map[string]bool) *Termination {
	old := s.current
	if old.isActive() {
		old.shortenToRequest(pod, req)
		old.include(s.chosen(pod, req, confirmed), req)
		return old
	}
	chosen := s.chosen(pod, req, confirmed)
	isPending := func(a *attempt) bool { return a.run != nil || a.isToStop() || a.hasEnded() }
	if old != nil && !old.isStuck() && !slices.ContainsFunc(chosen, isPending) {
		return old
	}
	t := &Termination{state: s, active: &active{
		ctx: context.WithoutCancel(ctx), pod: pod, request: req, deadline: grantedTo(pod, req),
		startedAt: time.Now(), done: make(chan struct{}),
	}}
	s.current = t
	t.replace(old, chosen)
	t.include(chosen, req)
	return t
}

// kill starts to stop an attempt, unless it is being stopped. If the termination of the pod
// is under way, it includes the attempt and limits its deadline.
func (s *state) kill(ctx context.Context, a *attempt, pod *v1.Pod, req ContainerRequest) {
	spec, _ := findContainer(pod, a.result.Name)
	until := grant(graceperiod.ForContainer(pod, spec, req.Reason))
	if req.GracePeriodSeconds != nil {
		until.granted = *req.GracePeriodSeconds
	}
	if a.run != nil {
		if req.GracePeriodSeconds != nil {
			a.limitLocked(until)
		}
		return
	}
	if a.isOver() {
		a.deadline = deadline{}
	}
	a.flags.obsolete = false
	if t := s.current; t.isActive() {
		t.await(a)
		if before := t.active.deadline; before.at().Before(until.at()) {
			until = before
		}
	}
	a.startRunLocked(context.WithoutCancel(ctx), pod, until, &run{
		message: req.Message, reason: killMessage(pod, a.result.Name, req.Reason), hooks: req.Hooks, manner: manner{once: req.OneAttempt},
	})
}

// chosen returns the attempts that a termination has to stop: those of the request, those of
// the pod's status unless the request is complete, and always those that are being started or stopped, that
// are stuck or unknown, or that Start has started and that are not known to have exited.
// An attempt that has ended is one of them if the request names it, unless its ID is one of
// those that the ExitWatcher has confirmed.
func (s *state) chosen(pod *v1.Pod, req *Request, confirmed map[string]bool) []*attempt {
	named, seen := s.asked(pod, req), map[*attempt]bool{}
	chosen := make([]*attempt, 0, len(named))
	add := func(a *attempt) {
		if !seen[a] {
			seen[a] = true
			chosen = append(chosen, a)
		}
	}
	s.settle(pod, req, named)
	for _, n := range named {
		switch {
		case n.ID != "":
			if a := s.named(pod, n); !a.hasEnded() || a.isStuck() || !confirmed[n.ID] {
				add(a)
			}
		case !s.runs(pod, n.Name):
			a := s.add(pod, n.Name, "")
			a.start.err = unknownError(n.Name)
			add(a)
		}
	}
	for a := range s.attempts() {
		if !seen[a] && a.mayRun(pod) {
			a.flags.unlisted = a.flags.unlisted || a.flags.started && a.run == nil
			add(a)
		}
	}
	return chosen
}

// asked returns the containers that a request asks to stop: its own, and those of the status.
func (s *state) asked(pod *v1.Pod, req *Request) []Container {
	if req.Complete {
		return req.Containers
	}
	named := ContainersOf(pod)
	if len(req.Containers) > 0 {
		return append(slices.Clip(req.Containers), slices.DeleteFunc(named, func(c Container) bool {
			return slices.ContainsFunc(req.Containers, func(n Container) bool { return n.ID == c.ID && (c.ID != "" || n.Name == c.Name) })
		})...)
	}
	if !s.current.hasEnded() || s.isOpen() {
		named = append(named, s.withoutState(pod, named)...)
	}
	return named
}

// settle removes the unknown attempts that the request or the status proves to have ended.
func (s *state) settle(pod *v1.Pod, req *Request, named []Container) {
	if s.live == nil {
		return
	}
	for _, slot := range s.live.slots {
		slot.settle(pod)
		if req.Complete {
			isNamed := func(n Container) bool { return n.Name == slot.name && n.ID == "" }
			slot.removeUnknown(func(*attempt) bool { return !slices.ContainsFunc(named, isNamed) })
		}
	}
}

// isOpen reports whether an attempt may run, as far as is known.
func (s *state) isOpen() bool {
	for a := range s.attempts() {
		if !a.hasEnded() || a.isStuck() {
			return true
		}
	}
	return false
}

// runs reports whether the terminator knows a container of a name that may run.
func (s *state) runs(pod *v1.Pod, name string) bool {
	slot := s.live.slot(name)
	return slot != nil && slices.ContainsFunc(slot.attempts, func(a *attempt) bool { return a.mayRun(pod) })
}

// withoutState returns the main containers and sidecars that may run although they are not
// in running: neither the pod's status nor a slot says how they are. If Start has started
// any container, it is taken to have started all that run.
func (s *state) withoutState(pod *v1.Pod, running []Container) (unknown []Container) {
	if slices.Contains([]v1.PodPhase{v1.PodPending, v1.PodSucceeded, v1.PodFailed}, pod.Status.Phase) {
		return nil
	}
	for a := range s.attempts() {
		if a.isOfStart() {
			return nil
		}
	}
	for spec, role := range specsOf(pod) {
		isOfSpec := func(c Container) bool { return c.Name == spec.Name }
		if role < roleMain || slices.ContainsFunc(running, isOfSpec) || hasState(pod, spec.Name) {
			continue
		}
		slot := s.live.slot(spec.Name)
		isKnown := slot != nil && len(slot.attempts) > 0 && (s.current != nil || s.runs(pod, spec.Name))
		if !isKnown && !s.current.has(spec.Name) {
			unknown = append(unknown, Container{Name: spec.Name})
		}
	}
	return unknown
}

// unknownError returns the error of a container without an ID or a state.
func unknownError(name string) error {
	return fmt.Errorf("container %q has no ID or no state: %w", name, ErrUnknownContainers)
}
