package lifecycle

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kubegrace/kubegrace/graceperiod"
)

// The reasons and messages of the kubelet's events.
const (
	reasonKilling         = "Killing"
	reasonFailedPreStop   = "FailedPreStopHook"
	reasonFailedPostStart = "FailedPostStartHook"
	reasonFailedKill      = "FailedKillPod"
	reasonOverdue         = "ExceededGracePeriod"

	messageFailedPreStop   = "PreStopHook failed"
	messageFailedPostStart = "PostStartHook failed"
	messageFailedKill      = "error killing pod: %v"
	messageOverdue         = "Container runtime did not kill the pod within specified grace period."
)

// notInSpec is the kubelet's error for a container that its pod does not have; its
// reason is the message of the event. The container is stopped all the same, without a
// hook and out of order.
func notInSpec(pod *v1.Pod, c ContainerResult, message string) error {
	return fmt.Errorf("failed to get containerSpec %q (id=%q) in pod %q when killing container for reason %q",
		c.Name, c.ID, podText(pod), message)
}

// tell records, once, the event that a container is about to be stopped. Container IDs
// have no place in events, and become the name, as in the kubelet.
func (c *container) tell() {
	c.table.mu.Lock()
	told, id, name := c.told, c.result.ID, c.result.Name
	message := strings.ReplaceAll(cmp.Or(c.message, "Stopping container "+name), id, name)
	c.told = true
	c.table.mu.Unlock()
	if !told {
		c.event(v1.EventTypeNormal, reasonKilling, message)
	}
}

// recordFailedPreStop records that a hook failed. What it said stays out of the
// event, which may be read by more people than a hook's output is meant for.
func (c *container) recordFailedPreStop() {
	hook := c.snapshot().Hook
	if hook.Outcome != HookFailed {
		return
	}
	c.logger().V(1).Info("PreStop hook failed", "err", hook.Err)
	c.event(v1.EventTypeWarning, reasonFailedPreStop, messageFailedPreStop)
}

// event records an event on a container and waits for the recorder, which may be slow.
func (c *container) event(eventtype, reason, message string) {
	if events := c.table.terminator.opts.Events; events != nil {
		object := containerReference(c.pod, c.result.Name)
		c.call("event recorder", func() { events.Event(object, eventtype, reason, message) })
	}
}

// recordFailedKill records that a StopContainer has failed, and does not wait for the
// recorder.
func (c *container) recordFailedKill(err error) {
	events, pod := c.table.terminator.opts.Events, c.pod
	if events == nil {
		return
	}
	c.spawn(c.life, "event recorder", func() error {
		events.Event(pod, v1.EventTypeWarning, reasonFailedKill, fmt.Sprintf(messageFailedKill, err))
		return nil
	}, c.note)
}

// recordOverdue records that a pod has not ended in the time that its containers
// had, the floor of their stops included.
func (t *Termination) recordOverdue(ctx context.Context) {
	t.table.mu.Lock()
	a, at := t.active, t.deadline.at()
	t.table.mu.Unlock()
	if a != nil && time.Since(at) >= graceperiod.Duration(graceperiod.MinimumContainerSeconds) {
		t.table.terminator.record(ctx, a.pod, a.pod, "", reasonOverdue, messageOverdue)
	}
}

// record records a warning in the caller's goroutine; a recorder that panics is logged.
func (tr *Terminator) record(ctx context.Context, object runtime.Object, pod *v1.Pod, name, reason, message string) {
	if tr.opts.Events != nil {
		guarded(ctx, "event recorder", pod, name, func() error {
			tr.opts.Events.Event(object, v1.EventTypeWarning, reason, message)
			return nil
		}, func(error) {})
	}
}

// containerReference refers to a container within its pod, which an event on it is
// recorded on (the kubelet's GenerateContainerRef).
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
