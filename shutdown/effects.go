package shutdown

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	"github.com/kubegrace/kubegrace/graceperiod"
	"github.com/kubegrace/kubegrace/internal/call"
	"github.com/kubegrace/kubegrace/internal/podcondition"
	"github.com/kubegrace/kubegrace/internal/podkey"
	"github.com/kubegrace/kubegrace/internal/staticpod"
	"github.com/kubegrace/kubegrace/internal/times"
	"github.com/kubegrace/kubegrace/shutdown/internal/host"
	"github.com/kubegrace/kubegrace/shutdown/internal/node"
	"github.com/kubegrace/kubegrace/shutdown/plan"
)

const (
	// writeTime is how long kills wait at most until they are stored in the state log.
	writeTime = 100 * time.Millisecond
	// slowTime is how long a call may take before it is logged as slow.
	slowTime = 5 * time.Second
	// rewritePause is the pause between a failed write to the state log and the next one.
	rewritePause = 500 * time.Millisecond
)

// perform starts an effect other than a kill; see killAll. The mutex is held.
func (s *shell) perform(e node.Effect) {
	switch e.Do {
	case node.Prepare:
		s.callStep(e, "Options.Prepare", s.opts.Prepare)
	case node.Hold:
		s.callStep(e, "Options.Hold", s.opts.Hold)
	case node.OnRelease:
		s.callStep(e, "Options.OnRelease", func(ctx context.Context) error {
			if s.opts.OnRelease != nil {
				s.opts.OnRelease(ctx)
			}
			return nil
		})
	case node.Unmount:
		pods := make([]*v1.Pod, len(e.Pods))
		for i, p := range e.Pods {
			pods[i] = p.Object
		}
		s.callStep(e, "Options.Volumes", func(ctx context.Context) error { return s.opts.Volumes.WaitForAllPodsUnmount(ctx, pods) })
	case node.OnPlan:
		s.callOnPlan(e)
	case node.List:
		s.list(e)
	case node.Tell:
		s.sendPod(e)
	case node.Publish:
		s.publish(e)
	case node.Abort:
		if abort := s.aborts[e.Call]; abort != nil {
			abort()
		}
	case node.Store, node.NewLog:
		s.store(e)
	case node.Sync:
		s.sync(e)
	case node.Suspend, node.Release, node.Retake, node.HoldAgain:
		s.changeLock(e)
	case node.Report:
		s.report(e)
	case node.Log:
		logger := klog.FromContext(s.ctx)
		s.writeLog(func() { logger.Info(e.Text) })
	case node.LogError:
		logger := klog.FromContext(s.ctx)
		if e.Pod != nil {
			logger = logger.WithValues("pod", klog.KRef(e.Pod.Namespace, e.Pod.Name))
		}
		s.writeLog(func() { logger.Error(nil, e.Text) })
	case node.Begins:
		s.logDrainTime(e)
		if err := s.policyErrs[e.Shutdown.Kind]; err != nil {
			s.toReport = append(s.toReport, err.Error())
		}
	case node.Kill: // killAll starts it
	case node.RecordEvent:
		s.events.record(s.ctx, s.calls, v1.EventTypeNormal, e.Text)
	case node.CountPod:
		outcome := "Ended"
		if e.Pod.Ended.IsZero() {
			outcome = "Failed"
		}
		s.opts.Metrics.PodKilled(cmp.Or(e.Pod.Outcome, outcome))
	case node.CountBucket:
		s.opts.Metrics.Bucket(e.Took)
	}
}

// start calls embedder code, do, in a goroutine. inputOf then converts its error to the input that the core
// gets; nil: none. The context of do ends when the core aborts the call, and at the effect's Until if it has
// one. That of a kill has no deadline: a pod may end late. A call that takes longer than slowTime is logged;
// a kill, if it takes longer than its grace period and slowTime.
func (s *shell) start(e node.Effect, name string, do func(context.Context) error, inputOf func(error) node.Input) {
	ctx, cancel := context.WithCancel(s.ctx)
	if !e.Until.IsZero() && e.Do != node.Kill {
		ctx, cancel = context.WithDeadlineCause(s.ctx, time.Now().Add(e.Until.Sub(s.now())), call.ErrTimeSpent)
	}
	s.aborts[e.Call] = cancel
	s.calls.Call(ctx, name, graceperiod.Duration(e.Seconds)+slowTime, func() error { return do(ctx) }, func(err error) {
		cancel()
		s.mu.Lock()
		delete(s.aborts, e.Call)
		s.mu.Unlock()
		if in := inputOf(plainError(err)); in != nil {
			s.step(in)
		}
	})
}

