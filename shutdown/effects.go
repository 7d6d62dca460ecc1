package shutdown

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/klog/v2"

	"github.com/kubegrace/kubegrace/graceperiod"
	"github.com/kubegrace/kubegrace/internal/call"
	"github.com/kubegrace/kubegrace/internal/times"
	"github.com/kubegrace/kubegrace/shutdown/internal/node"
)

// slowTime is how long a call to embedder code may take before it is logged as slow.
const slowTime = 5 * time.Second

// eventReason is the reason of the kubelet's events of a node shutdown.
const eventReason = "Shutdown"

// perform carries out an effect of the core (package node), or starts it if it takes time. The mutex is held.
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
		pods := objectsOf(e.Pods)
		s.callStep(e, "Options.Volumes", func(ctx context.Context) error { return s.opts.Volumes.WaitForAllPodsUnmount(ctx, pods) })
	case node.OnPlan:
		s.callOnPlan(e)
	case node.List:
		s.list(e)
	case node.Kill:
		s.kill(e)
	case node.SendMessage:
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
	case node.KeepLock, node.ReleaseLock, node.RetakeLock, node.TakeNextLock:
		s.changeLock(e)
	case node.Report:
		s.deliverReport(e)
	case node.Log:
		logger := klog.FromContext(s.ctx)
		s.logLines.Add(func() { logger.Info(e.Text) })
	case node.LogError:
		logger := klog.FromContext(s.ctx)
		if e.Pod != nil {
			logger = logger.WithValues("pod", klog.KRef(e.Pod.Namespace, e.Pod.Name))
		}
		s.logLines.Add(func() { logger.Error(nil, e.Text) })
	case node.LogDrainBegins:
		s.logDrainTime(e)
	case node.RecordEvent:
		s.recordEvent(v1.EventTypeNormal, e.Text)
	case node.CountPod:
		defaultOutcome := "Ended" // for a killer that gives none
		if e.Pod.Ended.IsZero() {
			defaultOutcome = "Failed"
		}
		s.opts.Metrics.PodKilled(cmp.Or(e.Pod.Outcome, defaultOutcome))
	case node.CountBucket:
		s.opts.Metrics.Bucket(e.Took)
	}
}

// recordEvent records an event on the node, after all earlier ones. The mutex is held.
func (s *shell) recordEvent(eventtype, message string) {
	if s.opts.Events == nil {
		return
	}
	ctx := s.ctx
	s.events.Add(func() {
		call.Guard(ctx, "Options.Events", func() error {
			s.opts.Events.Event(s.opts.Node, eventtype, eventReason, message)
			return nil
		}, func(error) {}) // Guard logs a panic
	})
}

// callStep calls a function that a step of the drain waits for. When it returns, the core (package node) gets its error as
// [node.CallReturned].
func (s *shell) callStep(e node.Effect, name string, f func(context.Context) error) {
	s.start(e, name, f, func(a answer) node.Input { return node.CallReturned{Call: e.Call, Err: a.err} })
}

// callOnPlan passes the plan to OnPlan, if it is set. The drain does not wait for it.
func (s *shell) callOnPlan(e node.Effect) {
	if s.opts.OnPlan == nil {
		return
	}
	table, pods := e.Shutdown.Timetable, objectsOf(e.Pods)
	noInput := func(answer) node.Input { return nil }
	s.start(e, "Options.OnPlan", func(ctx context.Context) error {
		s.opts.OnPlan(ctx, table.Plan(pods))
		return nil
	}, noInput)
}

// objectsOf returns the API objects of these pods, as they were last listed.
func objectsOf(pods []*node.Pod) []*v1.Pod {
	objects := make([]*v1.Pod, len(pods))
	for i, p := range pods {
		objects[i] = p.Object
	}
	return objects
}

