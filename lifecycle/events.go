package lifecycle

import (
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"

	"github.com/kubegrace/kubegrace/graceperiod"
)

// The reasons and messages of the kubelet's events.
const (
	reasonKilling         = "Killing"
	reasonFailedPreStop   = "FailedPreStopHook"
	reasonFailedPostStart = "FailedPostStartHook"
	reasonOverdue         = "ExceededGracePeriod"

	messageFailedPreStop   = "PreStopHook failed"
	messageFailedPostStart = "PostStartHook failed"
	messageOverdue         = "Container runtime did not kill the pod within specified grace period."
)

// notInSpec is the kubelet's error for a container that its pod does not have. The
// container is stopped all the same, without a hook and out of order.
func notInSpec(pod *v1.Pod, c Container) error {
	return fmt.Errorf("failed to get containerSpec %q (id=%q) in pod %q when killing container",
		c.Name, c.ID, podText(pod))
}

// recordKilling records the event that a container is about to be stopped.
func (t *Termination) recordKilling(c *container) {
	message := t.message
	if message == "" {
		message = "Stopping container " + c.result.Name
	}
	t.owner.event(t.pod, c.result.Name, v1.EventTypeNormal, reasonKilling, message)
}

// recordFailedPreStop records that a hook failed. What it said stays out of the
// event, which may be read by more people than a hook's output is meant for.
func (c *container) recordFailedPreStop(err error) {
	klog.FromContext(c.termination.life).V(1).Info("PreStop hook failed", "pod", klog.KObj(c.termination.pod),
		"containerName", c.result.Name, "err", err)
	c.termination.owner.event(c.termination.pod, c.result.Name, v1.EventTypeWarning, reasonFailedPreStop, messageFailedPreStop)
}

// recordOverdue records that a pod has not ended in the time that its containers
// had, the floor of their stops included.
func (t *Termination) recordOverdue() {
	overdue := time.Since(t.Deadline()) >= graceperiod.Duration(graceperiod.MinimumContainerSeconds)
	if overdue && t.owner.opts.Events != nil {
		t.owner.opts.Events.Event(t.pod, v1.EventTypeWarning, reasonOverdue, messageOverdue)
	}
}

// event records an event on a container of a pod, as the kubelet does: the object
// is the pod, its fieldPath the container.
func (tr *Terminator) event(pod *v1.Pod, name, eventtype, reason, message string) {
	if tr.opts.Events != nil {
		tr.opts.Events.Event(containerReference(pod, name), eventtype, reason, message)
	}
}

// containerReference refers to a container within its pod (the kubelet's
// GenerateContainerRef).
func containerReference(pod *v1.Pod, name string) *v1.ObjectReference {
	return &v1.ObjectReference{
		APIVersion: "v1", Kind: "Pod",
		Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID, ResourceVersion: pod.ResourceVersion,
		FieldPath: containerList(pod, name) + "{" + name + "}",
	}
}

// containerList is the field of the spec that a container is in.
func containerList(pod *v1.Pod, name string) string {
	for i := range pod.Spec.InitContainers {
		if pod.Spec.InitContainers[i].Name == name {
			return "spec.initContainers"
		}
	}
	for i := range pod.Spec.EphemeralContainers {
		if pod.Spec.EphemeralContainers[i].Name == name {
			return "spec.ephemeralContainers"
		}
	}
	return "spec.containers"
}
