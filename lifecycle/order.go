package lifecycle

import (
	"time"

	v1 "k8s.io/api/core/v1"
)

// role is what a container is in its pod's spec, and so its part in the order.
type role int

const (
	// roleOther is out of order: ephemeral, plain init, or not in the spec.
	roleOther role = -2
	// roleMain is a regular container.
	roleMain role = -1
	// A role from 0 on is that of a sidecar, a restartable init container
	// (KEP-753): its index among the init containers.
	roleFirstSidecar role = 0
)

// findContainer finds a container by name in a pod's spec, nil if there is none.
func findContainer(pod *v1.Pod, name string) (*v1.Container, role) {
	for i := range pod.Spec.Containers {
		if c := &pod.Spec.Containers[i]; c.Name == name {
			return c, roleMain
		}
	}
	for i := range pod.Spec.InitContainers {
		c := &pod.Spec.InitContainers[i]
		if c.Name != name {
			continue
		}
		if isSidecar(c) {
			return c, roleFirstSidecar + role(i)
		}
		return c, roleOther
	}
	for i := range pod.Spec.EphemeralContainers {
		if e := &pod.Spec.EphemeralContainers[i]; e.Name == name {
			return (*v1.Container)(&e.EphemeralContainerCommon), roleOther
		}
	}
	return nil, roleOther
}

// isSidecar tells whether an init container is restartable.
func isSidecar(c *v1.Container) bool {
	return c.RestartPolicy != nil && *c.RestartPolicy == v1.ContainerRestartPolicyAlways
}

// mustWaitFor tells whether a container stops after another one: a sidecar after
// all main containers, and after every sidecar declared later. The kubelet has it wait
// for the next sidecar only, which is the same unless that one does not run.
func (r role) mustWaitFor(other role) bool {
	return r >= roleFirstSidecar && (other == roleMain || other > r)
}

// firstLocked gives a container that must have ended before another one is stopped,
// nil if that may be stopped now: nobody that it waits for is left, or the time to
// wait is over. Containers that do not run are not in the termination, and so are
// waited for by none (k/k#125880).
func (c *container) firstLocked() *container {
	if !c.inOrder || c.role < roleFirstSidecar || len(c.parts) == 0 || c.grace.Err() != nil {
		return nil
	}
	for _, other := range c.parts[len(c.parts)-1].active.containers {
		if other.result.Outcome == "" && c.role.mustWaitFor(other.role) {
			return other
		}
	}
	return nil
}

// awaitTurn waits until a container may be stopped.
func (c *container) awaitTurn() {
	c.table.mu.Lock()
	defer c.table.unlock()
	if c.firstLocked() == nil {
		return
	}
	began := time.Now()
	c.result.Phase = PhaseWaiting
	c.table.waitLocked(func() bool { return c.firstLocked() == nil }, c.grace.Done())
	c.result.Waited = time.Since(began)
}
