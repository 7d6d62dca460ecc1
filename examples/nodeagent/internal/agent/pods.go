package agent

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubegrace/kubegrace/shutdown/plan"
)

// pods are the pods of the node in the order in which they stop. The mutex guards the
// list; each pod has a mutex of its own.
type pods struct {
	schedule plan.Schedule

	mu  sync.Mutex // guards the field below
	all []*pod     // replaced, never changed
}

// newPods returns the pods that exist when the agent starts.
func newPods(specs []*v1.Pod, schedule plan.Schedule) *pods {
	list := &pods{schedule: schedule}
	for _, spec := range specs {
		list.add(list.new(spec))
	}
	return list
}

// new returns a pod that has not been started and does not add it.
func (l *pods) new(spec *v1.Pod) *pod {
	var order plan.Options
	p := &pod{
		spec: spec, priority: order.Priority(spec),
		admitted: make(chan struct{}), startEnded: make(chan struct{}), stopRequested: make(chan struct{}), changed: make(chan struct{}),
	}
	if len(l.schedule) > 0 {
		p.bucket = l.schedule[l.schedule.Index(p.priority)].Priority
	}
	return p
}

// list returns the pods. The slice must not be modified.
func (l *pods) list() []*pod {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all
}

// add inserts a pod by bucket and priority, the lowest first.
func (l *pods) add(p *pod) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(slices.Clone(l.all), p)
	slices.SortStableFunc(l.all, func(a, b *pod) int {
		return cmp.Or(cmp.Compare(a.bucket, b.bucket), cmp.Compare(a.priority, b.priority))
	})
}

// remove removes a pod.
func (l *pods) remove(p *pod) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = slices.DeleteFunc(slices.Clone(l.all), func(other *pod) bool { return other == p })
}

// active returns the pods that run, are being started or are being stopped.
func (l *pods) active() []*v1.Pod {
	var active []*v1.Pod
	for _, p := range l.list() {
		if p.isActive() {
			active = append(active, p.spec)
		}
	}
	return active
}

// specs returns all pods, whether they run or not.
func (l *pods) specs() []*v1.Pod {
	list := l.list()
	specs := make([]*v1.Pod, 0, len(list))
	for _, p := range list {
		specs = append(specs, p.spec)
	}
	return specs
}

// find returns the pod with a UID, or nil.
func (l *pods) find(uid types.UID) *pod {
	for _, p := range l.list() {
		if p.spec.UID == uid {
			return p
		}
	}
	return nil
}

// named returns the pod with a name: NAMESPACE/NAME, or NAME if only one pod has it.
func (l *pods) named(name string) (*pod, error) {
	var found []*pod
	for _, p := range l.list() {
		if p.name() == name || !strings.Contains(name, "/") && p.spec.Name == name {
			found = append(found, p)
		}
	}
	switch len(found) {
	case 0:
		return nil, fmt.Errorf("there is no pod %q", name)
	case 1:
		return found[0], nil
	}
	return nil, errors.New("several pods have the name " + name + ", say NAMESPACE/NAME")
}

// shutdownStops returns how many pods shutdowns have told to stop.
func (l *pods) shutdownStops() int {
	n := 0
	for _, p := range l.list() {
		if began, _ := p.shutdownStop(); !began.IsZero() {
			n++
		}
	}
	return n
}

// shutdownStopsUnderWay returns how many pods a shutdown is stopping.
func (l *pods) shutdownStopsUnderWay() int {
	n := 0
	for _, p := range l.list() {
		if _, underWay := p.shutdownStop(); underWay {
			n++
		}
	}
	return n
}

// shutdownBegan returns when a shutdown told the first of the pods to stop that it is
// still stopping, or now if there is none.
func (l *pods) shutdownBegan(now time.Time) time.Time {
	for _, p := range l.list() {
		if began, underWay := p.shutdownStop(); underWay && began.Before(now) {
			now = began
		}
	}
	return now
}
