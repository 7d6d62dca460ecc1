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
	result, mustRecordExceeded, runningErr := t.stillRunning(context.Cause(ctx))
	if runningErr == nil { // the termination has just ended
		return result, result.Err()
	}
	if !mustRecordExceeded {
		return result, runningErr
	}
	const wholePod = "" // instead of a container
	if leave, isOpen := t.pod.terminator.enter("the event recorder", t.apiPod, wholePod); isOpen {
		defer leave()
		t.pod.recordWarning(t.ctx, t.apiPod, wholePod, t.apiPod, "ExceededGracePeriod", "Container runtime did not kill the pod within specified grace period.")
	}
	return result, runningErr
}

// stillRunning returns the result so far, for a wait that ended with cause. runningErr names the containers that have not ended;
// nil: the termination has ended. mustRecordExceeded says that the caller must record the ExceededGracePeriod event, without the
// mutex. It is true once per termination, in the first call 2 s or more after the deadline (2 s is the least time that a
// container gets to stop). stillRunning locks the mutex.
func (t *Termination) stillRunning(cause error) (result Result, mustRecordExceeded bool, runningErr error) {
	t.pod.mu.Lock()
	defer t.pod.mu.Unlock()
	result = t.result()
	if !t.inProgress() {
		return result, false, nil
	}
	var names []string
	for _, s := range t.stops {
		if s.inProgress {
			names = append(names, fullName(t.apiPod, s.container.Name))
		}
	}
	if len(names) == 0 { // the termination waits for a list or a start: name the pod
		names = []string{fullName(t.apiPod, "")}
	}
	slices.Sort(names)
	isExceeded := time.Since(t.deadline.end) >= graceperiod.Duration(graceperiod.MinimumContainerSeconds)
	mustRecordExceeded = isExceeded && !t.exceededRecorded
	t.exceededRecorded = t.exceededRecorded || isExceeded
	return result, mustRecordExceeded, stillRunningError(names, cause)
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
