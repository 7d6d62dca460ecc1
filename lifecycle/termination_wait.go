package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/graceperiod"
)

// Done returns a channel that is closed when every container has ended, was given up, or was left
// running.
func (t *Termination) Done() <-chan struct{} { return t.orEndedIfUnset().done }

// Wait waits for [Termination.Done], and returns the result and the error of [Result.Err]. When ctx
// ends first, the termination continues, and Wait returns the result so far and an error that wraps
// ctx's cause and names the containers that have not ended.
//
// If the deadline passed at least [graceperiod.MinimumContainerSeconds] ago, it also records an
// ExceededGracePeriod event, once per termination, as the kubelet does after its own timeout.
func (t *Termination) Wait(ctx context.Context) (Result, error) {
	t = t.orEndedIfUnset()
	select {
	case <-t.done:
		result := t.Result()
		return result, result.Err()
	case <-ctx.Done():
	}
	result, running := t.stillRunning()
	if len(running) == 0 { // the termination has just ended
		return result, result.Err()
	}
	if t.markExceeded() {
		t.recordExceeded()
	}
	return result, stillRunningError(running, context.Cause(ctx))
}

// stillRunning returns the result so far, and the names of the containers that have not ended; none: the termination has ended.
// It locks the mutex.
func (t *Termination) stillRunning() (result Result, names []string) {
	t.pod.mu.Lock()
	defer t.pod.mu.Unlock()
	if !t.inProgress() {
		return t.result(), nil
	}
	for _, s := range t.stops {
		if s.inProgress {
			names = append(names, fullName(t.apiPod, s.container.Name))
		}
	}
	if len(names) == 0 { // the termination waits for a list or a start: name the pod
		names = []string{fullName(t.apiPod, "")}
	}
	slices.Sort(names)
	return t.result(), names
}

// markExceeded notes that the termination in progress has exceeded its deadline by the least time that a container gets to stop
// (2 s). isFirst is true only once, for the caller that records the event. It locks the mutex.
func (t *Termination) markExceeded() (isFirst bool) {
	t.pod.mu.Lock()
	defer t.pod.mu.Unlock()
	isExceeded := t.inProgress() && time.Since(t.deadline.end) >= graceperiod.Duration(graceperiod.MinimumContainerSeconds)
	if !isExceeded || t.exceededRecorded {
		return false
	}
	t.exceededRecorded = true
	return true
}

// recordExceeded records the ExceededGracePeriod event, unless the terminator was closed. If it is closed meanwhile, Close waits
// for recordExceeded.
func (t *Termination) recordExceeded() {
	const wholePod = "" // instead of a container
	if leave, isOpen := t.pod.terminator.enter("the event recorder", t.apiPod, wholePod); isOpen {
		defer leave()
		object := t.apiPod // that the event is about
		t.pod.recordWarning(t.ctx, t.apiPod, wholePod, object, "ExceededGracePeriod", "Container runtime did not kill the pod within specified grace period.")
	}
}

// stillRunningError is the error of a wait that ended with cause. It names the containers that have not ended. If
// the wait timed out, the text starts like the kubelet's.
func stillRunningError(containers []string, cause error) error {
	text := "stopped waiting"
	if errors.Is(cause, context.DeadlineExceeded) {
		text = "timeout waiting to kill pod"
	}
	return fmt.Errorf("%s: containers that have not ended: %s: %w", text, strings.Join(containers, ", "), cause)
}

// fullName returns NAMESPACE/POD/CONTAINER, without the container if it is "".
func fullName(apiPod *v1.Pod, container string) string {
	name := apiPod.Namespace + "/" + apiPod.Name
	if container == "" {
		return name
	}
	return name + "/" + container
}
