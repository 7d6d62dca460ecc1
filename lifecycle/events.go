package lifecycle

import (
	"cmp"
	"context"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// killingMessage returns the message of the Killing event of a container. An ID of the
// container in the message of the request is replaced by the name, as in the kubelet, unless
// it is a part of the name.
func killingMessage(message, reason, name, id string) string {
	if message == "" {
		return cmp.Or(reason, "Stopping container "+name)
	}
	if strings.Contains(name, id) {
		return message
	}
	return strings.ReplaceAll(message, id, name)
}

// queue calls functions of the embedder that are told what happens to a container, one after
// the other, in another goroutine. Nobody waits for them but at the end, so that a recorder
// of events that is slow or hangs uses up no grace period.
type queue struct {
	waiting []func() error // the first one is under way
}

// addLocked adds a call about the container that a run stops.
func (q *queue) addLocked(r *run, call func()) {
	q.waiting = append(q.waiting, func() error {
		call()
		return nil
	})
	if len(q.waiting) == 1 {
		q.nextLocked(r)
	}
}

// nextLocked starts the first of the calls that are left.
func (q *queue) nextLocked(r *run) {
	r.spawnLocked(r.ctx, "the event recorder", r.pod, r.result.Name, q.waiting[0], func(err error) {
		r.addErrorLocked(err)
		if q.waiting = q.waiting[1:]; len(q.waiting) > 0 {
			q.nextLocked(r)
		}
	})
}

// awaitLocked waits until all calls have returned, at most abandonAfter, so that the events
// are usually there when the termination has ended.
func (q *queue) awaitLocked(r *run) {
	until := time.Now().Add(abandonAfter)
	r.waitLocked(func() bool { return len(q.waiting) == 0 || r.settings.isClosed() }, func() time.Time { return until }, nil)
}

// recordEventLocked records an event of the container.
func (r *run) recordEventLocked(object runtime.Object, eventtype, reason, message string) {
	if recorder := r.settings.Events; recorder != nil {
		r.told.addLocked(r, func() { recorder.Event(object, eventtype, reason, message) })
	}
}

// recordWarningLocked records a warning event and waits for that, at most abandonAfter, so
// that a recorder that hangs does not hold up the caller.
func recordWarningLocked(ctx context.Context, a *attempt, object runtime.Object, reason, message string) {
	recorder := a.settings.Events
	if recorder == nil {
		return
	}
	recorded := a.spawnLocked(ctx, "the event recorder", a.pod, a.result.Name, func() error {
		recorder.Event(object, v1.EventTypeWarning, reason, message)
		return nil
	}, func(error) {})
	until := time.Now().Add(abandonAfter)
	a.waitLocked(func() bool { return *recorded || a.settings.isClosed() }, func() time.Time { return until }, nil)
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
