package lifecycle

import (
	"cmp"
	"context"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// recordKillingLocked records the Killing event of the container, once. A container ID in
// the message is replaced by the name, as in the kubelet.
func (r *run) recordKillingLocked() {
	announced := r.announced
	r.announced = true
	if announced || r.table.terminator.opts.Events == nil {
		return
	}
	message := cmp.Or(r.message, "Stopping container "+r.result.Name)
	r.recordEventLocked(r.reference(), v1.EventTypeNormal, "Killing", strings.ReplaceAll(message, r.result.ID, r.result.Name))
}

// recordEventLocked records an event in another goroutine, after the events before it. The
// run does not wait for it, so that a recorder that is slow or hangs uses up no grace
// period.
func (r *run) recordEventLocked(object runtime.Object, eventtype, reason, message string) {
	recorder := r.table.terminator.opts.Events
	if recorder == nil {
		return
	}
	r.events = append(r.events, func() error {
		recorder.Event(object, eventtype, reason, message)
		return nil
	})
	if len(r.events) == 1 {
		r.recordNextEventLocked()
	}
}

// recordNextEventLocked records the first of the events that are left.
func (r *run) recordNextEventLocked() {
	r.spawnLocked(r.ctx, "event recorder", r.events[0], func(err error) {
		r.addErrorLocked(err)
		if r.events = r.events[1:]; len(r.events) > 0 {
			r.recordNextEventLocked()
		}
	})
}

// awaitEventsLocked waits until the events of the container are recorded, at most
// abandonAfter, so that they are usually there when the termination has ended.
func (r *run) awaitEventsLocked() {
	until := time.Now().Add(abandonAfter)
	r.table.waitLocked(func() bool { return len(r.events) == 0 || r.table.closed }, func() time.Time { return until }, nil)
}

// recordWarningLocked records a warning event and waits for that, at most abandonAfter, so
// that a recorder that hangs does not hold up the caller.
func (c *container) recordWarningLocked(ctx context.Context, object runtime.Object, reason, message string) {
	recorder := c.table.terminator.opts.Events
	if recorder == nil {
		return
	}
	recorded := c.spawnLocked(ctx, "event recorder", func() error {
		recorder.Event(object, v1.EventTypeWarning, reason, message)
		return nil
	}, func(error) {})
	until := time.Now().Add(abandonAfter)
	c.table.waitLocked(func() bool { return *recorded || c.table.closed }, func() time.Time { return until }, nil)
}

// reference returns the object that the events of the container are recorded on.
func (r *run) reference() *v1.ObjectReference {
	return containerReference(r.pod, r.role, r.result.Name)
}

// containerReference returns a reference to a container within its pod, for events (the
// kubelet's GenerateContainerRef).
func containerReference(pod *v1.Pod, r role, name string) *v1.ObjectReference {
	return &v1.ObjectReference{
		APIVersion: "v1", Kind: "Pod",
		Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID, ResourceVersion: pod.ResourceVersion,
		FieldPath: r.list() + "{" + name + "}",
	}
}
