package agent

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubegrace/kubegrace/lifecycle"
	"github.com/kubegrace/kubegrace/shutdown"
)

// pods are all pods of the node, in the order in which they stop. The list does
// not change; each pod guards itself.
type pods struct{ all []*pod }

// pod is one pod of the node and what has become of it.
type pod struct {
	spec             *v1.Pod
	priority, bucket int32
	settled          chan struct{} // closed once its start has succeeded or failed

	mu          sync.Mutex              // guards all below; never held while anything waits
	abandon     context.CancelCauseFunc // ends its start; nil: it has not begun
	containers  []lifecycle.Container
	exits       []<-chan struct{}      // of the containers, closed once they have exited
	problem     error                  // why it did not start, or was not stopped
	termination *lifecycle.Termination // nil: it was not told to stop
	granted     int64
	told, gone  time.Time // when it was told to stop, and when that was done
	finished    bool      // it had ended by itself before
}

// newPods sorts the pods by bucket and priority, lowest first.
func newPods(specs []*v1.Pod, schedule shutdown.Schedule) *pods {
	var order shutdown.PlanOptions
	list := &pods{}
	for _, spec := range specs {
		p := &pod{spec: spec, priority: order.Priority(spec), settled: make(chan struct{})}
		if len(schedule) > 0 {
			p.bucket = schedule[schedule.Index(p.priority)].Priority
		}
		list.all = append(list.all, p)
	}
	slices.SortStableFunc(list.all, func(a, b *pod) int {
		return cmp.Or(cmp.Compare(a.bucket, b.bucket), cmp.Compare(a.priority, b.priority))
	})
	return list
}

// active are the pods that run, are being started or are being stopped.
func (l *pods) active() []*v1.Pod {
	var active []*v1.Pod
	for _, p := range l.all {
		if p.isActive() {
			active = append(active, p.spec)
		}
	}
	return active
}

// find gives the pod of a UID, nil if there is none.
func (l *pods) find(uid types.UID) *pod {
	for _, p := range l.all {
		if p.spec.UID == uid {
			return p
		}
	}
	return nil
}

// told is how many pods were ever told to stop.
func (l *pods) told() int {
	n := 0
	for _, p := range l.all {
		if told, _ := p.toldAt(); !told.IsZero() {
			n++
		}
	}
	return n
}

// ending is how many pods were told to stop and are not gone.
func (l *pods) ending() int {
	n := 0
	for _, p := range l.all {
		if _, ending := p.toldAt(); ending {
			n++
		}
	}
	return n
}

// firstTold is when the first of the pods that are being stopped was told to, or
// now if none is.
func (l *pods) firstTold(now time.Time) time.Time {
	for _, p := range l.all {
		if told, ending := p.toldAt(); ending && told.Before(now) {
			now = told
		}
	}
	return now
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

// finishedLocked tells whether the pod was started and all its containers have
// ended since.
func (p *pod) finishedLocked() bool {
	return len(p.exits) > 0 && !slices.ContainsFunc(p.exits, func(exited <-chan struct{}) bool { return !isClosed(exited) })
}

// tell says that the pod is told to stop, with a grace period in seconds. A start
// that is under way is abandoned.
func (p *pod) tell(granted int64) {
	p.mu.Lock()
	p.granted, p.told, p.finished = granted, time.Now(), p.finishedLocked()
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

// terminate keeps the termination, for the view.
func (p *pod) terminate(t *lifecycle.Termination) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.termination = t
}

// end says that nothing more is done about the pod.
func (p *pod) end(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.gone, p.problem = time.Now(), err
}
