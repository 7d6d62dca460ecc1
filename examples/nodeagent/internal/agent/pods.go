package agent

import (
	"cmp"
	"slices"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubegrace/kubegrace/shutdown/plan"
)

// pods are all pods of the node, in the order in which they stop. Each pod guards itself.
type pods struct {
	schedule plan.Schedule

	mu  sync.Mutex // guards all
	all []*pod     // replaced, never changed
}

// newPods makes the list of pods that are there from the beginning.
func newPods(specs []*v1.Pod, schedule plan.Schedule) *pods {
	list := &pods{schedule: schedule}
	for _, spec := range specs {
		list.add(list.new(spec))
	}
	return list
}

// new is a pod that has not been started.
func (l *pods) new(spec *v1.Pod) *pod {
	var order plan.Options
	p := &pod{
		spec: spec, priority: order.Priority(spec),
		admitted: make(chan struct{}), settled: make(chan struct{}), leaving: make(chan struct{}), news: make(chan struct{}),
	}
	if len(l.schedule) > 0 {
		p.bucket = l.schedule[l.schedule.Index(p.priority)].Priority
	}
	return p
}

// list is what there is now; it must not be changed.
func (l *pods) list() []*pod {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all
}

// add puts a pod into its place: by bucket and priority, the lowest first.
func (l *pods) add(p *pod) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(slices.Clone(l.all), p)
	slices.SortStableFunc(l.all, func(a, b *pod) int {
		return cmp.Or(cmp.Compare(a.bucket, b.bucket), cmp.Compare(a.priority, b.priority))
	})
}

// remove takes a pod out.
func (l *pods) remove(p *pod) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = slices.DeleteFunc(slices.Clone(l.all), func(other *pod) bool { return other == p })
}

// active are the pods that run, are being started or are being stopped.
func (l *pods) active() []*v1.Pod {
	var active []*v1.Pod
	for _, p := range l.list() {
		if p.isActive() {
			active = append(active, p.spec)
		}
	}
	return active
}

// specs are all pods, whether they run or not.
func (l *pods) specs() []*v1.Pod {
	list := l.list()
	specs := make([]*v1.Pod, 0, len(list))
	for _, p := range list {
		specs = append(specs, p.spec)
	}
	return specs
}

// find gives the pod of a UID, nil if there is none.
func (l *pods) find(uid types.UID) *pod {
	for _, p := range l.list() {
		if p.spec.UID == uid {
			return p
		}
	}
	return nil
}

// told is how many pods were ever told to stop.
func (l *pods) told() int {
	n := 0
	for _, p := range l.list() {
		if told, _ := p.toldAt(); !told.IsZero() {
			n++
		}
	}
	return n
}

// ending is how many pods were told to stop and are not gone.
func (l *pods) ending() int {
	n := 0
	for _, p := range l.list() {
		if _, ending := p.toldAt(); ending {
			n++
		}
	}
	return n
}

// firstTold is when the first of the pods that are being stopped was told to, or
// now if none is.
func (l *pods) firstTold(now time.Time) time.Time {
	for _, p := range l.list() {
		if told, ending := p.toldAt(); ending && told.Before(now) {
			now = told
		}
	}
	return now
}
