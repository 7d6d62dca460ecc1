package shutdown

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"

	"github.com/kubegrace/kubegrace/internal/call"
	"github.com/kubegrace/kubegrace/internal/podcondition"
	"github.com/kubegrace/kubegrace/internal/podkey"
	"github.com/kubegrace/kubegrace/shutdown/internal/node"
)

// PodKiller kills pods. KillPod kills one pod and returns when the pod has ended, or an error if it cannot
// be killed. If it returned right after the stop signal, the lock would be released while the pod still runs.
// KillPod must not change the pod. The manager calls it for many pods concurrently. ctx ends when both Run
// and TerminateAll have ended, which may be after the lock was released.
//
// KillPod may be called again for the same pod:
//
//   - After an error the manager calls it every second with the remaining grace period, until the lock
//     is released or, after a cancellation, until Run ends. An error that wraps [ErrNoRetry] stops this:
//     only a cancellation or another shutdown calls it once more.
//   - If the host shortens the time, or a later shutdown has less, the manager calls it while an earlier
//     call still runs. The later call waits for the same end of the pod, and may only shorten the grace
//     period.
//
// After a restart of the agent, pod may have only what the state log stores: its name and UID, the annotations of static
// pods, the grace period, the names of its containers with their preStop hooks, and its status.
//
// An error with a method Await(context.Context) (KillResult, error), such as podkiller's *OverdueError,
// says that the kill is still under way. The manager then calls Await instead of KillPod.
type PodKiller interface {
	KillPod(ctx context.Context, pod *v1.Pod, req KillRequest) (KillResult, error)
}

// ErrNoRetry is wrapped by an error of KillPod to say that a retry would fail too.
var ErrNoRetry = errors.New("the kill is not retried")

// PodKillerFunc is a function that implements [PodKiller].
type PodKillerFunc func(ctx context.Context, pod *v1.Pod, req KillRequest) (KillResult, error)

// KillPod calls the function.
func (f PodKillerFunc) KillPod(ctx context.Context, pod *v1.Pod, req KillRequest) (KillResult, error) {
	return f(ctx, pod, req)
}

// KillRequest says how to kill a pod. Its fields are the parameters of the kubelet's KillPodFunc.
type KillRequest struct {
	// GracePeriodSeconds overrides the pod's grace period, in seconds, 0 or more. 0 means the shortest
	// grace period that the killer supports: 1 s for package podkiller, as for the kubelet. Nil means the
	// pod's own grace period; a node shutdown never passes nil.
	GracePeriodSeconds *int64
	// Evict marks the pod as evicted. It is false in a node shutdown.
	Evict bool
	// SetStatus sets the final phase, reason, message and condition. The killer calls it on a status
	// that it returns or sends. It is never nil in a node shutdown.
	SetStatus func(*v1.PodStatus)
}

// KillResult says how a pod ended.
type KillResult struct {
	// Outcome is a short text of the killer's choice for the report, the metrics and the log. Outcomes
	// other than "", "Graceful" and "NotFound" are logged at verbosity 0, these at 1. "NotFound" says that
	// nothing was running; for a pod whose phase is not final it is logged at 0.
	Outcome string
	// Status is the pod's status after its end, with the states of its containers, for the [Reporter]. Do not
	// change it after KillPod has returned. In a copy of it the manager sets the final phase, reason, message
	// and condition, if [Options.Policy] says so. [KillRequest.SetStatus] sets the same. Nil: the pod's
	// status from [Options.ListPods].
	Status *v1.PodStatus
}

// writeTime is how long a kill waits at most until the state log has it.
const writeTime = 100 * time.Millisecond

