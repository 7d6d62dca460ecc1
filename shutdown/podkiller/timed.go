package podkiller

import (
	"cmp"
	"context"
	"errors"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/graceperiod"
	"github.com/kubegrace/kubegrace/internal/call"
	"github.com/kubegrace/kubegrace/shutdown"
)

const (
	// timeoutReason and timeoutMessage are those of the kubelet's killPodNow.
	timeoutReason  = "ExceededGracePeriod"
	timeoutMessage = "Container runtime did not kill the pod within specified grace period."
)

// OverdueError is the error of a kill that exceeded its timeout. The kill continues.
type OverdueError struct {
	kill *call.Future[shutdown.KillResult] // nil: not created by a TimedKiller
}

// Error returns the text of the kubelet's error.
func (*OverdueError) Error() string { return "timeout waiting to kill pod" }

// Await waits until the kill or ctx ends, and returns the result of the kill. A
// [shutdown.Manager] calls it instead of killing the pod again.
func (e *OverdueError) Await(ctx context.Context) (shutdown.KillResult, error) {
	if e.kill == nil {
		return shutdown.KillResult{}, e
	}
	return e.kill.Wait(ctx)
}

// errNoKiller is the error of each kill if [Timed] was called with a nil killer.
var errNoKiller = errors.New("the killer of a timed killer is nil")

// errNoPod is the error of KillPod for a nil pod.
var errNoPod = errors.New("the pod is nil")

// TimedKiller is a [shutdown.PodKiller] that waits for a kill as long as the kubelet's
// killPodNow does: one and a half times the grace period, at least 10 s
// ([graceperiod.KillTimeout]). It is for evictions, which must not wait for a pod that hangs. A
// [shutdown.Manager] does not need it. Create one with [Timed]. All methods may be called
// concurrently.
type TimedKiller struct {
	killer shutdown.PodKiller
	events shutdown.EventRecorder // nil: no events are recorded
	calls  call.Group             // the running kills, also those that exceeded their timeout
}

// Timed returns a killer that kills with the given killer, but waits for each kill only up to a
// timeout. It records an event on the pod if a kill exceeds its timeout; events may be nil. For a nil
// killer, or a nil [shutdown.PodKillerFunc], Timed returns nil, whose KillPod returns an error.
func Timed(killer shutdown.PodKiller, events shutdown.EventRecorder) *TimedKiller {
	f, isFunc := killer.(shutdown.PodKillerFunc)
	if isNilFunc := isFunc && f == nil; killer == nil || isNilFunc {
		return nil
	}
	return &TimedKiller{killer: killer, events: events}
}

var _ shutdown.PodKiller = (*TimedKiller)(nil)

// KillPod kills the pod with the killer that was passed to [Timed]. After the timeout it records
// the Warning ExceededGracePeriod and returns an *[OverdueError], while the kill continues. When
// ctx ends, KillPod returns and the context of the kill ends. A nil pod is an error.
func (t *TimedKiller) KillPod(ctx context.Context, pod *v1.Pod, req shutdown.KillRequest) (shutdown.KillResult, error) {
	if t == nil || t.killer == nil {
		return shutdown.KillResult{}, errNoKiller
	}
	if pod == nil {
		return shutdown.KillResult{}, errNoPod
	}
	grace := *cmp.Or(req.GracePeriodSeconds, pod.Spec.TerminationGracePeriodSeconds, new(int64)) // the first that is not nil
	timeout := graceperiod.KillTimeout(grace)
	kill := call.Start(ctx, &t.calls, "the killer of pod "+pod.Namespace+"/"+pod.Name, func(ctx context.Context) (shutdown.KillResult, error) {
		return t.killer.KillPod(ctx, pod, req)
	})
	result, err := kill.Await(ctx, time.Now().Add(timeout))
	if !errors.Is(err, call.ErrTimeSpent) {
		return result, err
	}
	t.recordTimeout(ctx, pod)
	return shutdown.KillResult{}, &OverdueError{kill: kill}
}

// recordTimeout records the event of a kill that has exceeded its timeout. It does so in a goroutine, because a recorder may
// block. A panic of the recorder is only logged.
func (t *TimedKiller) recordTimeout(ctx context.Context, pod *v1.Pod) {
	if t.events == nil {
		return
	}
	const name = "the event recorder of the TimedKiller"
	t.calls.Go(func() string { return name }, func() {
		call.Guard(ctx, name, func() error {
			t.events.Event(pod, v1.EventTypeWarning, timeoutReason, timeoutMessage)
			return nil
		}, func(error) {}) // nothing is left to do: Guard logs a panic
	})
}

// Wait waits for all kills, including those that exceeded their timeout. Call it when the agent
// ends, after the contexts of the kills have ended. Do not call KillPod concurrently.
func (t *TimedKiller) Wait() {
	if t != nil {
		t.calls.WaitAndLog(context.Background(), "TimedKiller.Wait", nil) //nolint:forbidigo // Wait has no context; its logger is klog's
	}
}