// start calls do, which calls embedder code, in a goroutine. inputOf then makes an input for the core of the answer; if it
// returns nil, the core gets no input. The context of do ends when the core aborts the call, and at the effect's Until, if that
// is set. The context of a kill has no deadline, because a pod may end late. A call that takes longer than slowTime is logged.
// A kill is logged only if it takes slowTime more than its grace period. do is called when the step of the core is over, so
// that embedder code that asks the manager gets the new state. The mutex is held.
func (s *shell) start(e node.Effect, name string, do func(context.Context) error, inputOf func(answer) node.Input) {
	var ctx context.Context
	var cancel context.CancelFunc
	if hasDeadline := !e.Until.IsZero() && e.Do != node.Kill; hasDeadline {
		ctx, cancel = context.WithDeadlineCause(s.ctx, time.Now().Add(e.Until.Sub(s.now())), call.ErrTimeSpent)
	} else {
		ctx, cancel = context.WithCancel(s.ctx)
	}
	s.aborts[e.Call] = cancel
	slowAfter := graceperiod.Duration(e.Seconds) + slowTime // only a kill has Seconds
	s.calls.Call(ctx, name, slowAfter, func() error {
		s.awaitStep()
		return do(ctx)
	}, func(err error) {
		cancel()
		in := inputOf(answerOf(err))
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.aborts, e.Call)
		if in != nil {
			s.stepLocked(in)
		}
	})
}

// awaitStep returns when no step is under way.
func (s *shell) awaitStep() {
	s.mu.Lock()
	defer s.mu.Unlock()
}

// answer is what package node uses of the error that a call to embedder code has returned.
type answer struct {
	err        error         // an error with the same text; nil: there was no error
	noRetry    bool          // the error wraps ErrNoRetry
	retryAfter time.Duration // the pause that the API server asks for; 0: none
}

// answerOf reads an embedder's error, whose methods may panic. A panic is only logged, and the fields that could not be
// read stay unset.
func answerOf(err error) answer {
	if err == nil {
		return answer{}
	}
	text := fmt.Sprint(err) // recovers a panic of the Error method
	a := answer{err: errors.New(text)}
	call.Guard(context.Background(), "an error", func() error { //nolint:forbidigo // only for logging a panic
		a.noRetry = errors.Is(err, ErrNoRetry)
		if seconds, asks := apierrors.SuggestsClientDelay(err); asks {
			a.retryAfter = time.Duration(seconds) * time.Second
		}
		return nil
	}, func(error) {})
	return a
}

// logDrainTime logs why a drain begins, how much time it has, and what sets that time.
func (s *shell) logDrainTime(e node.Effect) {
	shutdown := e.Shutdown
	logger := klog.FromContext(s.ctx).WithValues("kind", shutdown.Kind, "origin", shutdown.Origin, "setBy", s.timeSetBy(shutdown))
	isTimeKnown := len(s.schedule) > 0 || !shutdown.HostEnd.IsZero() // otherwise it follows from the pods, which are not listed yet
	if isTimeKnown {
		logger = logger.WithValues("time", shutdown.WaitEnd().Sub(s.now()).Round(time.Millisecond))
	}
	s.logLines.Add(func() { logger.Info(e.Text) })
}

// timeSetBy says, for the log, what decides how much time a drain has: the host (hostTimeSetBy) if it waits for less than the
// requested delay, otherwise the options. Without a schedule the host decides, or the pods if it has no limit.
func (s *shell) timeSetBy(shutdown *node.Shutdown) string {
	requested := s.requestedDelay()
	hasSchedule := len(s.schedule) > 0
	if hostHasLimit := !shutdown.HostEnd.IsZero(); hostHasLimit {
		announced := shutdown.HostEnd.Sub(shutdown.Began)
		isShorter := announced < requested-times.Lag // an announcement takes a few milliseconds to arrive
		if isShorter || !hasSchedule {
			return s.hostTimeSetBy(announced)
		}
	}
	switch {
	case !hasSchedule:
		return "the grace periods of the pods"
	case requested < s.budget().Total():
		return "Options.Plan.Limit"
	default:
		return "the configured grace periods"
	}
}

// hostTimeSetBy names what sets the announced time, for which the host waits. If that time is within 1 s of the granted delay, it
// is the setting that limits the delay, and otherwise the announcement itself.
func (s *shell) hostTimeSetBy(announced time.Duration) string {
	if h := s.host.Load(); h != nil {
		granted, known := h.Granted()
		isAsGranted := known && (announced-granted).Abs() < time.Second
		if setting := h.LimitSetBy(); isAsGranted && setting != "" {
			return setting
		}
	}
	return "the announcement"
}
