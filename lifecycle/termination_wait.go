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
func (t *Termination) Done() <-chan struct{} { return t.orNone().done }

// Wait waits for [Termination.Done], and returns the result and the error of [Result.Err]. When ctx
// ends first, the termination continues, and Wait returns the result so far and a [*StillRunningError].
// If the deadline passed at least [graceperiod.MinimumContainerSeconds] ago, it also records an
// ExceededGracePeriod event, once per termination, as the kubelet does after its own timeout.
func (t *Termination) Wait(ctx context.Context) (Result, error) {
	t = t.orNone()
	select {
	case <-t.done:
		result := t.Result()
		return result, result.Err()
	case <-ctx.Done():
	}
	result, mustRecordExceeded, running := t.stillRunning(context.Cause(ctx))
	if running == nil { // the termination has ended meanwhile
		return result, result.Err()
	}
	if mustRecordExceeded {
		t.pod.recordWarning(t.ctx, t.apiPod, "", t.apiPod, "ExceededGracePeriod", "Container runtime did not kill the pod within specified grace period.")
	}
	return result, running
}

// stillRunning returns the result so far, and as running a [*StillRunningError] that names the containers
// that have not ended; nil if the termination has ended. mustRecordExceeded is true once per termination, in the
// first call 2 s or more after the deadline (2 s is the least time that a container gets to stop): the caller then
// records the ExceededGracePeriod event, without the mutex. stillRunning locks the mutex.
func (t *Termination) stillRunning(cause error) (result Result, mustRecordExceeded bool, running error) {
	t.pod.mu.Lock()
	defer t.pod.mu.Unlock()
	if result = t.result(); !t.inProgress() {
		return result, false, nil
	}
	var names []string
	for _, s := range t.stops {
		if s.inProgress() {
			names = append(names, fullName(t.apiPod, s.container.Name))
		}
	}
	if len(names) == 0 { // it waits for a list or a start
		names = []string{fullName(t.apiPod, "")}
	}
	slices.Sort(names)
	isExceeded := time.Since(t.deadline.end) >= graceperiod.Duration(graceperiod.MinimumContainerSeconds)
	mustRecordExceeded = isExceeded && !t.exceededRecorded
	t.exceededRecorded = t.exceededRecorded || isExceeded
	return result, mustRecordExceeded, &StillRunningError{Containers: names, Cause: cause}
}

// StillRunningError is the error of a wait whose context ended. It names the containers that had not
// ended.
type StillRunningError struct {
	// Containers is sorted, with entries NAMESPACE/POD/CONTAINER, or NAMESPACE/POD if no container is
	// known.
	Containers []string
	// Cause is the cause of the context; errors.Is finds it.
	Cause error

	calls []string // set by Close only: the calls that have not returned, each "CALL of CONTAINER"
}

// Error names the containers, or for [Terminator.Close] the calls that have not returned. If the context
// timed out, the text starts like the kubelet's.
func (e *StillRunningError) Error() string {
	if e.calls != nil {
		return fmt.Sprintf("the terminator was closed, calls that have not returned: %s: %v", strings.Join(e.calls, ", "), e.Cause)
	}
	text := "stopped waiting"
	if errors.Is(e.Cause, context.DeadlineExceeded) {
		text = "timeout waiting to kill pod"
	}
	return fmt.Sprintf("%s: containers that have not ended: %s: %v", text, strings.Join(e.Containers, ", "), e.Cause)
}

// Unwrap returns the cause.
func (e *StillRunningError) Unwrap() error { return e.Cause }

// fullName returns NAMESPACE/POD/CONTAINER, without the container if it is "".
func fullName(apiPod *v1.Pod, container string) string {
	name := apiPod.Namespace + "/" + apiPod.Name
	if container == "" {
		return name
	}
	return name + "/" + container
}
