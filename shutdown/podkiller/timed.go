package podkiller

import (
	"cmp"
	"context"
	"errors"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubegrace/kubegrace/graceperiod"
	"github.com/kubegrace/kubegrace/internal/call"
	"github.com/kubegrace/kubegrace/shutdown"
)

const (
	// timeoutReason and timeoutMessage are those of the kubelet's killPodNow.
	timeoutReason  = "ExceededGracePeriod"
	timeoutMessage = "Container runtime did not kill the pod within specified grace period."
)

// OverdueError is the error of a kill that has not ended within its timeout. The kill
// goes on.
type OverdueError struct {
	Pod     types.NamespacedName
	Timeout time.Duration // how long KillPod has waited

	kill *call.Future[shutdown.KillResult] // nil: made by other code, so there is nothing to await
}

// Error returns the kubelet's text.
func (*OverdueError) Error() string { return "timeout waiting to kill pod" }

// Await waits for the end of the kill, or of ctx, and returns the result of the kill. A
// [shutdown.Manager] calls it instead of killing the pod again.
func (e *OverdueError) Await(ctx context.Context) (shutdown.KillResult, error) {
	if e.kill == nil {
		return shutdown.KillResult{}, e
	}
	return e.kill.Wait(ctx)
}

// EventRecorder records events on objects, as client-go's recorder does.
type EventRecorder = shutdown.EventRecorder

// errNoKiller is the error of every kill if [Timed] was called with a nil killer.
var errNoKiller = errors.New("the killer of a timed killer is nil")

// errNoPod is the error for a nil pod.
var errNoPod = errors.New("the pod is nil")

// TimedKiller is a [shutdown.PodKiller] that waits for a kill no longer than the
// kubelet's killPodNow does: one and a half times the grace period, at least 10 s
// ([graceperiod.KillTimeout]). It is meant for evictions, which must not wait for a pod
// that hangs. A [shutdown.Manager] has its own timeouts and does not need it. Make one
// with [Timed]. All methods may be called concurrently.
type TimedKiller struct {
	killer shutdown.PodKiller
	events EventRecorder // nil: no events are recorded
	calls  call.Group    // the kills that are under way
}

// Timed returns a killer that limits the waiting for another killer. A kill that exceeds
// its timeout is recorded as an event on the pod; a nil recorder records nothing. For a
// nil killer, or a nil [shutdown.PodKillerFunc], Timed returns nil, whose KillPod returns an
// error.
func Timed(killer shutdown.PodKiller, events EventRecorder) *TimedKiller {
	if f, isFunc := killer.(shutdown.PodKillerFunc); killer == nil || isFunc && f == nil {
		return nil
	}
	return &TimedKiller{killer: killer, events: events}
}

var _ shutdown.PodKiller = (*TimedKiller)(nil)

// KillPod kills the pod with the other killer and waits for it. When the timeout has
// passed, it records the Warning ExceededGracePeriod and returns an *[OverdueError],
// while the kill goes on. A further call joins that kill if the other killer joins kills,
// as that of [New] does. The end of ctx ends both the waiting and the kill's own context.
// A nil pod is an error.
func (t *TimedKiller) KillPod(ctx context.Context, pod *v1.Pod, req shutdown.KillRequest) (shutdown.KillResult, error) {
	if t == nil || t.killer == nil {
		return shutdown.KillResult{}, errNoKiller
	}
	if pod == nil {
		return shutdown.KillResult{}, errNoPod
	}
	timeout := graceperiod.KillTimeout(*cmp.Or(req.GracePeriodSeconds, pod.Spec.TerminationGracePeriodSeconds, new(int64)))
	kill := call.Start(ctx, &t.calls, "the killer of pod "+pod.Namespace+"/"+pod.Name, func(ctx context.Context) (shutdown.KillResult, error) {
		return t.killer.KillPod(ctx, pod, req)
	})
	result, err := kill.Await(ctx, time.Now().Add(timeout))
	if !errors.Is(err, call.ErrTimeSpent) {
		return result, err
	}
	if t.events != nil {
		t.events.Event(pod, v1.EventTypeWarning, timeoutReason, timeoutMessage)
	}
	return shutdown.KillResult{}, &OverdueError{Pod: types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}, Timeout: timeout, kill: kill}
}

// Wait waits for all kills, including those that have exceeded their timeout. Call it
// when the agent ends, after the end of the kills' contexts. KillPod must not be called
// at the same time.
func (t *TimedKiller) Wait() {
	if t != nil {
		t.calls.WaitLoudly(context.Background(), "TimedKiller.Wait", nil) //nolint:forbidigo // Wait has no context; its logger is klog's
	}
}
