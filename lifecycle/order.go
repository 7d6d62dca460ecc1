package lifecycle

import (
	"context"
	"fmt"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"

	"github.com/kubegrace/kubegrace/graceperiod"
)

// order is what somebody asks of a life: to stop the pod, or a container of it. The mutex of the
// life is held by whoever uses it.
type order struct {
	*life

	ctx       context.Context // for its values; it does not end
	logger    klog.Logger     // of a request
	pod       *v1.Pod
	req       *Request    // nil: it is about a container
	named     []Container // that it asks to stop
	confirmed map[string]bool
}

// terminate starts the termination of the pod, or continues the one that exists. The error is
// [ErrForgotten].
func (o *order) terminate() (*Termination, error) {
	o.named = o.asked()
	if err := o.confirm(); err != nil {
		return nil, err
	}
	o.begin()
	defer o.sweepLocked()
	old := o.current
	if old.isActive() {
		old.shortenToRequest(o.pod, o.req)
		old.include(o.chosen(), o.req)
		return old, nil
	}
	chosen := o.chosen()
	if old != nil && !old.hasEnded("", true) && len(chosen) == 0 {
		return old, nil
	}
	t := &Termination{life: o.life, active: &active{
		ctx: o.ctx, logger: o.logger, pod: o.pod, request: o.req, deadline: grantedTo(o.pod, o.req), startedAt: time.Now(), done: make(chan struct{}),
	}}
	o.current = t
	t.replace(old, chosen)
	t.include(chosen, o.req)
	return t, nil
}

// kill starts to stop an attempt, unless it is being stopped. If the termination of the pod
// is under way, it includes the attempt and limits its deadline.
func (o *order) kill(a *attempt, req ContainerRequest) {
	spec, _ := findContainer(o.pod, a.result.Name)
	until := grant(graceperiod.ForContainer(o.pod, spec, req.Reason))
	if req.GracePeriodSeconds != nil {
		until.granted = *req.GracePeriodSeconds
	}
	a.flags.alone = true
	if a.run != nil {
		a.wakeLocked() // it does not wait for its turn any more
		if req.GracePeriodSeconds != nil {
			a.limitLocked(until)
		}
		return
	}
	if a.isOver() {
		a.deadline = deadline{}
	}
	if o.current.isActive() {
		o.current.await(a)
		if before := o.current.deadline(); before.at().Before(until.at()) {
			until = before
		}
	}
	(&run{
		message: req.Message, reason: killMessage(o.pod, a.result.Name, req.Reason), hooks: req.Hooks, manner: manner{once: req.OneAttempt},
	}).startLocked(o.ctx, o.live, a, o.pod, until)
}

// asked returns the containers that a request asks to stop: its own, and those of the status.
func (o *order) asked() []Container {
	if o.req.Complete {
		return o.req.Containers
	}
	named, listed := ContainersOf(o.pod), o.req.Containers
	if len(listed) > 0 {
		return append(slices.Clip(listed), slices.DeleteFunc(named, func(c Container) bool {
			return slices.ContainsFunc(listed, func(n Container) bool { return n.ID == c.ID && (c.ID != "" || n.Name == c.Name) })
		})...)
	}
	if o.current == nil || o.live.has(func(a *attempt) bool { return !a.isOver() }) {
		named = append(named, o.withoutState(named)...)
	}
	return named
}

// isConfirmed reports whether the watcher says too that the container with an ID has ended.
func (o *order) isConfirmed(id string) bool { return o.confirmed[id] }

// confirm finds out which of the containers that are named have ended, and of which of them the
// watcher says so too: their IDs may have been used again since. The mutex is unlocked
// meanwhile; the error is [ErrForgotten].
func (o *order) confirm() error {
	if o.settings().Exits == nil || o.live == nil && o.current == nil {
		return nil
	}
	o.begin()
	watches := map[*attempt]*watch{}
	for _, c := range o.named {
		if a := o.find(o.pod, c.ID); c.ID != "" && a != nil && a.isOver() {
			watches[a] = &watch{}
			watches[a].askLocked(o.ctx, a, false)
		}
	}
	until, handle := time.Now().Add(exitAnswer), o.handle
	o.confirmed = map[string]bool{}
	for a, w := range watches {
		o.confirmed[a.result.ID] = isClosed(w.awaitAnswerLocked(a, until))
	}
	if o.handle != handle {
		return ErrForgotten
	}
	return nil
}

// chosen returns the attempts that a termination has to stop: those of the containers that are
// named, and always those that are being started or stopped, that are stuck or unknown, or that
// Start has started and that are not known to have exited. An attempt that has ended is one of
// them if it is named, unless its ID is one of those that the ExitWatcher has confirmed.
func (o *order) chosen() []*attempt {
	chosen := make([]*attempt, 0, len(o.named))
	o.live.proveEnds(o.isProven)
	for _, n := range o.named {
		var a *attempt
		switch {
		case n.ID != "":
			if a = o.life.named(o.ctx, o.pod, n); a.isOver() && o.isConfirmed(n.ID) {
				a = nil
			}
		case !o.live.has(func(a *attempt) bool { return a.result.Name == n.Name && a.mayRun(o.pod) }):
			a = o.add(o.pod, n.Name, "")
			a.start.err = unknownError(n.Name)
		}
		if a != nil && !slices.Contains(chosen, a) {
			chosen = append(chosen, a)
		}
	}
	for _, a := range o.live.all() {
		if a.mayRun(o.pod) && !slices.Contains(chosen, a) {
			a.flags.unlisted = a.flags.unlisted || a.flags.started && a.run == nil
			chosen = append(chosen, a)
		}
	}
	return chosen
}

// isProven reports whether a complete request that lacks an unknown attempt, or the status,
// proves that it has ended: the status shows a state that began after its start. Of an attempt
// that only the lack of an ID or a state had made unknown, it is proof that the container is not
// running.
func (o *order) isProven(a *attempt) bool {
	isIt := func(n Container) bool { return n.Name == a.result.Name && n.ID == "" }
	switch {
	case o.req.Complete && !slices.ContainsFunc(o.named, isIt):
		return true
	case !a.isOfStart():
		return isDown(o.pod, a.result.Name)
	default:
		return startedOrEndedAfter(o.pod, a.result.Name, a.knownAt)
	}
}

// withoutState returns the main containers and sidecars that may run although they are not
// in running: neither the pod's status nor an attempt says how they are. If Start has started
// any container, it is taken to have started all that run.
func (o *order) withoutState(running []Container) (unknown []Container) {
	isIdle := slices.Contains([]v1.PodPhase{v1.PodPending, v1.PodSucceeded, v1.PodFailed}, o.pod.Status.Phase)
	if isIdle || o.live.has((*attempt).isOfStart) {
		return nil
	}
	for spec, role := range specsOf(o.pod) {
		isOfSpec := func(c Container) bool { return c.Name == spec.Name }
		if role < roleMain || slices.ContainsFunc(running, isOfSpec) || hasState(o.pod, spec.Name) {
			continue
		}
		isKnown := o.live.has(func(a *attempt) bool {
			return a.result.Name == spec.Name && (o.current != nil || a.mayRun(o.pod))
		})
		if !isKnown && !o.current.hasEnded(spec.Name, false) {
			unknown = append(unknown, Container{Name: spec.Name})
		}
	}
	return unknown
}

// unknownError returns the error of a container without an ID or a state.
func unknownError(name string) error {
	return fmt.Errorf("container %q has no ID or no state: %w: list it in Containers, or set Complete", name, ErrUnknownContainers)
}
