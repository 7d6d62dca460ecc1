package agent

import (
	"context"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/lifecycle"
	"github.com/kubegrace/kubegrace/shutdown"
)

// pod is the state of one pod of the node.
type pod struct {
	spec             *v1.Pod
	priority, bucket int32
	outdated         bool          // it was found running with another manifest
	admitted         chan struct{} // closed when it may start or was found running
	settled          chan struct{} // closed when its start has succeeded or failed
	leaving          chan struct{} // closed when it is told to stop

	mu         sync.Mutex              // guards the fields below; never held while anything waits
	abandon    context.CancelCauseFunc // cancels its start; nil: not begun
	containers []lifecycle.Container
	exits      []<-chan struct{}  // one for each container, closed when it has exited
	restarts   []restartState     // one for each container
	concluded  int                // how many containers have exited and are not restarted
	forget     context.CancelFunc // ends keepMirror; nil: there is no mirror pod
	news       chan struct{}      // closed and replaced with each change of its containers
	problem    error              // why it did not start, or was not stopped
	granted    int64
	told, gone time.Time // when it was told to stop, and when that was done
	finished   bool      // it had ended by itself before it was told to stop
	refused    bool      // nothing of it was ever started
	byHand     bool      // it was told to stop by a user and not by a shutdown
}

// toldAt returns when a shutdown has told the pod to stop, and whether the pod is still
// stopping. The time is zero if no shutdown has.
func (p *pod) toldAt() (told time.Time, ending bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.byHand {
		return time.Time{}, false
	}
	return p.told, !p.told.IsZero() && p.gone.IsZero()
}

// isTold reports whether the pod was told to stop.
func (p *pod) isTold() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return !p.told.IsZero()
}

func (p *pod) isActive() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	runs := p.problem == nil && (p.abandon != nil || isClosed(p.settled))
	return p.gone.IsZero() && (runs || !p.told.IsZero())
}

// wasRefused reports whether the pod was not started because the node was shutting down.
func (p *pod) wasRefused() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.refused
}

// isStopped reports whether the pod was stopped, or never started because of a shutdown.
func (p *pod) isStopped() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.refused || !p.gone.IsZero() && p.problem == nil
}

// begin records the beginning of the start.
func (p *pod) begin(abandon context.CancelCauseFunc) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.abandon = abandon
}

// settle records the result of the start.
func (p *pod) settle(containers []lifecycle.Container, exits []<-chan struct{}, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.containers, p.exits, p.problem = containers, exits, err
	p.restarts = make([]restartState, len(containers))
	close(p.settled)
}

// refuse records that the pod is not started.
func (p *pod) refuse(why error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refused, p.problem = true, why
	close(p.settled)
}

// finishedLocked reports whether all containers of the pod have exited for good.
func (p *pod) finishedLocked() bool { return len(p.exits) > 0 && p.concluded == len(p.exits) }

// hasStarted reports whether the pod was started; its containers may have exited since.
func (p *pod) hasStarted() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return isClosed(p.settled) && p.problem == nil
}

// nextNews returns a channel that is closed at the next exit or restart of a container.
func (p *pod) nextNews() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.news
}

// endedByItself reports whether the pod had ended before it was told to stop.
func (p *pod) endedByItself() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.finished
}

// tell records that the pod is told to stop, with a grace period in seconds, and cancels
// a start that is under way. If it is told again while the first stop goes on, or after
// that has failed, a container that has exited in between does not count as ended by
// itself.
func (p *pod) tell(granted int64) {
	p.mu.Lock()
	p.finished = p.finished || p.told.IsZero() && p.finishedLocked()
	if p.told.IsZero() {
		close(p.leaving)
	}
	if p.gone.IsZero() {
		p.granted, p.told = granted, time.Now()
	}
	p.gone = time.Time{}
	abandon := p.abandon
	p.mu.Unlock()
	if abandon != nil {
		abandon(shutdown.ErrNodeShuttingDown)
	}
}

// stopByHand records that a user stops the pod. It returns false, and records nothing,
// while a shutdown is stopping it.
func (p *pod) stopByHand() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.byHand && !p.told.IsZero() && p.gone.IsZero() {
		return false
	}
	p.byHand = true
	return true
}

// running returns the containers that the start has left running.
func (p *pod) running() []lifecycle.Container {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]lifecycle.Container{}, p.containers...)
}

// end records the end of a stop.
func (p *pod) end(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.refused { // while it was told to stop: there was nothing to stop
		p.told = time.Time{}
		return
	}
	p.gone, p.problem = time.Now(), err
}