// kill starts the call of Options.Killer for a pod. The call runs in another goroutine, which first waits until the state log has the
// kill, but at most for writeTime. All that it needs of the node's record of the pod (e.Pod) is read now, because the node's next Step
// may change the record. The mutex is held.
func (s *shell) kill(e node.Effect) {
	pod, key, seconds := e.Pod.Object, e.Pod.Key, e.Seconds
	request := KillRequest{GracePeriodSeconds: &seconds, SetStatus: statusSetter(e.Pod.FinalPolicy(), podcondition.Generation(pod))}
	logWait := s.startLogWait()
	var result KillResult
	s.start(e, "Options.Killer for pod "+pod.Namespace+"/"+pod.Name, func(ctx context.Context) (err error) {
		if logWait != nil {
			_, _ = logWait.Wait(ctx) // a pod is killed even if the log was not written
		}
		result, err = s.callKiller(ctx, pod, request)
		return err
	}, func(a answer) node.Input {
		return node.Killed{Call: e.Call, Key: key, Outcome: result.Outcome, Status: result.Status, Err: a.err, NoRetry: a.noRetry}
	})
}

// callKiller calls Options.Killer for a pod, waits until the kill is over (awaitKill), and logs the kill.
func (s *shell) callKiller(ctx context.Context, pod *v1.Pod, request KillRequest) (KillResult, error) {
	name, ref, key := pod.Namespace+"/"+pod.Name, klog.KObj(pod), podkey.Of(pod) // now, because the killer might change the pod
	seconds := *request.GracePeriodSeconds
	hadFinalPhase := pod.Status.Phase == v1.PodSucceeded || pod.Status.Phase == v1.PodFailed
	logger := klog.FromContext(ctx)
	if logger.V(1).Enabled() {
		s.logLines.Add(func() {
			logger.V(1).Info("Shutdown manager killing pod with gracePeriod", "pod", ref, "gracePeriod", seconds)
		})
	}
	result, err := s.opts.Killer.KillPod(ctx, pod, request)
	if podkey.Of(pod) != key {
		s.step(node.Failed{Text: fmt.Sprintf("Options.Killer has changed the UID or the name of pod %s, which may be killed twice", name)})
	}
	if result, err = awaitKill(ctx, result, err); err != nil {
		return result, err
	}
	s.logKilled(logger, ref, hadFinalPhase, result.Outcome)
	return result, nil
}

// startLogWait returns a future that completes when the state log has the kills of this step, so that the next agent knows of
// them, but after writeTime at the latest. It also completes if the write fails. All kills of one write share the future. The
// result is nil if nothing is stored or the log has not been read yet: the kills then do not wait. The mutex is held.
func (s *shell) startLogWait() *call.Future[struct{}] {
	if written := s.newestWrite; written != nil && s.logWait == nil {
		s.logWait = call.Start(s.ctx, s.calls, "the wait for the state log", func(ctx context.Context) (struct{}, error) {
			if _, err := written.Await(ctx, time.Now().Add(writeTime)); errors.Is(err, call.ErrTimeSpent) {
				s.step(node.Failed{Text: "the state log was not written within " + writeTime.String() + ", killing pods anyway"})
			}
			return struct{}{}, nil
		})
	}
	return s.logWait
}

// awaitKill returns the result of a kill. If the error of KillPod has the method Await, as podkiller's *OverdueError has,
// the kill is still under way, and Await waits for its result.
func awaitKill(ctx context.Context, result KillResult, err error) (KillResult, error) {
	var ongoing interface {
		Await(ctx context.Context) (KillResult, error)
	}
	if errors.As(err, &ongoing) {
		return ongoing.Await(ctx)
	}
	return result, err
}

// logKilled logs that the killer has ended a pod. The verbosity is 1 if the outcome is good or not known, otherwise 0. If the
// killer found nothing running, although the pod's phase was not final, the verbosity is 0 too: the killer may look for the wrong
// containers.
func (s *shell) logKilled(logger klog.Logger, pod klog.ObjectRef, hadFinalPhase bool, outcome string) {
	text := "Shutdown manager finished killing pod"
	switch {
	case outcome == "NotFound" && !hadFinalPhase:
		text += ", but the killer found nothing running: does it look for the right containers?"
	case slices.Contains([]string{"", "Graceful", "NotFound"}, outcome):
		logger = logger.V(1)
	}
	if logger.Enabled() {
		s.logLines.Add(func() { logger.Info(text, "pod", pod, "outcome", outcome) })
	}
}
