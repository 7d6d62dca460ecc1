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

// errStillRunning is the error of KillPod if its context ends before the pod does.
var errStillRunning = errors.New("timeout waiting to kill pod")

// Behaviour describes how a pod ends when it is killed. With the zero value it ends immediately.
type Behaviour struct {
	// Takes is the time that the pod needs to end. A pod that needs longer than its grace period ends with
	// the grace period.
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
	until time.Time     // when the pod ends; zero: it hangs
	timer *time.Timer   // ends the pod at until; nil: it hangs
	ended chan struct{} // closed when the pod has ended
}

// KillPod implements [shutdown.PodKiller]. It returns when the pod has ended, with the Status and the Err of the pod's
// [Behaviour]. The outcome is GraceExceeded if the pod hung or needed longer than its grace period, and otherwise
// Graceful. If ctx ends before the pod does, KillPod returns an error, unless the Behaviour ignores the context.
func (k *Killer) KillPod(ctx context.Context, pod *v1.Pod, req shutdown.KillRequest) (shutdown.KillResult, error) {
	if k.OnKill != nil {
		k.OnKill(pod)
	}
	behaviour, ok := k.Pods[pod.Name]
	if !ok {
		behaviour = k.Default
	}
	call, termination := k.startCall(pod, req, behaviour)
	ctxDone := ctx.Done()
	if behaviour.IgnoresContext {
		ctxDone = nil // never ready
	}
	select {
	case <-termination.ended:
	case <-ctxDone:
		select {
		case <-termination.ended: // the pod ended at the same time
		default:
			k.setReturned(call)
			return shutdown.KillResult{}, errStillRunning
		}
	}
	k.setReturned(call)
	outcome := "Graceful"
	wasCutOff := behaviour.Takes > call.Ended.Sub(call.Started) // the end of its grace period has ended the pod
	if behaviour.Hangs || wasCutOff {
		outcome = "GraceExceeded"
	}
	return shutdown.KillResult{Outcome: outcome, Status: behaviour.Status}, behaviour.Err
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

// Release ends all hanging pods. Others end in their own time.
func (k *Killer) Release() {
	k.mu.Lock()
	defer k.mu.Unlock()
	for name, t := range k.terminating {
		if isHanging := t.timer == nil; isHanging {
			close(t.ended)
			delete(k.terminating, name)
		}
	}
}

// startCall records a call. It starts the termination of the pod. If that is in progress already, the call may shorten the
// pod's grace period.
func (k *Killer) startCall(pod *v1.Pod, req shutdown.KillRequest, behaviour Behaviour) (*Kill, *termination) {
	k.mu.Lock()
	defer k.mu.Unlock()
	call := &Kill{Pod: pod, Request: req, Status: *pod.Status.DeepCopy(), Started: time.Now()}
	if req.SetStatus != nil {
		req.SetStatus(&call.Status)
	}
	k.calls = append(k.calls, call)
	seconds := *cmp.Or(req.GracePeriodSeconds, pod.Spec.TerminationGracePeriodSeconds, new(int64)) // the first that is not nil
	grace := time.Duration(seconds) * time.Second
	if running, ok := k.terminating[pod.Name]; ok {
		running.shorten(grace)
		return call, running
	}
	return call, k.startTermination(pod.Name, behaviour, grace)
}

// startTermination makes a pod end after behaviour.Takes or its grace period, whichever is shorter. A pod that
// hangs does not end until Release. While the pod has not ended, it is in k.terminating. The caller holds the mutex.
func (k *Killer) startTermination(name string, behaviour Behaviour, grace time.Duration) *termination {
	started := &termination{ended: make(chan struct{})}
	takes := min(behaviour.Takes, grace)
	if takes <= 0 && !behaviour.Hangs {
		close(started.ended)
		return started
	}
	if k.terminating == nil {
		k.terminating = map[string]*termination{}
	}
	k.terminating[name] = started
	if !behaviour.Hangs {
		started.until = time.Now().Add(takes)
		started.timer = time.AfterFunc(takes, func() {
			k.mu.Lock()
			defer k.mu.Unlock()
			delete(k.terminating, name)
			close(started.ended)
		})
	}
	return started
}

// shorten makes the pod end at the end of a new grace period, if that is earlier. It has no effect on a pod that
// hangs.
func (t *termination) shorten(grace time.Duration) {
	if t.timer != nil && time.Until(t.until) > grace {
		t.until = time.Now().Add(grace)
		t.timer.Reset(grace)
	}
}

// setReturned records that a call returns now.
func (k *Killer) setReturned(call *Kill) {
	k.mu.Lock()
	defer k.mu.Unlock()
	call.Ended = time.Now()
}
