package lifecycle

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
)

// ErrForgotten is the error of the methods of a [Pod] after [Pod.Forget].
var ErrForgotten = errors.New("the pod was forgotten")

var errNoPod = errors.New("the pod is nil")

// Pod is the life of one pod on this agent. It begins with the first [Pod.Start] or kill,
// and ends with [Pod.Forget]. Get one from [Terminator.Pod]. All methods may be called
// concurrently; after Forget they give [ErrForgotten].
//
// A life has a slot for each container name, and a slot has the attempts to run that
// container, at most eight. All methods use the same attempts. Therefore a termination takes
// over the kill of a single container, a second call joins the first, a deadline only moves
// earlier, and no hook runs twice.
type Pod struct {
	terminator *Terminator
	key        types.UID             // its UID, or NAMESPACE/NAME; guarded by the state
	hasUID     bool                  // likewise
	state      atomic.Pointer[state] // nil: it was forgotten, or is that of a nil pod
	own        state                 // which state points at first
}

// lock locks and returns the state. The error is [ErrForgotten], or that the pod is nil.
func (p *Pod) lock() (*state, error) {
	for {
		s := p.state.Load()
		if s == nil && p.terminator == nil {
			return nil, errNoPod
		}
		if s == nil {
			return nil, ErrForgotten
		}
		s.mu.Lock()
		if p.state.Load() == s {
			return s, nil
		}
		s.mu.Unlock()
	}
}

// begin makes the life one that is under way, if it is not yet. What is under way from a
// former life belongs to it.
func (p *Pod) begin(s *state, pod *v1.Pod) {
	if s.live != nil && s.live.inherited {
		s.live.inherited = false
		for a := range s.attempts() {
			a.flags.obsolete = a.flags.left
		}
	}
	if s.live == nil {
		s.live = &live{settings: p.terminator.settings, owner: p, namespace: pod.Namespace, name: pod.Name}
		if !s.live.settings.closed.Load() { // no life is kept after the end
			p.terminator.enter(p)
		}
	}
}

// leave takes the life, of which nothing is known, out of the terminator.
func (p *Pod) leave() { p.terminator.leave(p) }

// Terminate starts the termination of the pod and returns at once. The pod must not be
// changed until the termination has ended.
//
// The grace period is that of [graceperiod.ForPod], with the override of the request; it
// is at least 1 s. The containers are those of the request, or those that run by the
// pod's status, and always those that [Pod.Start] has started or is starting and that are
// not known to have exited. The error of a container whose state nothing of this tells
// wraps [ErrUnknownContainers]. A hook or stop that is under way for a container becomes
// part of the termination and gets its deadline.
//
// A pod has one termination at a time. If one is under way, Terminate returns it, adds
// containers that it did not have, and shortens its grace period if the pod or the request
// now gives less. A termination that has ended is kept until [Pod.Forget], and is returned
// again unless there is something to stop. Then another one replaces it. It has the old
// deadline while that is ahead, and for containers that are stuck. Else it has the grace
// period of the request. That is also so for a container that has ended and that the
// request or the status names again: unless the [ExitWatcher] says that it has exited, within
// 100 ms, the runtime is asked to stop it again, without a hook.
//
// ctx gives values such as the logger; its end and its deadline have no effect. After
// [Terminator.Close] the result is a termination that has ended, with all containers
// [LeftRunning]. For a nil pod, and after Forget, it is one that has ended with an error.
func (p *Pod) Terminate(ctx context.Context, req Request) *Termination {
	t, err := p.terminate(ctx, nil, &req)
	if err != nil {
		return failedTermination(err)
	}
	return t
}

