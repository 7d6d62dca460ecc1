package agent

import (
	"cmp"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubegrace/kubegrace/shutdown/plan"
)

// pods are all pods of the node, in the order in which they stop. The list does
// not change; each pod guards itself.
type pods struct{ all []*pod }

// newPods sorts the pods by bucket and priority, lowest first.
func newPods(specs []*v1.Pod, schedule plan.Schedule) *pods {
	var order plan.Options
	list := &pods{}
	for _, spec := range specs {
		p := &pod{spec: spec, priority: order.Priority(spec), admitted: make(chan struct{}), settled: make(chan struct{})}
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
