package shutdowntest

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/shutdown"
)

// ErrNotWaited is what the [Killer] gives when its caller waits no longer.
var ErrNotWaited = errors.New("timeout waiting to kill pod")

const (
	// OutcomeGraceful is the outcome of a pod that ended by itself within its grace.
	OutcomeGraceful = "Graceful"
	// OutcomeGraceExceeded is that of one that was killed when its grace was over.
	OutcomeGraceExceeded = "GraceExceeded"
)

// Behaviour is how a pod ends when it is told to. The zero value ends at once.
type Behaviour struct {
	// Takes is how long the pod needs; it is killed when its grace is over.
	Takes time.Duration
	// Hangs makes a kill last until [Killer.Release], whatever the grace is.
	Hangs bool
	// Deaf makes the call ignore its context too, as a runtime does that is stuck.
	Deaf bool
	// Err is what the killer gives at the end.
	Err error
	// Status is the status that the killer gives at the end; nil: none.
	Status *v1.PodStatus
}

// Kill is one call of a [Killer].
type Kill struct {
	Pod     *v1.Pod
	Request shutdown.KillRequest
	Status  v1.PodStatus // what the request's SetStatus makes of the pod's status
	Started time.Time
	Ended   time.Time // zero: the call has not returned
}

// Killer is a [shutdown.PodKiller] whose pods end as a test tells it. The zero
// value ends every pod at once. A second call for a pod that still ends only
// shortens it, and both return when it has ended, as a lifecycle.Terminator does.
type Killer struct {
	// Pods has the behaviour of pods by name; set it before the first call.
	Pods map[string]Behaviour
	// Default is the behaviour of all others.
	Default Behaviour
	// OnKill is called at the start of each call; nil: nothing is.
	OnKill func(pod *v1.Pod)

	mu     sync.Mutex // guards all below
	calls  []*Kill
	ending map[string]*ending
}

var _ shutdown.PodKiller = (*Killer)(nil)

// ending is a pod on its way out.
type ending struct {
	until time.Time // killed then; zero: it hangs
	timer *time.Timer
	over  chan struct{}
}

// KillPod is the killer's part of [shutdown.PodKiller].
func (k *Killer) KillPod(ctx context.Context, pod *v1.Pod, req shutdown.KillRequest) (shutdown.KillResult, error) {
	if k.OnKill != nil {
		k.OnKill(pod)
	}
	how := k.behaviour(pod)
	call, e := k.startCall(pod, req, how)
	done := ctx.Done()
	if how.Deaf {
		done = nil
	}
	select {
	case <-e.over:
		return k.finishCall(call, how)
	case <-done:
	}
	select {
	case <-e.over: // at the same moment
		return k.finishCall(call, how)
	default:
		k.setReturned(call)
		return shutdown.KillResult{}, ErrNotWaited
	}
}

// Kills are the calls so far, in order.
func (k *Killer) Kills() []Kill {
	k.mu.Lock()
	defer k.mu.Unlock()
	calls := make([]Kill, len(k.calls))
	for i, call := range k.calls {
		calls[i] = *call
	}
	return calls
}

// Kill is the last call for the pod of a name; false: there was none.
func (k *Killer) Kill(name string) (Kill, bool) {
	for _, call := range slices.Backward(k.Kills()) {
		if call.Pod.Name == name {
			return call, true
		}
	}
	return Kill{}, false
}

// Release ends every pod that hangs.
func (k *Killer) Release() {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, e := range k.ending {
		if e.timer == nil {
			close(e.over)
		}
	}
	clear(k.ending)
}

func (k *Killer) behaviour(pod *v1.Pod) Behaviour {
	if how, ok := k.Pods[pod.Name]; ok {
		return how
	}
	return k.Default
}

// begin notes the call and starts or shortens the end of the pod.
func (k *Killer) startCall(pod *v1.Pod, req shutdown.KillRequest, how Behaviour) (*Kill, *ending) {
	k.mu.Lock()
	defer k.mu.Unlock()
	call := &Kill{Pod: pod, Request: req, Status: *pod.Status.DeepCopy(), Started: time.Now()}
	if req.SetStatus != nil {
		req.SetStatus(&call.Status)
	}
	k.calls = append(k.calls, call)
	grace := time.Duration(req.GracePeriodSeconds) * time.Second
	if e, ok := k.ending[pod.Name]; ok {
		e.shorten(grace)
		return call, e
	}
	e := k.startEnding(pod.Name, how, grace)
	return call, e
}

// start lets a pod end after what it takes, or after its grace.
func (k *Killer) startEnding(name string, how Behaviour, grace time.Duration) *ending {
	e := &ending{over: make(chan struct{})}
	takes := min(how.Takes, grace)
	if takes <= 0 && !how.Hangs {
		close(e.over)
		return e
	}
	if k.ending == nil {
		k.ending = map[string]*ending{}
	}
	k.ending[name] = e
	if !how.Hangs {
		e.until = time.Now().Add(takes)
		e.timer = time.AfterFunc(takes, func() { k.endPod(name, e) })
	}
	return e
}

// shorten moves the end of a pod to an earlier time. One that hangs hangs on.
func (e *ending) shorten(grace time.Duration) {
	if e.timer != nil && time.Until(e.until) > grace {
		e.until = time.Now().Add(grace)
		e.timer.Reset(grace)
	}
}

// over is the end of a pod.
func (k *Killer) endPod(name string, e *ending) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.ending, name)
	close(e.over)
}

// returned notes the end of a call.
func (k *Killer) setReturned(call *Kill) {
	k.mu.Lock()
	defer k.mu.Unlock()
	call.Ended = time.Now()
}

// end notes the end of a call whose pod has ended.
func (k *Killer) finishCall(call *Kill, how Behaviour) (shutdown.KillResult, error) {
	k.setReturned(call)
	outcome := OutcomeGraceful
	if how.Hangs || how.Takes > call.Ended.Sub(call.Started) {
		outcome = OutcomeGraceExceeded
	}
	return shutdown.KillResult{Outcome: outcome, Status: how.Status}, how.Err
}
