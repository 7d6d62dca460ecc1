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
	untold     int // that had ended before they were adopted, of which ContainerEnded has not been told
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

// mayRun reports whether a container runs or is to be started again, or its end is not told.
func (cs *containers) mayRun() bool {
	return cs.untold > 0 || slices.ContainsFunc(cs.all, func(c *container) bool { return c.running() || c.restarting })
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

// adopt sets the state of each container, of which those run that are listed, and returns how many, in
// the order of the spec, have begun. The others are to be started as in a new pod, unless the pod was
// deleted or has ended. One that has begun and does not run is started again if the restart policy
// says so, the pod was not deleted, and its init containers are known to have succeeded.
func (cs *containers) adopt(pod *v1.Pod, listed []lifecycle.Container) (begun int) {
	mayRestart := pod.DeletionTimestamp == nil
	statuses := slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses)
	lasts, running := make([]v1.ContainerState, len(cs.all)), make([]*string, len(cs.all))
	for i, c := range cs.all {
		if at := slices.IndexFunc(statuses, func(s v1.ContainerStatus) bool { return s.Name == c.spec.Name }); at >= 0 {
			lasts[i] = c.adoptStatus(&statuses[at])
		}
		if at := slices.IndexFunc(listed, func(r lifecycle.Container) bool { return r.Name == c.spec.Name }); at >= 0 {
			running[i] = &listed[at].ID
		}
		if running[i] != nil || lasts[i] != (v1.ContainerState{}) {
			begun = i + 1
		}
	}
	if !mayRestart || isTerminal(&pod.Status) {
		begun = len(cs.all)
	}
	for i, c := range cs.all[:begun] {
		c.adopt(running[i], mayRestart, pod, lasts[i])
		switch {
		case !c.init:
		case c.state.Terminated != nil:
			mayRestart = mayRestart && c.state.Terminated.ExitCode == 0
		default:
			mayRestart = mayRestart && (c.restarting || c.sidecar())
		}
		if c.state.Terminated != nil && c.id != "" {
			cs.untold++
		}
	}
	cs.refreshReady()
	return begun
}

// observe sets the states of the containers as the pod runtime says, or as the phase of the pod is
// where it says nothing.
func (cs *containers) observe(status *v1.PodStatus) {
	for _, c := range cs.all {
		reported := status.ContainerStatuses
		if c.init {
			reported = status.InitContainerStatuses
		}
		c.reported = nil
		for i := range reported {
			if reported[i].Name == c.spec.Name {
				c.reported = &reported[i]
			}
		}
		if c.state = c.byPhase(status); c.reported != nil && (c.reported.State.Terminated != nil || !isTerminal(status)) {
			c.state = *c.reported.State.DeepCopy()
		}
	}
	cs.refreshReady()
}