// plainError copies what the core uses of an embedder's error into a *callError, because the methods of that error
// may panic. A panic is only logged; what it has kept from being read stays unset. plainError returns nil for nil.
func plainError(err error) error {
	if err == nil {
		return nil
	}
	plain := &callError{text: errorText(err)}
	call.Guard(context.Background(), "an error", func() error { //nolint:forbidigo // only for logging a panic
		plain.noRetry = errors.Is(err, ErrNoRetry)
		if seconds, asks := apierrors.SuggestsClientDelay(err); asks {
			plain.retryAfter = time.Duration(seconds) * time.Second
		}
		return nil
	}, func(error) {})
	return plain
}

// callError has what the core uses of an embedder's error.
type callError struct {
	text       string
	noRetry    bool          // it wraps ErrNoRetry
	retryAfter time.Duration // suggested by the API server; 0: none
}

// Error returns the text.
func (e *callError) Error() string { return e.text }

// callStep calls a function that a step of the drain waits for. When it returns, the core gets [node.Answered]
// with its error.
func (s *shell) callStep(e node.Effect, name string, f func(context.Context) error) {
	s.start(e, name, f, func(err error) node.Input { return node.Answered{Call: e.Call, Err: err} })
}

// callOnPlan passes the plan to OnPlan, if it is set. The drain does not wait for it.
func (s *shell) callOnPlan(e node.Effect) {
	if s.opts.OnPlan == nil {
		return
	}
	table, pods := e.Shutdown.Table(), make([]*v1.Pod, 0, len(e.Pods))
	for _, p := range e.Pods {
		pods = append(pods, p.Object)
	}
	s.start(e, "Options.OnPlan", func(ctx context.Context) error {
		s.opts.OnPlan(ctx, table.Plan(pods))
		return nil
	}, func(error) node.Input { return nil })
}

// list calls Options.ListPods and converts the pods for the core.
func (s *shell) list(e node.Effect) {
	var listed []node.Pod
	s.start(e, "Options.ListPods", func(ctx context.Context) error {
		pods, err := s.opts.ListPods(ctx)
		if err != nil {
			return err
		}
		opts, priorityErr := s.priorities(ctx, pods)
		if priorityErr != nil {
			s.step(node.Failed{Text: "failed to get the values of priority classes: " + priorityErr.Error()})
		}
		for _, text := range podsWithTheSameKey(pods) {
			s.step(node.Failed{Text: text})
		}
		listed = make([]node.Pod, 0, len(pods))
		for _, pod := range pods {
			if pod != nil {
				listed = append(listed, listedPod(pod, opts))
			}
		}
		return nil
	}, func(err error) node.Input { return node.Listed{Call: e.Call, Pods: listed, Err: err} })
}

// podsWithTheSameKey returns an error text for each pod whose key, its UID or name, an earlier pod of the list
// has: the manager takes the two for one pod and kills only one of them. The same pointer twice is no error.
func podsWithTheSameKey(pods []*v1.Pod) (errs []string) {
	seen := make(map[types.UID]*v1.Pod, len(pods))
	for _, pod := range pods {
		if pod == nil {
			continue
		}
		key := podkey.Of(pod)
		if other := seen[key]; other != nil && other != pod {
			errs = append(errs, fmt.Sprintf("Options.ListPods lists the pods %s and %s, which are both known as %q: only one of them is killed",
				klog.KObj(other), klog.KObj(pod), key))
		}
		seen[key] = pod
	}
	return errs
}

// priorities calls Options.Plan.PriorityOf, which may hang, for the classes of the pods. It returns plan
// options whose PriorityOf has the results. If they do not come in time, the error says so, and the classes
// count as unknown.
func (s *shell) priorities(ctx context.Context, pods []*v1.Pod) (plan.Options, error) {
	opts := s.opts.Plan
	if opts.PriorityOf == nil {
		return opts, nil
	}
	priorityOf := opts.PriorityOf
	asked := call.Start(ctx, s.calls, "Options.Plan.PriorityOf", func(context.Context) (map[string]int32, error) {
		known := map[string]int32{}
		for _, pod := range pods {
			if pod == nil || pod.Spec.Priority != nil {
				continue
			}
			if value, isKnown := priorityOf(pod.Spec.PriorityClassName); isKnown {
				known[pod.Spec.PriorityClassName] = value
			}
		}
		return known, nil
	})
	known, err := asked.Await(ctx, time.Now().Add(answerTime))
	opts.PriorityOf = func(class string) (int32, bool) {
		value, isKnown := known[class]
		return value, isKnown
	}
	return opts, err
}

