package shutdowntest

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/shutdown"
)

// ErrNotWaited is the error of KillPod if its context ends before the pod does.
var ErrNotWaited = errors.New("timeout waiting to kill pod")

// Behaviour is how a pod ends when it is killed. The zero value ends at once.
type Behaviour struct {
	// Takes is how long the pod needs to end. It is killed at the end of its grace period.
	Takes time.Duration
	// Hangs makes the kill last until [Killer.Release], whatever the grace period is.
	Hangs bool
	// IgnoresContext makes KillPod ignore its context, as a runtime does that hangs.
	IgnoresContext bool
	// Err is the error of KillPod at the end.
	Err error
	// Status is the status in the result of KillPod. Nil: the result has none.
	Status *v1.PodStatus
}

// Kill is one call of [Killer.KillPod].
type Kill struct {
	Pod     *v1.Pod
	Request shutdown.KillRequest
	Status  v1.PodStatus // the pod's status after SetStatus of the request
	Started time.Time
	Ended   time.Time // zero: the call has not returned
}

// Killer is a [shutdown.PodKiller] whose pods end as a test tells them to. The zero value ends
// every pod at once. A second call for a pod that is still ending only shortens its grace period.
// Both calls return when the pod has ended, as with a lifecycle.Terminator. All methods may be
// called concurrently.
type Killer struct {
	// Pods maps names of pods to their behaviour. Set it before the first call.
	Pods map[string]Behaviour
	// Default is the behaviour of all other pods.
	Default Behaviour
	// OnKill is called at the start of each KillPod. Nil: nothing is called.
	OnKill func(pod *v1.Pod)

	mu     sync.Mutex // guards all below
	calls  []*Kill
	ending map[string]*ending
}

var _ shutdown.PodKiller = (*Killer)(nil)

// ending is a pod that was told to end and has not ended.
type ending struct {
	until time.Time // the pod is killed then; zero: it hangs
	timer *time.Timer
	over  chan struct{}
}

// KillPod implements [shutdown.PodKiller].
func (k *Killer) KillPod(ctx context.Context, pod *v1.Pod, req shutdown.KillRequest) (shutdown.KillResult, error) {
	if k.OnKill != nil {
		k.OnKill(pod)
	}
	how, ok := k.Pods[pod.Name]
	if !ok {
		how = k.Default
	}
	call, e := k.startCall(pod, req, how)
	done := ctx.Done()
	if how.IgnoresContext {
		done = nil
	}
	select {
	case <-e.over:
	case <-done:
		select {
		case <-e.over: // the pod has ended at the same time
		default:
			k.setReturned(call)
			return shutdown.KillResult{}, ErrNotWaited
		}
	}
	k.setReturned(call)
	outcome := "Graceful"
	if how.Hangs || how.Takes > call.Ended.Sub(call.Started) {
		outcome = "GraceExceeded"
	}
	return shutdown.KillResult{Outcome: outcome, Status: how.Status}, how.Err
}

// Kills returns copies of the calls so far, in order.
func (k *Killer) Kills() []Kill {
	k.mu.Lock()
	defer k.mu.Unlock()
	calls := make([]Kill, len(k.calls))
	for i, call := range k.calls {
		calls[i] = *call
	}
	return calls
}

// Kill returns the last call for the pod of that name; false if there was none.
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

// startCall records a call. It starts the end of the pod, or shortens it if the pod is ending
// already.
func (k *Killer) startCall(pod *v1.Pod, req shutdown.KillRequest, how Behaviour) (*Kill, *ending) {
	k.mu.Lock()
	defer k.mu.Unlock()
	call := &Kill{Pod: pod, Request: req, Status: *pod.Status.DeepCopy(), Started: time.Now()}
	if req.SetStatus != nil {
		req.SetStatus(&call.Status)
	}
	k.calls = append(k.calls, call)
	grace := time.Duration(*cmp.Or(req.GracePeriodSeconds, pod.Spec.TerminationGracePeriodSeconds, new(int64))) * time.Second
	if e, ok := k.ending[pod.Name]; ok {
		e.shorten(grace)
		return call, e
	}
	return call, k.startEnding(pod.Name, how, grace)
}

// startEnding makes a pod end after the time it takes, at most after its grace period.
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
		e.timer = time.AfterFunc(takes, func() {
			k.mu.Lock()
			defer k.mu.Unlock()
			delete(k.ending, name)
			close(e.over)
		})
	}
	return e
}

// shorten moves the end of a pod to an earlier time. A pod that hangs goes on hanging.
func (e *ending) shorten(grace time.Duration) {
	if e.timer != nil && time.Until(e.until) > grace {
		e.until = time.Now().Add(grace)
		e.timer.Reset(grace)
	}
}

// setReturned records the end of a call.
func (k *Killer) setReturned(call *Kill) {
	k.mu.Lock()
	defer k.mu.Unlock()
	call.Ended = time.Now()
}
