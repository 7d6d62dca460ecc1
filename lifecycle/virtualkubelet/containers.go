package virtualkubelet

import (
	"slices"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubegrace/kubegrace/lifecycle"
)

// containers holds a pod's containers in the order of its spec, init containers first. The record's
// mutex guards it.
type containers struct {
	all        []*container
	ready      bool // all regular containers and sidecars are ready
	readySince metav1.Time
	unreported int // adopted after their end, and ContainerEnded has not returned
}

// newContainers returns the containers of a spec, which must not change afterwards.
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

func (cs *containers) refreshReady() {
	ready := !slices.ContainsFunc(cs.all, func(c *container) bool {
		isReady := c.running() && (c.reported == nil || c.reported.Ready)
		return (!c.init || c.sidecar()) && !isReady
	})
	if ready != cs.ready {
		cs.ready, cs.readySince = ready, metav1.Now()
	}
}

// mayRun reports whether a container runs, will restart, or has an unreported end.
func (cs *containers) mayRun() bool {
	return cs.unreported > 0 || slices.ContainsFunc(cs.all, func(c *container) bool { return c.running() || c.restarting })
}

// incomplete reports whether a regular container runs or will restart.
func (cs *containers) incomplete() bool {
	return slices.ContainsFunc(cs.all, func(c *container) bool { return !c.init && (c.running() || c.restarting) })
}

// terminateUnknown marks the remaining containers as terminated with an unknown exit code.
func (cs *containers) terminateUnknown() {
	for _, c := range cs.all {
		c.markTerminated(unknownEnd())
	}
	cs.ready, cs.readySince = false, metav1.Now()
}

// adopt sets the state of each container; those that are listed are running. It returns how many, in
// the order of the spec, have been started; the others start as in a new pod, unless the pod was deleted
// or has ended. A container that was started and is not running restarts if the restart policy allows
// it, the pod was not deleted, and the init containers before it are known to have succeeded.
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
			cs.unreported++
		}
	}
	cs.refreshReady()
	return begun
}

// observe sets the containers' states from a PodRuntime's status, or from the pod's phase where the
// status has no state.
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
		if c.state = c.stateByPhase(status); c.reported != nil && (c.reported.State.Terminated != nil || !isTerminal(status)) {
			c.state = *c.reported.State.DeepCopy()
		}
	}
	cs.refreshReady()
}
