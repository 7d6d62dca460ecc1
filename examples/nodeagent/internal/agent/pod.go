package agent

import (
	"context"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/graceperiod"
	"github.com/kubegrace/kubegrace/lifecycle"
	"github.com/kubegrace/kubegrace/shutdown"
)

// pod is the state of one pod of the node. It is started at most once: a pod whose
// manifest has changed is replaced by another one.
type pod struct {
	spec             *v1.Pod
	priority, bucket int32
	outdated         bool          // it was found running with an older manifest
	admitted         chan struct{} // closed when it may start or was found running
	startEnded       chan struct{} // closed when its start has succeeded, failed or was refused
	stopRequested    chan struct{} // closed when its first stop begins

	mu            sync.Mutex              // guards the fields below; never held while anything waits
	cancelStart   context.CancelCauseFunc // nil: the start has not begun
	containers    []lifecycle.Container   // sidecars and main containers, as started last
	exited        []<-chan struct{}       // one for each container, closed when it has exited
	restarts      []restartState          // one for each container
	finishedCount int                     // how many containers have exited and are not restarted
	changed       chan struct{}           // closed and replaced when a container exits or is restarted
	stopMirror    context.CancelFunc      // ends keepMirror; nil: there is no mirror pod

	startRefused       bool      // no container of it was ever started
	problem            error     // why it did not start, or was not stopped
	grantedSeconds     int64     // the grace period of its stop
	stopBegan          time.Time // zero: it was not told to stop
	stopEnded          time.Time // zero: no stop has ended, or another one is under way
	finishedBeforeStop bool      // it was finished when its first stop began
	outsideShutdown    bool      // a client or a change of its manifest stops it, not a shutdown
}

func (p *pod) name() string { return p.spec.Namespace + "/" + p.spec.Name }

// graceSeconds returns the pod's own grace period.
func (p *pod) graceSeconds() int64 {
	if grace := p.spec.Spec.TerminationGracePeriodSeconds; grace != nil {
		return *grace
	}
	return graceperiod.DefaultSeconds
}

// shutdownStop returns when a shutdown began to stop the pod, and whether that stop is
// under way. The time is zero if no shutdown stops the pod.
func (p *pod) shutdownStop() (began time.Time, underWay bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.outsideShutdown {
		return time.Time{}, false
	}
	return p.stopBegan, !p.stopBegan.IsZero() && p.stopEnded.IsZero()
}

// wasToldToStop reports whether a stop of the pod has begun. The stop may have ended.
func (p *pod) wasToldToStop() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return !p.stopBegan.IsZero()
}

// isActive reports whether the pod runs, is being started or is being stopped.
func (p *pod) isActive() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	runs := p.problem == nil && (p.cancelStart != nil || isClosed(p.startEnded))
	return p.stopEnded.IsZero() && (runs || !p.stopBegan.IsZero())
}

// wasRefused reports whether the pod was not started because the node was shutting down.
func (p *pod) wasRefused() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.startRefused
}

// isStopped reports whether the pod was stopped, or never started because of a shutdown.
func (p *pod) isStopped() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.startRefused || !p.stopEnded.IsZero() && p.problem == nil
}

// hasStarted reports whether the pod was started. Its containers may have exited since.
func (p *pod) hasStarted() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return isClosed(p.startEnded) && p.problem == nil
}

// finishedLocked reports whether all containers have exited and none is restarted.
func (p *pod) finishedLocked() bool { return len(p.exited) > 0 && p.finishedCount == len(p.exited) }

// wasFinishedBeforeStop reports whether the pod was finished when its first stop began.
func (p *pod) wasFinishedBeforeStop() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.finishedBeforeStop
}

// startedContainers returns the sidecars and main containers of the pod as they were
// started last. They may have exited.
func (p *pod) startedContainers() []lifecycle.Container {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]lifecycle.Container{}, p.containers...)
}

// containersChanged returns a channel that is closed at the next exit or restart of a
// container.
func (p *pod) containersChanged() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.changed
}

// beginStart records that the pod is being started. A stop calls cancel.
func (p *pod) beginStart(cancel context.CancelCauseFunc) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cancelStart = cancel
}

// endStart records the result of the start.
func (p *pod) endStart(containers []lifecycle.Container, exited []<-chan struct{}, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.containers, p.exited, p.problem = containers, exited, err
	p.restarts = make([]restartState, len(containers))
	close(p.startEnded)
}

// refuseStart records that the pod is not started.
func (p *pod) refuseStart(why error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.startRefused, p.problem = true, why
	close(p.startEnded)
}

// beginStop records that the pod is told to stop, and cancels a start that is under way.
// A second call while the stop is under way replaces its beginning and grace period. A
// call after a stop has ended, which happens when the stop has failed, keeps them: the
// pod then has had the time of both attempts.
func (p *pod) beginStop(grantedSeconds int64) {
	p.mu.Lock()
	if !isClosed(p.stopRequested) {
		p.finishedBeforeStop = p.finishedLocked()
		close(p.stopRequested)
	}
	if p.stopEnded.IsZero() {
		p.grantedSeconds, p.stopBegan = grantedSeconds, time.Now()
	}
	p.stopEnded = time.Time{}
	cancel := p.cancelStart
	p.mu.Unlock()
	if cancel != nil {
		cancel(shutdown.ErrNodeShuttingDown)
	}
}

// beginStopOutsideShutdown records that the next stop is not one of a shutdown. It
// returns false, and records nothing, while a shutdown is stopping the pod.
func (p *pod) beginStopOutsideShutdown() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.outsideShutdown && !p.stopBegan.IsZero() && p.stopEnded.IsZero() {
		return false
	}
	p.outsideShutdown = true
	return true
}

// endStop records the end of a stop. A pod whose start was refused meanwhile had nothing
// to stop, and counts as one that was never told to stop.
func (p *pod) endStop(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.startRefused {
		p.stopBegan = time.Time{}
		return
	}
	p.stopEnded, p.problem = time.Now(), err
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
