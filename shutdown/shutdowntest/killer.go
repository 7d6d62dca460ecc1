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

// ErrNotWaited is the error of KillPod if its context ends before the pod has ended.
var ErrNotWaited = errors.New("timeout waiting to kill pod")

// Behaviour describes how a pod ends when it is killed. With the zero value it ends immediately.
type Behaviour struct {
	// Takes is the time that the pod needs to end. It is killed at the end of its grace period.
	Takes time.Duration
	// Hangs makes KillPod hang until [Killer.Release].
	Hangs bool
	// IgnoresContext makes KillPod ignore its context.
	IgnoresContext bool
	// Err is the error of KillPod after the pod has ended.
	Err error
	// Status is the status in the result of KillPod, or nil.
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

// Killer is a fake [shutdown.PodKiller]. The zero value ends every pod immediately. A second call for a
// pod that is still terminating may shorten its grace period, and both calls return when the pod has
// ended, as with a lifecycle.Terminator. All methods may be called concurrently.
type Killer struct {
	// Pods maps names of pods to their behaviour.
	Pods map[string]Behaviour
	// Default is the behaviour of all other pods.
	Default Behaviour
	// OnKill is called at the start of each KillPod, before it is recorded. It may be nil.
	OnKill func(pod *v1.Pod)

	mu          sync.Mutex // guards all below
	calls       []*Kill
	terminating map[string]*termination
}

var _ shutdown.PodKiller = (*Killer)(nil)

// termination is the termination of a pod that has not ended.
type termination struct {
	until time.Time // when the pod ends; zero: it hangs
	timer *time.Timer
	ended chan struct{}
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
	case <-e.ended:
	case <-done:
		select {
		case <-e.ended: // the pod ended at the same time
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

// Kills returns copies of the calls in order.
func (k *Killer) Kills() []Kill {
	k.mu.Lock()
	defer k.mu.Unlock()
	calls := make([]Kill, len(k.calls))
	for i, call := range k.calls {
		calls[i] = *call
	}
	return calls
}

// Kill returns the last call for the pod with this name, or false.
func (k *Killer) Kill(name string) (Kill, bool) {
	for _, call := range slices.Backward(k.Kills()) {
		if call.Pod.Name == name {
			return call, true
		}
	}
	return Kill{}, false
}

// Release ends all hanging pods.
func (k *Killer) Release() {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, e := range k.terminating {
		if e.timer == nil {
			close(e.ended)
		}
	}
	clear(k.terminating)
}

// startCall records a call. It starts the termination of the pod, or shortens it.
func (k *Killer) startCall(pod *v1.Pod, req shutdown.KillRequest, how Behaviour) (*Kill, *termination) {
	k.mu.Lock()
	defer k.mu.Unlock()
	call := &Kill{Pod: pod, Request: req, Status: *pod.Status.DeepCopy(), Started: time.Now()}
	if req.SetStatus != nil {
		req.SetStatus(&call.Status)
	}
	k.calls = append(k.calls, call)
	grace := time.Duration(*cmp.Or(req.GracePeriodSeconds, pod.Spec.TerminationGracePeriodSeconds, new(int64))) * time.Second
	if e, ok := k.terminating[pod.Name]; ok {
		e.shorten(grace)
		return call, e
	}
	return call, k.startTermination(pod.Name, how, grace)
}

// startTermination ends a pod after how.Takes or its grace period, whichever is shorter.
func (k *Killer) startTermination(name string, how Behaviour, grace time.Duration) *termination {
	e := &termination{ended: make(chan struct{})}
	takes := min(how.Takes, grace)
	if takes <= 0 && !how.Hangs {
		close(e.ended)
		return e
	}
	if k.terminating == nil {
		k.terminating = map[string]*termination{}
	}
	k.terminating[name] = e
	if !how.Hangs {
		e.until = time.Now().Add(takes)
		e.timer = time.AfterFunc(takes, func() {
			k.mu.Lock()
			defer k.mu.Unlock()
			delete(k.terminating, name)
			close(e.ended)
		})
	}
	return e
}

// shorten moves the end of a pod to an earlier time. It has no effect on a pod that hangs.
func (e *termination) shorten(grace time.Duration) {
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
