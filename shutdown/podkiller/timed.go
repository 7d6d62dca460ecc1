package podkiller

import (
	"context"
	"errors"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubegrace/kubegrace/graceperiod"
	"github.com/kubegrace/kubegrace/shutdown"
	"github.com/kubegrace/kubegrace/shutdown/internal/call"
)

const (
	// overdueReason and overdueMessage are those of the kubelet's killPodNow.
	overdueReason  = "ExceededGracePeriod"
	overdueMessage = "Container runtime did not kill the pod within specified grace period."
)

// OverdueError is a kill that has outlasted its time. It goes on.
type OverdueError struct {
	Pod     types.NamespacedName
	Timeout time.Duration // how long it was waited for

	kill *call.Future[shutdown.KillResult] // nil: nobody knows of it
}

// Error is the kubelet's text.
func (*OverdueError) Error() string { return "timeout waiting to kill pod" }

// Await waits for the end of the kill, or of ctx, and gives what came of it. A
// [shutdown.Manager] does so instead of killing the pod again.
func (e *OverdueError) Await(ctx context.Context) (shutdown.KillResult, error) {
	if e.kill == nil {
		return shutdown.KillResult{}, e
	}
	return e.kill.Wait(ctx)
}

// EventRecorder records an event on an object; client-go's recorder is one.
type EventRecorder = shutdown.EventRecorder

// errNoKiller is the error of every kill where there is nobody to kill.
var errNoKiller = errors.New("the killer of a timed killer is nil")

// errNoPod is the error of a kill of nothing.
var errNoPod = errors.New("the pod is nil")

// TimedKiller is a [shutdown.PodKiller] that waits no longer than the kubelet does: for what
// [graceperiod.KillTimeout] makes of the grace, one and a half times of it and 10 s
// at least (the kubelet's killPodNow). It is for evictions, which must not wait for
// one stuck pod; a [shutdown.Manager] has bounds of its own and needs none. Make one with
// [Timed]. All methods may be called concurrently.
type TimedKiller struct {
	killer shutdown.PodKiller
	events EventRecorder // nil: nothing is recorded
	calls  call.Group    // of the killer
}

// Timed makes a killer that waits for another one as long as the kubelet does
// (killPodNow). A kill that is overdue is an event on its pod; nil events record none. A
// nil killer gives an error for every pod, and a nil pod is an error.
func Timed(killer shutdown.PodKiller, events EventRecorder) *TimedKiller {
	return &TimedKiller{killer: killer, events: events}
}

var _ shutdown.PodKiller = (*TimedKiller)(nil)

// KillPod has the pod killed and waits for it. After the timeout it records the
// Warning ExceededGracePeriod and gives an *[OverdueError], and the kill goes on:
// another call joins it, if the killer is one that joins. The end of ctx ends the
// waiting, and the kill's own context.
func (t *TimedKiller) KillPod(ctx context.Context, pod *v1.Pod, req shutdown.KillRequest) (shutdown.KillResult, error) {
	if t.killer == nil {
		return shutdown.KillResult{}, errNoKiller
	}
	if pod == nil {
		return shutdown.KillResult{}, errNoPod
	}
	timeout := graceperiod.KillTimeout(req.GracePeriodSeconds)
	kill := call.Start(ctx, &t.calls, "the killer of pod "+pod.Namespace+"/"+pod.Name, func(ctx context.Context) (shutdown.KillResult, error) {
		return t.killer.KillPod(ctx, pod, req)
	})
	result, err := kill.Await(ctx, time.Now().Add(timeout))
	if !errors.Is(err, call.ErrTimeSpent) {
		return result, err
	}
	if t.events != nil {
		t.events.Event(pod, v1.EventTypeWarning, overdueReason, overdueMessage)
	}
	return shutdown.KillResult{}, &OverdueError{Pod: types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}, Timeout: timeout, kill: kill}
}

// Wait waits for all kills, also for those that are overdue: when an agent ends,
// after the context of its kills. No KillPod may begin meanwhile.
func (t *TimedKiller) Wait() { t.calls.Wait(nil) }