// listedPod converts a listed pod for the core. opts resolves its priority.
func listedPod(pod *v1.Pod, opts plan.Options) node.Pod {
	ready := podcondition.Get(&pod.Status, v1.PodReady)
	return node.Pod{
		Key: podkey.Of(pod), Namespace: pod.Namespace, Name: pod.Name, Priority: opts.Priority(pod), Object: pod,
		Static: staticpod.IsOrMirrors(pod), DaemonSet: isDaemonSetPod(pod), Deleted: pod.DeletionTimestamp != nil,
		// Only an agent that is about to kill the pod sets this reason. This one has not, so an earlier agent has.
		Marked: ready != nil && ready.Status == v1.ConditionFalse && ready.Reason == v1.PodReasonTerminationByKubelet,
	}
}

// killAll starts the kills of a step once the log has them, so that the next agent knows of them. A slow disk
// delays them by at most writeTime; a failed write, or a log that is not open yet, does not delay them. The mutex is
// held.
func (s *shell) killAll(kills []node.Effect) {
	if len(kills) == 0 {
		return
	}
	starts := make([]func(), len(kills))
	for i, e := range kills {
		starts[i] = s.prepareKill(e)
	}
	start := func() {
		for _, start := range starts {
			start()
		}
	}
	if !s.isWriting() { // nothing is stored, or everything is
		start()
		return
	}
	written, ctx := s.written, s.ctx
	s.calls.Go(func() string { return "the wait for the state log" }, func() {
		if _, err := written.Await(ctx, time.Now().Add(writeTime)); errors.Is(err, call.ErrTimeSpent) {
			s.step(node.Failed{Text: "the state log was not written within " + writeTime.String() + ", killing pods anyway"})
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		start()
	})
}

// prepareKill returns a function that starts a kill in its own goroutine. It reads the pod now, because later steps
// may change it before the function is called. Both the call of prepareKill and that of start need the mutex.
func (s *shell) prepareKill(e node.Effect) (start func()) {
	pod, seconds, key := e.Pod.Object, e.Seconds, e.Pod.Key
	setStatus := PodPolicy(e.Pod.Policy).forPod(pod).setStatus(podcondition.Generation(pod))
	name := "Options.Killer for pod " + pod.Namespace + "/" + pod.Name
	return func() {
		logger := klog.FromContext(s.ctx)
		s.writeLog(func() {
			logger.V(1).Info("Shutdown manager killing pod with gracePeriod", "pod", klog.KObj(pod), "gracePeriod", seconds)
		})
		var result KillResult
		s.start(e, name, func(ctx context.Context) (err error) {
			result, err = s.opts.Killer.KillPod(ctx, pod, KillRequest{GracePeriodSeconds: &seconds, SetStatus: setStatus})
			if result, err = awaitKill(ctx, result, err); err == nil {
				s.logKilled(logger, pod, result.Outcome)
			}
			return err
		}, func(err error) node.Input {
			return node.Killed{Call: e.Call, Key: key, Outcome: result.Outcome, Status: result.Status, Err: err, NoRetry: isNoRetry(err)}
		})
	}
}

// logKilled logs that the killer has ended a pod; at level 1 if nothing was lost, or if the outcome is unknown. It locks
// the mutex.
func (s *shell) logKilled(logger klog.Logger, pod *v1.Pod, outcome string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch outcome {
	case "", "Graceful", "NotFound":
		logger = logger.V(1)
	}
	s.writeLog(func() {
		logger.Info("Shutdown manager finished killing pod", "pod", klog.KObj(pod), "outcome", outcome)
	})
}

// isNoRetry reports whether an error of the killer wraps ErrNoRetry.
func isNoRetry(err error) bool {
	var failed *callError
	return errors.As(err, &failed) && failed.noRetry
}

// awaitKill awaits a kill that is still under way although KillPod has returned: its error then has the
// method Await, like podkiller's *OverdueError. It returns any other result unchanged.
func awaitKill(ctx context.Context, result KillResult, err error) (KillResult, error) {
	var ongoing interface {
		Await(ctx context.Context) (KillResult, error)
	}
	if errors.As(err, &ongoing) {
		return ongoing.Await(ctx)
	}
	return result, err
}

// sendPod sends what the effect names through the Reporter: a pod's final status, the mark NotReady, or the
// readiness that it had before.
func (s *shell) sendPod(e node.Effect) {
	key := e.Pod.Key
	answer := func(err error) node.Input {
		told := node.Told{Call: e.Call, Key: key, Err: err}
		if failed := (*callError)(nil); errors.As(err, &failed) {
			told.RetryAfter = failed.retryAfter
		}
		return told
	}
	of := " for pod " + e.Pod.Namespace + "/" + e.Pod.Name
	var name string
	var do func(context.Context) error
	switch e.What {
	case node.FinalStatus:
		pod := withFinalStatus(e.Pod, s.log.TimeOf(e.Pod.Ended))
		name = "Options.Reporter.FlushPod" + of
		do = func(ctx context.Context) error { return s.opts.Reporter.(StatusFlusher).FlushPod(ctx, pod) } //nolint:forcetypeassert // the core sends only what the Reporter has a method for
	case node.NotReady:
		pod := e.Pod.Object
		name = "Options.Reporter.MarkNotReady" + of
		do = func(ctx context.Context) error { return s.opts.Reporter.(ReadinessMarker).MarkNotReady(ctx, pod) } //nolint:forcetypeassert // likewise
	case node.Ready:
		pod := e.Pod.Object
		name = "Options.Reporter.RestoreReadiness" + of
		do = func(ctx context.Context) error { return s.opts.Reporter.(ReadinessMarker).RestoreReadiness(ctx, pod) } //nolint:forcetypeassert // likewise
	}
	s.start(e, name, do, answer)
}

// publish publishes the node's state through the Reporter: the shutdown of the effect, or none.
func (s *shell) publish(e node.Effect) {
	var state NodeState
	if of := e.Shutdown; of != nil {
		state = NodeState{ShuttingDown: true, Kind: of.Kind}
	}
	s.start(e, "Options.Reporter.PublishNode", func(ctx context.Context) error { return s.opts.Reporter.PublishNode(ctx, state) },
		func(err error) node.Input { return node.Published{Call: e.Call, Err: err} })
}

// store appends the effect's shutdown and pods to the log. NewLog replaces the log by them.
func (s *shell) store(e node.Effect) {
	if !s.isStoring {
		return
	}
	entries := node.Entries{Shutdown: e.Shutdown, Pods: e.Pods}
	if e.Do == node.NewLog {
		s.written = s.log.Begin(entries)
	} else {
		s.written = s.log.Append(entries)
	}
	s.watchWrites()
}

// sync syncs the log, and then tells the core. While the log is being read, it waits for that, because what the core has
// decided is stored only then. A failure goes into the drain's report.
func (s *shell) sync(e node.Effect) {
	ctx := s.ctx
	s.calls.Go(func() string { return "the sync of the state log" }, func() {
		select {
		case <-s.opened:
		case <-ctx.Done():
		}
		if _, err := s.log.Sync().Wait(ctx); err != nil && ctx.Err() == nil {
			s.step(node.Failed{Text: err.Error()})
		}
		s.step(node.Answered{Call: e.Call})
	})
}

// watchWrites starts a goroutine, unless it runs, that waits for the newest write to the log. It reports a
// failed write, and repeats it until it succeeds. It ends when all is written. The caller holds the mutex; the
// goroutine locks it itself.
func (s *shell) watchWrites() {
	if s.isWatching {
		return
	}
	s.isWatching = true
	ctx := s.ctx
	s.calls.Go(func() string { return "the writing of the state log" }, func() {
		for ctx.Err() == nil {
			s.mu.Lock()
			newest := s.written
			s.mu.Unlock()
			_, err := newest.Wait(ctx)
			if err != nil && ctx.Err() == nil {
				s.step(node.Failed{Text: err.Error()})
				sleep(ctx, rewritePause)
			}
			s.mu.Lock()
			s.updateAdmission()
			switch {
			case ctx.Err() != nil: // the loop ends
			case err != nil:
				s.written = s.log.Append(node.Entries{}) // it repeats the failed write
			case s.written == newest: // otherwise it was replaced by a newer write, which the loop waits for
				s.isWatching = false
				s.mu.Unlock()
				return
			}
			s.mu.Unlock()
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.isWatching = false
	})
}

// sleep waits for d or until ctx ends.
func sleep(ctx context.Context, d time.Duration) {
	if d <= 0 {
		return
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// changeLock carries out an effect on the inhibitor lock: Suspend (keep it until a time), Release, Retake (take
// it again during the shutdown) or HoldAgain (the shutdown is over: take it for the next one). Without a host
// there is no lock, and it does nothing.
func (s *shell) changeLock(e node.Effect) {
	h := s.host.Load()
	if h == nil {
		return
	}
	switch e.Do {
	case node.Suspend:
		if s.hold == nil {
			s.hold = h.Suspend()
			s.reportIfHostDoesNotWait(s.hold, s.log.TimeOf(e.Until))
		}
		s.hold.ReleaseAt(s.ctx, s.log.TimeOf(e.Until))
	case node.Retake:
		s.hold.Retake()
	case node.HoldAgain:
		if s.hold != nil {
			s.hold.End()
			s.hold = nil
		}
	default: // node.Release
		if s.hold == nil {
			return
		}
		release, ctx := s.hold.Release(), s.ctx
		s.calls.Go(func() string { return "the release of the shutdown inhibitor" }, func() {
			if err := release(ctx); err != nil {
				s.step(node.Failed{Text: err.Error()})
			}
		})
	}
}

// reportIfHostDoesNotWait tells the core if the host does not wait for the drain: no lock is held, and none
// is adopted until a time. It does not block.
func (s *shell) reportIfHostDoesNotWait(hold *host.Hold, until time.Time) {
	ctx := s.ctx
	s.calls.Go(func() string { return "the wait for a lock to adopt" }, func() {
		if hold.AwaitAdoption(ctx, until); !hold.Waits() && ctx.Err() == nil {
			s.step(node.NotHeld{})
		}
	})
}

// report makes the report of a shutdown the result of LastReport, and passes it to OnReport. A call of TerminateAll may
// wait for the return of the shutdown's first OnReport, even if that is not set.
func (s *shell) report(e node.Effect) {
	of := e.Shutdown
	report := s.reportOf(of)
	s.last = func() Report { return s.reportOf(of) } // a pod that outlives the shutdown gets its Ended later
	logger := klog.FromContext(s.ctx).WithValues("pods", len(report.Pods), "notEnded", len(report.podErrs()), "errors", len(report.Errors), "cancelled", report.Cancelled)
	s.writeLog(func() { logger.Info("Shutdown manager completed processing shutdown event") })
	reported, complete := call.NewFuture[struct{}]()
	if r := s.reportingOf(of.Number); !r.isCalled {
		r.isCalled = true
		r.setCalled(reported, nil)
	}
	s.start(e, "Options.OnReport", func(ctx context.Context) error {
		if s.opts.OnReport != nil {
			s.opts.OnReport(ctx, report)
		}
		return nil
	}, func(err error) node.Input {
		complete(struct{}{}, err)
		return nil
	})
}

// logDrainTime logs why a drain begins, how much time it has, and what sets that time.
func (s *shell) logDrainTime(e node.Effect) {
	of := e.Shutdown
	logger := klog.FromContext(s.ctx).WithValues("kind", of.Kind, "origin", of.Origin, "setBy", s.timeSetBy(of))
	if len(s.schedule) > 0 || !of.HostEnd.IsZero() { // otherwise the time follows from the pods, which are not listed yet
		logger = logger.WithValues("time", of.WaitEnd().Sub(s.now()).Round(time.Millisecond))
	}
	s.writeLog(func() { logger.Info(e.Text) })
}

// writeLog calls write, which writes one line to the log, in a goroutine after those that were passed before. A logger
// may block, for example if nobody reads stderr, and a drain must not wait for it. The mutex is held.
func (s *shell) writeLog(write func()) {
	if s.logWrites = append(s.logWrites, write); len(s.logWrites) > 1 {
		return // the goroutine runs
	}
	s.calls.Go(func() string { return "the logger" }, func() {
		for ; write != nil; write = s.nextLogWrite() {
			write()
		}
	})
}

// nextLogWrite removes the first of logWrites, whose line is written now, and returns the next one; nil: none. It locks
// the mutex.
func (s *shell) nextLogWrite() func() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.logWrites = s.logWrites[1:]; len(s.logWrites) == 0 {
		return nil
	}
	return s.logWrites[0]
}

// timeSetBy says, for the log, what decides how much time a drain has: the announcement or the host's setting
// if they allow less than the requested delay, otherwise the options.
func (s *shell) timeSetBy(of *node.Shutdown) string {
	requested := s.requestedDelay()
	announced := of.HostEnd.Sub(of.Began) // meaningless without a HostEnd
	isShorter := announced < requested-times.Lag || len(s.schedule) == 0
	switch {
	case !of.HostEnd.IsZero() && isShorter:
		if h := s.host.Load(); h != nil {
			granted, known := h.Granted()
			// A deadline about as far away as the granted delay follows from the host's limit.
			if isHostsLimit := known && (announced-granted).Abs() < time.Second; isHostsLimit && h.LimitSetBy() != "" {
				return h.LimitSetBy()
			}
		}
		return "the announcement"
	case len(s.schedule) == 0:
		return "the grace periods of the pods"
	case requested < s.budget().Total():
		return "Options.Plan.Limit"
	default:
		return "the configured grace periods"
	}
}
