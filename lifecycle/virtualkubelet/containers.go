package virtualkubelet

import (
	"slices"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubegrace/kubegrace/lifecycle"
)

// containers are the containers of a pod in the order of its spec, with the init
// containers first. The record's mutex guards them.
type containers struct {
	all        []*container
	ready      bool // all regular containers and sidecars run
	readySince metav1.Time
}

// newContainers returns the containers of a spec, none of which has started. The spec
// must not change afterwards.
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

// refreshReady updates ready and the time of its last change.
func (cs *containers) refreshReady() {
	ready := !slices.ContainsFunc(cs.all, func(c *container) bool {
		isReady := c.running() && (c.reported == nil || c.reported.Ready)
		return (!c.init || c.sidecar()) && !isReady
	})
	if ready != cs.ready {
		cs.ready, cs.readySince = ready, metav1.Now()
	}
}

// withID returns the container with an ID, or nil.
func (cs *containers) withID(id string) *container {
	i := slices.IndexFunc(cs.all, func(c *container) bool { return c.id == id && id != "" })
	if i < 0 {
		return nil
	}
	return cs.all[i]
}

// members returns the running containers; never nil.
func (cs *containers) members() []lifecycle.Container {
	running := []lifecycle.Container{}
	for _, c := range cs.all {
		if c.running() {
			running = append(running, lifecycle.Container{Name: c.spec.Name, ID: c.id, PreStopDone: c.preStopDone})
		}
	}
	return running
}

// mayRun reports whether a container runs, may run or is to be started again.
func (cs *containers) mayRun() bool {
	return slices.ContainsFunc(cs.all, func(c *container) bool { return c.running() || c.maybeStarted || c.restarting })
}

// maybeStarted reports whether a container may run although its start did not tell so.
func (cs *containers) maybeStarted() bool {
	return slices.ContainsFunc(cs.all, func(c *container) bool { return c.maybeStarted })
}

// goesOn reports whether a regular container runs or is to be started again.
func (cs *containers) goesOn() bool {
	return slices.ContainsFunc(cs.all, func(c *container) bool { return !c.init && (c.running() || c.restarting) })
}

// terminateUnknown terminates the containers that have not terminated, with an unknown
// exit code.
func (cs *containers) terminateUnknown() {
	for _, c := range cs.all {
		c.markTerminated(unknownEnd())
	}
	cs.ready, cs.readySince = false, metav1.Now()
}
