package virtualkubelet

import (
	"slices"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubegrace/kubegrace/lifecycle"
)

// containers are those of a pod, in the order of its spec: plain init containers and
// sidecars first. The mutex of the record guards them.
type containers struct {
	all        []*container
	ready      bool // all regular ones and sidecars run
	readySince metav1.Time
}

// newContainers makes those of a spec, none of which has started. The spec must not
// change any more.
func newContainers(spec *v1.PodSpec) containers {
	cs := containers{readySince: metav1.Now()}
	for i := range spec.InitContainers {
		cs.all = append(cs.all, &container{spec: &spec.InitContainers[i], init: true, exited: make(chan struct{})})
	}
	for i := range spec.Containers {
		cs.all = append(cs.all, &container{spec: &spec.Containers[i], exited: make(chan struct{})})
	}
	return cs
}

// refresh notes since when they are ready, or are not.
func (cs *containers) refresh() {
	ready := !slices.ContainsFunc(cs.all, func(c *container) bool {
		return (!c.init || c.sidecar()) && !c.running()
	})
	if ready != cs.ready {
		cs.ready, cs.readySince = ready, metav1.Now()
	}
}

// withID gives the container of an ID, nil if there is none.
func (cs *containers) withID(id string) *container {
	i := slices.IndexFunc(cs.all, func(c *container) bool { return c.id == id && id != "" })
	if i < 0 {
		return nil
	}
	return cs.all[i]
}

// running are those that run; never nil.
func (cs *containers) running() []lifecycle.Container {
	running := []lifecycle.Container{}
	for _, c := range cs.all {
		if c.running() {
			running = append(running, lifecycle.Container{Name: c.spec.Name, ID: c.id, PreStopDone: c.preStopDone})
		}
	}
	return running
}

// mayRun tells whether one of them runs, or was perhaps started.
func (cs *containers) mayRun() bool {
	return slices.ContainsFunc(cs.all, func(c *container) bool { return c.running() || c.lost })
}

// regularRuns tells whether a container runs that is no init container.
func (cs *containers) regularRuns() bool {
	return slices.ContainsFunc(cs.all, func(c *container) bool { return !c.init && c.running() })
}

// giveUp gives those an unknown end that have none.
func (cs *containers) giveUp() {
	for _, c := range cs.all {
		c.down(unknownEnd())
	}
	cs.ready, cs.readySince = false, metav1.Now()
}
