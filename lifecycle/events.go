package lifecycle

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/klog/v2"

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

// tellLocked records, once, the event that a container is about to be stopped. Container
// IDs have no place in events, and become the name, as in the kubelet.
func (r *run) tellLocked() {
	if !r.told {
		r.told = true
		message := cmp.Or(r.message, "Stopping container "+r.result.Name)
		r.recordLocked(v1.EventTypeNormal, reasonKilling, strings.ReplaceAll(message, r.result.ID, r.result.Name))
	}
}

// tellFailureLocked makes the first failure of a StopContainer known: one log line for
// each container, one event for all of a pod that fail at the same time, whose recorder
// is not waited for.
func (r *run) tellFailureLocked(err error) {
	if r.table.failing++; r.table.failing == 1 {
		r.eventLocked(r.pod, v1.EventTypeWarning, reasonFailedKill, fmt.Sprintf(messageFailedKill, err))
	}
	r.logLocked(func(l klog.Logger) { l.Error(err, "Failed to stop a container, trying again") })
}

// recordLocked records an event on a container and waits for the recorder, which may be
// slow, until the grace is over, and a moment at least.
func (r *run) recordLocked(eventtype, reason, message string) {
	if r.table.terminator.opts.Events == nil {
		return
	}
	recorded := r.eventLocked(containerReference(r.pod, r.list, r.result.Name), eventtype, reason, message)
	moment := time.Now().Add(abandonAfter)
	r.table.waitLocked(func() bool { return *recorded || r.table.closed }, func() time.Time {
		if at := r.endOfGrace(); at.After(moment) {
			return at
		}
		return moment
	}, nil)
}

// eventLocked calls the recorder, and tells in recorded when it has returned. What goes
// wrong is an error of the container's.
func (r *run) eventLocked(object runtime.Object, eventtype, reason, message string) (recorded *bool) {
	recorded = new(bool)
	if events := r.table.terminator.opts.Events; events != nil {
		r.spawnLocked(r.ctx, "event recorder", func() error {
			events.Event(object, eventtype, reason, message)
			return nil
		}, func(err error) {
			r.noteLocked(err)
			*recorded = true
		})
	}
	return recorded
}

// logLocked logs about a container, without its table: a logger may block.
func (r *run) logLocked(log func(klog.Logger)) {
	id := r.result.ID
	r.table.asideLocked(func() {
		log(klog.FromContext(r.ctx).WithValues("pod", klog.KObj(r.pod), "containerName", r.result.Name, "containerID", id))
	})
}

// recordOverdue records that a pod has not ended in the time that its containers
// had, the floor of their stops included.
func (t *Termination) recordOverdue(ctx context.Context) {
	t.table.mu.Lock()
	a, at := t.active, t.deadline.at()
	t.table.mu.Unlock()
	if a != nil && time.Since(at) >= graceperiod.Duration(graceperiod.MinimumContainerSeconds) {
		t.table.terminator.record(ctx, a.pod, a.pod, reasonOverdue, messageOverdue)
	}
}

// record records a warning in the caller's goroutine; a recorder that panics is logged.
func (tr *Terminator) record(ctx context.Context, object runtime.Object, pod *v1.Pod, reason, message string) {
	if tr.opts.Events != nil {
		guarded(ctx, "event recorder", pod, "", func() error {
			tr.opts.Events.Event(object, v1.EventTypeWarning, reason, message)
			return nil
		}, func(error) {})
	}
}

// containerReference refers to a container in a list of its pod's spec, which an event on
// it is recorded on (the kubelet's GenerateContainerRef).
func containerReference(pod *v1.Pod, list, name string) *v1.ObjectReference {
	return &v1.ObjectReference{
		APIVersion: "v1", Kind: "Pod",
		Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID, ResourceVersion: pod.ResourceVersion,
		FieldPath: list + "{" + name + "}",
	}
}
