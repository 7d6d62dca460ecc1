package agent

import (
	"context"
	"slices"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/lifecycle"
	"github.com/kubegrace/kubegrace/shutdown"
)

// pod is one pod of the node and what has become of it.
type pod struct {
	spec             *v1.Pod
	priority, bucket int32
	admitted         chan struct{} // closed once it may start, or was found running
	settled          chan struct{} // closed once its start has succeeded or failed

	mu         sync.Mutex              // guards all below; never held while anything waits
	abandon    context.CancelCauseFunc // ends its start; nil: it has not begun
	containers []lifecycle.Container
	exits      []<-chan struct{} // of the containers, closed once they have exited
	problem    error             // why it did not start, or was not stopped
	granted    int64
	told, gone time.Time // when it was told to stop, and when that was done
	finished   bool      // it had ended by itself before
	refused    bool      // nothing of it was ever started
}

// toldAt is when the pod was told to stop, zero if it was not, and whether it is
// still ending.
func (p *pod) toldAt() (told time.Time, ending bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.told, !p.told.IsZero() && p.gone.IsZero()
}

func (p *pod) isActive() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	runs := p.problem == nil && (p.abandon != nil || isClosed(p.settled))
	return p.gone.IsZero() && (runs || !p.told.IsZero())
}

// begin says that the pod is being started.
func (p *pod) begin(abandon context.CancelCauseFunc) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.abandon = abandon
}

// settle says what came of the start.
func (p *pod) settle(containers []lifecycle.Container, exits []<-chan struct{}, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.containers, p.exits, p.problem = containers, exits, err
	close(p.settled)
}

// refuse says that the pod is not started at all.
func (p *pod) refuse(why error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refused, p.problem = true, why
	close(p.settled)
}

// finishedLocked tells whether the pod was started and all its containers have
// ended since.
func (p *pod) finishedLocked() bool {
	return len(p.exits) > 0 && !slices.ContainsFunc(p.exits, func(exited <-chan struct{}) bool { return !isClosed(exited) })
}

// hasStarted tells whether the pod was started; its containers may have ended since.
func (p *pod) hasStarted() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return isClosed(p.settled) && p.problem == nil
}

// nextExit is closed at the end of one of the containers that run; nil: none does.
func (p *pod) nextExit() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, exited := range p.exits {
		if !isClosed(exited) {
			return exited
		}
	}
	return nil
}

// endedByItself tells whether it had ended before it was told to stop.
func (p *pod) endedByItself() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.finished
}

// tell says that the pod is told to stop, with a grace period in seconds. A start
// that is under way is abandoned. Where it is told again because the first attempt has
// failed, that goes on: what it was granted and when counts, and containers that have ended
// meanwhile have not done so by themselves.
func (p *pod) tell(granted int64) {
	p.mu.Lock()
	p.finished = p.finished || p.told.IsZero() && p.finishedLocked()
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

// running are the containers that the start has left running.
func (p *pod) running() []lifecycle.Container {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]lifecycle.Container{}, p.containers...)
}

// end says that nothing more is done about the pod.
func (p *pod) end(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.refused { // while it was told to stop: there was nothing to stop
		p.told = time.Time{}
		return
	}
	p.gone, p.problem = time.Now(), err
}
