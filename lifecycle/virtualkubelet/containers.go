package virtualkubelet

import (
	"slices"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubegrace/kubegrace/lifecycle"
)

// containers holds a pod's containers in the order of its spec, init containers first. The managedPod's
// mutex guards it.
type containers struct {
	all            []*container
	ready          bool        // the condition Ready of the last status that was written
	readyChangedAt metav1.Time // when ready last changed; at first the creation
}

// newContainers returns the containers of a spec. It keeps pointers into the spec: nobody may change the
// spec from then on.
func newContainers(spec *v1.PodSpec) containers {
	cs := containers{readyChangedAt: metav1.Now()}
	for i := range spec.InitContainers {
		cs.all = append(cs.all, &container{spec: &spec.InitContainers[i], isInit: true, exited: make(chan struct{})})
	}
	for i := range spec.Containers {
		cs.all = append(cs.all, &container{spec: &spec.Containers[i], exited: make(chan struct{})})
	}
	return cs
}

// wasStarted reports whether a container was started, by this agent or a previous one.
func (cs *containers) wasStarted() bool { return slices.ContainsFunc(cs.all, (*container).wasStarted) }

// mayRun reports whether the pod's final status must still wait: a container runs, will restart, or has ended
// and ContainerEnded has not succeeded for it.
func (cs *containers) mayRun() bool {
	return slices.ContainsFunc(cs.all, func(c *container) bool { return c.isRunning() || c.restarting || c.awaitsContainerEnded })
}

// hasWork reports whether a regular container runs or will restart. Init containers and sidecars do not keep a
// pod from completing.
func (cs *containers) hasWork() bool {
	return slices.ContainsFunc(cs.all, func(c *container) bool { return !c.isInit && (c.isRunning() || c.restarting) })
}

// assumeEnded marks every container without an end as terminated with an unknown exit code (137), because in the
// pod's final status no container may be running or waiting.
func (cs *containers) assumeEnded() {
	for _, c := range cs.all {
		c.markTerminated(unknownEnd())
	}
}

// adopt sets the state of each container of a pod that a previous agent has left. Listed containers are running.
// startedCount is the number of containers, in the order of the spec, that need no first start: those up to the last
// one that was started, or all if the pod was deleted or has ended. The others start as in a new pod.
//
// A started container that is not running restarts if the restart policy allows it, the pod was not deleted and has not
// ended, and the init containers before it are known to have succeeded.
func (cs *containers) adopt(pod *v1.Pod, listed []lifecycle.Container) (startedCount int) {
	lastRuns := make([]lastRun, len(cs.all))
	for i, c := range cs.all {
		lastRuns[i] = c.findLastRun(pod, listed)
		if lastRuns[i].exists() {
			startedCount = i + 1
		}
	}
	mayRestart := pod.DeletionTimestamp == nil && !isTerminal(&pod.Status) // becomes false after a failed init container
	if !mayRestart {
		startedCount = len(cs.all)
	}
	for i, c := range cs.all[:startedCount] {
		wasLaterStarted := i < startedCount-1
		hasSucceeded := c.isPlainInit() && wasLaterStarted // even if its status is lost (the kubelet's computeInitContainerActions)
		c.adopt(pod, lastRuns[i], mayRestart && !hasSucceeded)
		mayRestart = mayRestart && c.letsLaterRestart()
		c.awaitsContainerEnded = c.state.Terminated != nil && c.id != "" // resume calls ContainerEnded for it
	}
	return startedCount
}

// findLastRun returns the last run of the container according to the runtime's list and the pod's status, from which the
// container also takes its ID and restart count.
func (c *container) findLastRun(pod *v1.Pod, listed []lifecycle.Container) (last lastRun) {
	if status := c.findStatus(slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses)); status != nil {
		last.state = c.adoptStatus(status)
	}
	if running := c.findRun(listed); running != nil {
		last.listedID = &running.ID
	}
	return last
}

// find returns a pointer to the first element that matches, or nil.
func find[T any](all []T, matches func(*T) bool) *T {
	for i := range all {
		if matches(&all[i]) {
			return &all[i]
		}
	}
	return nil
}

// findStatus returns the container's status, or nil.
func (c *container) findStatus(statuses []v1.ContainerStatus) *v1.ContainerStatus {
	return find(statuses, func(s *v1.ContainerStatus) bool { return s.Name == c.spec.Name })
}

// findRun returns the run of the container that a list of the runtime has, or nil.
func (c *container) findRun(listed []lifecycle.Container) *lifecycle.Container {
	return find(listed, func(l *lifecycle.Container) bool { return l.Name == c.spec.Name })
}

// setFromStatus sets the containers' states from the status that a PodRuntime has listed. A container gets the state
// that the pod's phase implies if the list has no status of it, or one that is not terminated although the pod has
// ended.
func (cs *containers) setFromStatus(status *v1.PodStatus) {
	for _, c := range cs.all {
		reported := status.ContainerStatuses
		if c.isInit {
			reported = status.InitContainerStatuses
		}
		c.reported = c.findStatus(reported)
		contradictsPhase := c.reported != nil && c.reported.State.Terminated == nil && isTerminal(status)
		if c.reported == nil || contradictsPhase {
			c.state = c.stateByPhase(status)
		} else {
			c.state = *c.reported.State.DeepCopy()
		}
	}
}
