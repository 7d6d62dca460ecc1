package lifecycle

import (
	"context"
	"fmt"

	v1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
)

// The reasons and messages of the kubelet's events.
const (
	reasonKilling       = "Killing"
	reasonFailedPreStop = "FailedPreStopHook"

	messageFailedPreStop = "PreStopHook failed"
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
	t.event(c, v1.EventTypeNormal, reasonKilling, message)
}

// recordFailedPreStop records that a hook failed. What it said stays out of the
// event, which may be read by more people than a hook's output is meant for.
func (c *container) recordFailedPreStop(ctx context.Context, err error) {
	klog.FromContext(ctx).Error(err, "PreStop hook failed", "pod", klog.KObj(c.termination.pod),
		"containerName", c.result.Name, "containerID", c.result.ID)
	c.termination.event(c, v1.EventTypeWarning, reasonFailedPreStop, messageFailedPreStop)
}

// event records an event on a container of the pod, as the kubelet does: the
// object is the pod, its fieldPath the container.
func (t *Termination) event(c *container, eventtype, reason, message string) {
	if t.owner.opts.Events == nil {
		return
	}
	t.owner.opts.Events.Event(containerReference(t.pod, c.result.Name), eventtype, reason, message)
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
