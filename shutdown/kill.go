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

// writeTime is how long kills wait at most until the state log has them.
const writeTime = 100 * time.Millisecond

// killAll calls starts, which start the kills of a step, once the state log has the kills, so that the next agent knows
// of them. A slow disk delays the kills by at most writeTime; a failed write, or a log that is not read yet, does not
// delay them. The mutex is held, but not while starts are called: a kill that returns early would have to wait for it.
func (s *shell) killAll(starts []func()) {
	if len(starts) == 0 {
		return
	}
	var written *call.Future[struct{}] // nil: the log has the kills, or nothing is stored
	if s.isWriting() {
		written = s.newestWrite
	}
	ctx := s.ctx
	s.calls.Go(func() string { return "the start of the kills" }, func() {
		if written != nil {
			if _, err := written.Await(ctx, time.Now().Add(writeTime)); errors.Is(err, call.ErrTimeSpent) {
				s.step(node.Failed{Text: "the state log was not written within " + writeTime.String() + ", killing pods anyway"})
			}
		}
		for _, start := range starts {
			start()
		}
	})
}

// prepareKill returns a function that starts a kill in its own goroutine. It reads the pod now, because later steps may
// change the pod before that function is called. The mutex is held, but the returned function may be called without it.
func (s *shell) prepareKill(e node.Effect) (begin func()) {
	pod, seconds, key := e.Pod.Object, e.Seconds, e.Pod.Key
	setStatus := statusSetter(e.Pod.FinalPolicy(), podcondition.Generation(pod))
	logger := klog.FromContext(s.ctx)
	name, ref, identity := pod.Namespace+"/"+pod.Name, klog.KObj(pod), podkey.Of(pod) // the killer may change the pod
	isFinal := pod.Status.Phase == v1.PodSucceeded || pod.Status.Phase == v1.PodFailed
	var result KillResult
	startKill := s.prepare(e, "Options.Killer for pod "+name, func(ctx context.Context) (err error) {
		result, err = s.opts.Killer.KillPod(ctx, pod, KillRequest{GracePeriodSeconds: &seconds, SetStatus: setStatus})
		if podkey.Of(pod) != identity {
			s.step(node.Failed{Text: fmt.Sprintf("Options.Killer has changed the UID or the name of pod %s, which may be killed twice", name)})
		}
		if result, err = awaitKill(ctx, result, err); err == nil {
			s.logKilled(logger, ref, isFinal, result.Outcome)
		}
		return err
	}, func(a answer) node.Input {
		return node.Killed{Call: e.Call, Key: key, Outcome: result.Outcome, Status: result.Status, Err: a.err, NoRetry: a.noRetry}
	})
	return func() {
		if logger := logger.V(1); logger.Enabled() {
			s.logLines.Write(func() {
				logger.Info("Shutdown manager killing pod with gracePeriod", "pod", ref, "gracePeriod", seconds)
			})
		}
		startKill()
	}
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

// logKilled logs that the killer has ended a pod. The verbosity is 1 if the outcome is good or not known, otherwise 0. It
// is 0 too if the killer found nothing to stop although the pod's phase was not final: a killer that looks for the wrong
// containers would otherwise end a drain at once, and nobody would see why.
func (s *shell) logKilled(logger klog.Logger, pod klog.ObjectRef, isFinal bool, outcome string) {
	text := "Shutdown manager finished killing pod"
	switch {
	case outcome == "NotFound" && !isFinal:
		text += ", but the killer found nothing running: does it look for the right containers?"
	case slices.Contains([]string{"", "Graceful", "NotFound"}, outcome):
		logger = logger.V(1)
	}
	if logger.Enabled() {
		s.logLines.Write(func() { logger.Info(text, "pod", pod, "outcome", outcome) })
	}
}
