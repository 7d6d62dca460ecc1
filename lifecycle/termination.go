package lifecycle

import (
	"context"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
)

// Termination is one pod's termination, under way or ended. All methods may be
// called concurrently.
//
// It is driven by what happens: a hook or a StopContainer returns, the deadline
// comes, a container exits, somebody shortens. A goroutine exists for each call that
// may block, and for nothing else.
type Termination struct {
	owner   *Terminator
	pod     *v1.Pod
	message string    // of the Killing events, "" for the kubelet's
	single  *podState // nil: it is the pod's; else that of one container of this pod
	exited  bool      // the container has exited: only its hook is run

	life     context.Context // ended by Close: stops run under it
	endLife  context.CancelCauseFunc
	grace    context.Context // ended at the deadline as well: hooks run under it
	endGrace context.CancelCauseFunc
	began    time.Time
	done     chan struct{}

	mu         sync.Mutex // never held while anything blocks
	deferred   []func()   // what to do once mu is let go of
	granted    int64      // seconds, from since on: the deadline
	since      time.Time
	timer      *time.Timer // comes at the deadline
	cause      Cause       // of what the deadline ends
	containers []container
	begun      bool // the containers are on their way, or about to be
	left       bool // the agent stopped
	over       bool // every container has ended
	took       time.Duration
	reported   bool // and done is closed
	goroutines int
	idle       chan struct{} // made by Close: closed once reported, and no goroutine works
}

// newTermination makes a termination that has not begun, of containers that run and
// of those that are being started.
func newTermination(ctx context.Context, owner *Terminator, pod *v1.Pod, seconds int64, running []Container, starting []*guest) *Termination {
	t := &Termination{
		owner: owner, pod: pod, began: time.Now(), done: make(chan struct{}),
		granted: seconds, cause: GraceSpent,
		containers: make([]container, len(running)+len(starting)),
	}
	t.since = t.began
	t.life, t.endLife = context.WithCancelCause(context.WithoutCancel(ctx))
	grace, endGrace := context.WithCancelCause(t.life)
	t.grace, t.endGrace = &graceContext{Context: grace, termination: t}, endGrace
	for i, c := range running {
		t.containers[i].enter(t, c)
	}
	for i, g := range starting {
		c := &t.containers[len(running)+i]
		c.enter(t, Container{Name: g.name})
		c.starting, g.awaits = true, c
	}
	return t
}

// begin sets the clock going and sends the containers on their way.
func (t *Termination) begin() {
	klog.FromContext(t.life).V(1).Info("Terminating pod", "pod", klog.KObj(t.pod), "containers", len(t.containers))
	t.send(t.start()...)
	t.mu.Lock()
	defer t.unlock()
	t.settleLocked()
}

// start sets the clock going, and gives the containers that can be sent.
func (t *Termination) start() (ready []*container) {
	t.mu.Lock()
	defer t.unlock()
	t.begun = true
	t.timer = time.AfterFunc(time.Until(t.deadlineLocked()), t.expire)
	for i := range t.containers {
		if c := &t.containers[i]; !c.starting {
			ready = append(ready, c)
		}
	}
	return ready
}

// send says that containers are being stopped, before anything is done to them, and
// sends them on their way.
func (t *Termination) send(containers ...*container) {
	for _, c := range containers {
		if c.kill == nil && !t.exited {
			t.recordKilling(c)
		}
	}
	t.mu.Lock()
	defer t.unlock()
	for _, c := range containers {
		t.goLocked(c, c.nextLocked())
	}
}

// has tells whether a container is, or was, one of the termination's.
func (t *Termination) has(id string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.anyLocked(func(c *container) bool { return c.result.ID == id && !c.starting })
}

// Done is closed when every container has ended, or cannot be helped.
func (t *Termination) Done() <-chan struct{} { return t.done }

// Wait waits until every container has ended, and gives the result with the error of
// [Result.Err]. ctx bounds the waiting only: when it ends, the termination goes on,
// the result is that of the moment, and the error is a [*StillRunningError] that names
// the containers which have not ended; if the pod should have ended by then, an
// ExceededGracePeriod event says so, as the kubelet does after its
// own timeout.
func (t *Termination) Wait(ctx context.Context) (Result, error) {
	select {
	case <-t.done:
		result := t.Result()
		return result, result.Err()
	case <-ctx.Done():
		t.recordOverdue()
		return t.Result(), t.stillRunning(ctx)
	}
}

// Result is what became of the containers so far, in the order of the request. It
// is a copy, final once [Termination.Done] is closed.
func (t *Termination) Result() Result {
	t.mu.Lock()
	defer t.mu.Unlock()
	result := Result{GracePeriodSeconds: t.granted, Containers: make([]ContainerResult, len(t.containers))}
	for i := range t.containers {
		result.Containers[i] = t.containers[i].result
	}
	return result
}

// anyLocked tells whether one of the containers is so.
func (t *Termination) anyLocked(so func(*container) bool) bool {
	for i := range t.containers {
		if so(&t.containers[i]) {
			return true
		}
	}
	return false
}

// unlock lets go of the termination and then does what was deferred under its
// lock: whatever calls into code of others or takes another lock.
func (t *Termination) unlock() {
	deferred := t.deferred
	t.deferred = nil
	t.mu.Unlock()
	for _, do := range deferred {
		do()
	}
}

// deferLocked has something done once the lock is let go of.
func (t *Termination) deferLocked(do func()) { t.deferred = append(t.deferred, do) }

// settleLocked ends the termination once all of its containers have ended.
func (t *Termination) settleLocked() {
	if t.over || t.anyLocked(func(c *container) bool { return c.result.Phase != PhaseEnded }) {
		return
	}
	t.over = true
	t.took = time.Since(t.began)
	if t.timer != nil {
		t.timer.Stop()
	}
	t.endLife(ErrTerminating)
	t.deferLocked(t.report)
}

// report makes the end known, and lets go of the termination if nothing works for
// it any more. Nothing changes a container any more, and so no lock is needed to look.
func (t *Termination) report() {
	if t.single != nil {
		t.owner.killEnded(t)
	} else {
		t.measure()
	}
	t.mu.Lock()
	defer t.unlock()
	t.reported = true
	close(t.done)
	t.restLocked()
}

// measure counts the end of a pod.
func (t *Termination) measure() {
	outcome, exceeded := Graceful, false
	for i := range t.containers {
		outcome = outcome.orWorse(t.containers[i].result.Outcome)
		exceeded = exceeded || t.containers[i].result.Outcome == GraceExceeded
	}
	klog.FromContext(t.life).V(1).Info("Pod terminated", "pod", klog.KObj(t.pod), "outcome", outcome, "took", t.took)
	t.owner.opts.Metrics.PodTerminated(string(outcome), t.took)
	if exceeded {
		t.owner.opts.Metrics.PodGraceExceeded()
	}
}

// restLocked lets go of the termination once it is reported and idle.
func (t *Termination) restLocked() {
	if !t.reported || t.goroutines > 0 {
		return
	}
	if t.idle != nil {
		close(t.idle)
	}
	t.deferLocked(func() { t.owner.release(t) })
}
