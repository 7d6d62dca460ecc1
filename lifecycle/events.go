package lifecycle

import (
	"context"
	"errors"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// recordKilling records the Killing event of the container.
func (s *containerStop) recordKilling() {
	object := containerReference(s.apiPod, s.role, s.container.Name)
	s.record(object, v1.EventTypeNormal, "Killing", killingMessage(s.options.message, s.container))
}

// killingMessage returns the message of the Killing event; by default it names the container. Like the kubelet, it
// replaces the container's ID in the message with the name, so that the API server can aggregate the events of the
// container's restarts. It does not if the name contains the ID (or the ID is empty): that would garble the message.
func killingMessage(message string, c Container) string {
	if message == "" {
		return "Stopping container " + c.Name
	}
	if strings.Contains(c.Name, c.ID) {
		return message
	}
	return strings.ReplaceAll(message, c.ID, c.Name)
}

// record records an event about object, which is the container's reference or its pod. It locks the mutex.
func (s *containerStop) record(object runtime.Object, eventtype, reason, message string) {
	s.pod.mu.Lock()
	defer s.pod.mu.Unlock()
	s.recordLocked(object, eventtype, reason, message)
}

// recordLocked records an event about object, which is the container's reference or its pod. The caller holds the mutex.
func (s *containerStop) recordLocked(object runtime.Object, eventtype, reason, message string) {
	if recorder := s.pod.terminator.opts.Events; recorder != nil {
		s.notifyLocked("the event recorder", func() { recorder.Event(object, eventtype, reason, message) })
	}
}

// notifyLocked runs notify, which calls the event recorder or OnHook, in another goroutine, so that a slow
// callback does not use up the grace period. The calls for one container run in order: each waits for the previous
// one. Nothing else waits for them but the end of the container's stop. If notify panics, the error goes into the
// result. what names the call in the log. The caller holds the mutex.
func (s *containerStop) notifyLocked(what string, notify func()) {
	previous, notified := s.lastNotified, make(chan struct{})
	s.lastNotified = notified
	ctx, apiPod := s.ctx, s.apiPod // begin may change them before notify is called
	s.pod.spawn(agentCall{ctx: ctx, name: what, apiPod: apiPod, container: s.container.Name, do: func() error {
		if previous != nil { // nil: this is the first call
			<-previous
		}
		defer watchCall(ctx, what, apiPod, s.container.Name)()
		notify()
		return nil
	}, returned: func(err error) {
		if err != nil { // notify panicked
			s.addError(err)
		}
		close(notified) // last: whoever waits for it reads the result next
	}})
}

// addError adds an error to the container's result: that of a callback that panicked.
func (s *containerStop) addError(err error) {
	s.pod.mu.Lock()
	defer s.pod.mu.Unlock()
	s.result.Err = errors.Join(s.result.Err, err)
}

// waitForEvents waits until the container's events are recorded and OnHook has returned, but at most 1 s (waitBriefly): a
// recorder that hangs must not prevent the end of the termination.
func (s *containerStop) waitForEvents() {
	s.pod.mu.Lock()
	notified := s.lastNotified
	s.pod.mu.Unlock()
	if notified == nil { // there was no event and no OnHook
		return
	}
	waitBriefly(s.ctx, notified)
}

// waitBriefly waits until done is closed, at most for abandonAfter, which is 1 s, and not after the end of ctx.
func waitBriefly(ctx context.Context, done <-chan struct{}) {
	timer := time.NewTimer(abandonAfter)
	defer timer.Stop()
	select {
	case <-done:
	case <-timer.C:
	case <-ctx.Done():
	}
}

// recordWarning records a Warning event for PostStart or Termination.Wait; the stop of a container uses record. It waits
// for the recorder, but only briefly, because the recorder may hang. container is "" if the event is about the whole pod.
func (p *podState) recordWarning(ctx context.Context, apiPod *v1.Pod, container string, object runtime.Object, reason, message string) {
	recorder := p.terminator.opts.Events
	if recorder == nil {
		return
	}
	const name = "the event recorder"
	recorded := make(chan struct{})
	p.spawn(agentCall{ctx: ctx, name: name, apiPod: apiPod, container: container, do: func() error {
		defer watchCall(ctx, name, apiPod, container)()
		recorder.Event(object, v1.EventTypeWarning, reason, message)
		return nil
	}, returned: func(error) { close(recorded) }}) // a panic has been logged
	waitBriefly(p.terminator.ctx, recorded)
}

// containerReference returns the object of a container's events: the pod, with the path of the container
// in its spec (the kubelet's GenerateContainerRef).
func containerReference(pod *v1.Pod, r role, name string) *v1.ObjectReference {
	return &v1.ObjectReference{
		APIVersion: "v1", Kind: "Pod",
		Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID, ResourceVersion: pod.ResourceVersion,
		FieldPath: r.specField() + "{" + name + "}",
	}
}
