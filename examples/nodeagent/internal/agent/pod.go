package agent

import (
	"context"
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
	outdated         bool          // it was found running, as another manifest has it
	admitted         chan struct{} // closed once it may start, or was found running
	settled          chan struct{} // closed once its start has succeeded or failed
	leaving          chan struct{} // closed once it is told to stop

	mu         sync.Mutex              // guards all below; never held while anything waits
	abandon    context.CancelCauseFunc // ends its start; nil: it has not begun
	containers []lifecycle.Container
	exits      []<-chan struct{}  // of the containers, closed once they have exited
	restarts   []restartState     // of the containers
	concluded  int                // how many of them have exited and are not started again
	forget     context.CancelFunc // ends the keeping of its mirror; nil: there is none
	news       chan struct{}      // closed and replaced with each news of its containers
	problem    error              // why it did not start, or was not stopped
	granted    int64
	told, gone time.Time // when it was told to stop, and when that was done
	finished   bool      // it had ended by itself before
	refused    bool      // nothing of it was ever started
	byHand     bool      // no shutdown has told it to stop, but somebody else
}

// toldAt is when a shutdown has told the pod to stop, zero if none has, and whether it is
// still ending.
func (p *pod) toldAt() (told time.Time, ending bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.byHand {
		return time.Time{}, false
	}
	return p.told, !p.told.IsZero() && p.gone.IsZero()
}

// isTold tells whether anybody has told the pod to stop.
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

// wasRefused tells whether nothing of it was ever started, as the node was shutting down.
func (p *pod) wasRefused() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.refused
}

// isStopped tells whether nothing of it runs any more, by order.
func (p *pod) isStopped() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.refused || !p.gone.IsZero() && p.problem == nil
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
	p.restarts = make([]restartState, len(containers))
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
// ended since, for good.
func (p *pod) finishedLocked() bool { return len(p.exits) > 0 && p.concluded == len(p.exits) }

// hasStarted tells whether the pod was started; its containers may have ended since.
func (p *pod) hasStarted() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return isClosed(p.settled) && p.problem == nil
}

// nextNews is closed when one of the containers has exited, or was started again.
func (p *pod) nextNews() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.news
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

// stopByHand says that somebody else than a shutdown is about to stop the pod. It is false,
// and nothing is said, while a shutdown is doing that.
func (p *pod) stopByHand() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.byHand && !p.told.IsZero() && p.gone.IsZero() {
		return false
	}
	p.byHand = true
	return true
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