// terminate is Terminate with the error. pod is nil for that of the handle.
func (p *Pod) terminate(ctx context.Context, pod *v1.Pod, req *Request) (*Termination, error) {
	s, err := p.lock()
	if err != nil {
		return nil, err
	}
	if pod == nil {
		pod = s.pod
	}
	confirmed := p.confirm(ctx, s, pod, func() []Container { return s.asked(pod, req) })
	if s != p.state.Load() {
		s.mu.Unlock()
		return nil, ErrForgotten
	}
	p.begin(s, pod)
	t := s.terminate(ctx, pod, req, confirmed)
	s.sweep()
	isClosed := p.terminator.settings.closed.Load() && t.hasEnded() && len(t.records) == 0
	s.mu.Unlock()
	if isClosed { // what ran in the end is not known any more
		return failedTermination(AgentStopping), nil
	}
	logV1(ctx, func(l klog.Logger) { l.Info("Terminating pod", "pod", klog.KObj(pod)) })
	return t, nil
}

// Kill calls [Pod.Terminate] and then [Termination.Wait].
func (p *Pod) Kill(ctx context.Context, req Request) (Result, error) {
	return p.Terminate(ctx, req).Wait(ctx)
}

// Termination returns the termination of the pod that is under way or has ended; false if
// there is none, and after Forget.
func (p *Pod) Termination() (*Termination, bool) {
	s, err := p.lock()
	if err != nil {
		return nil, false
	}
	defer s.mu.Unlock()
	return s.current, s.current != nil
}

// Forget ends the life of the pod. Call it when the pod is gone: it frees the memory, and a
// pod with the same UID, such as a static pod that returns, can be started and terminated
// again, with a handle of its own.
//
// Forget stops nothing. A termination that is under way goes on, and containers that are
// being started or stopped belong to the next life of the pod until they have ended. It also
// removes the record that a preStop hook has run: if a container is stopped again in the next
// life, its hook runs again.
func (p *Pod) Forget() {
	s, err := p.lock()
	if err != nil {
		return
	}
	defer s.mu.Unlock()
	p.state.Store(nil)
	for a := range s.attempts() { // a termination that is under way keeps what it has ended
		a.flags.obsolete = !s.current.isActive() || !slices.Contains(s.current.active.attempts, a)
	}
	s.current, s.pod = nil, nil
	if s.sweep(); s.live == nil {
		p.leave()
		return
	}
	next := &Pod{terminator: p.terminator, key: p.key, hasUID: p.hasUID}
	next.state.Store(s)
	s.live.owner, s.live.inherited = next, true
	p.terminator.enter(next)
}

// ref returns the name of the pod in errors.
func (p *Pod) ref() string {
	if p.terminator == nil {
		return ""
	}
	s, err := p.lock()
	if err != nil {
		return "that was forgotten"
	}
	defer s.mu.Unlock()
	return podText(s.pod)
}

// failedTermination returns a termination that has ended with an error.
func failedTermination(err error) *Termination {
	result := ContainerResult{Outcome: RuntimeStuck, Err: err}
	if errors.Is(err, AgentStopping) {
		result.Outcome = LeftRunning
	}
	return &Termination{state: &state{}, records: []record{recordOf(&result)}}
}

// isNamed reports whether the life is under way for a pod of the same name. That of one that
// has ended is not.
func (p *Pod) isNamed(pod *v1.Pod) bool {
	s, err := p.lock()
	if err != nil {
		return false
	}
	defer s.mu.Unlock()
	return s.live != nil && s.live.namespace == pod.Namespace && s.live.name == pod.Name
}

// cancel cancels what is under way for the pod, because the terminator is closed.
func (p *Pod) cancel() {
	if s, err := p.lock(); err == nil {
		defer s.mu.Unlock()
		for a := range s.attempts() {
			a.cancelLocked()
		}
	}
}

// awaitIdle waits until all goroutines of the pod have ended, or ctx has. It returns the
// containers that then still have one.
func (p *Pod) awaitIdle(ctx context.Context) (stuck []string) {
	s, err := p.lock()
	if err != nil {
		return nil
	}
	defer s.mu.Unlock()
	for _, a := range slices.Collect(s.attempts()) {
		a.waitLocked(func() bool { return a.goroutines == 0 }, nil, ctx.Done)
		if a.goroutines > 0 {
			stuck = append(stuck, fullName(a.pod, a.result.Name))
		}
	}
	return stuck
}
