package shutdown

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/kubegrace/kubegrace/shutdown/source"

	v1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"

	"github.com/kubegrace/kubegrace/graceperiod"
	"github.com/kubegrace/kubegrace/internal/call"
	"github.com/kubegrace/kubegrace/internal/features"
	"github.com/kubegrace/kubegrace/shutdown/internal/node"
	"github.com/kubegrace/kubegrace/shutdown/plan"
)

// answerTime bounds the wait for a function that should return at once.
const answerTime = time.Second

// settings are the options of a manager, and what follows from them. They do not change.
type settings struct {
	opts       Options
	schedule   plan.Schedule // nil: the feature is off
	gate       bool          // GracefulNodeShutdown
	byPriority bool          // GracefulNodeShutdownBasedOnPodPriority
	off        string        // why no host is watched; "": one is
}

// newSettings returns the settings of valid options.
func newSettings(opts Options) *settings {
	s := &settings{
		opts:       opts.withDefaults(),
		gate:       features.Enabled(opts.Gates, GracefulNodeShutdown),
		byPriority: features.Enabled(opts.Gates, GracefulNodeShutdownBasedOnPodPriority),
	}
	if s.gate {
		s.schedule = opts.Config.Schedule(s.byPriority)
	} else {
		s.opts.StateDir = "" // the log of an agent with the feature is left alone
	}
	switch {
	case opts.Source == nil:
		s.off = "there is no source"
	case !s.gate:
		s.off = "the feature gate GracefulNodeShutdown is off"
	case len(s.schedule) == 0:
		s.off = "the configuration gives no time to any pod"
	}
	return s
}

// watches reports whether a host is watched.
func (s *settings) watches() bool { return s.off == "" }

// nodeConfig returns what the core needs to know of the options.
func (s *settings) nodeConfig() node.Config {
	return node.Config{Schedule: s.schedule, Options: s.opts.Plan}
}

// policy returns the pod policy of a kind of shutdown. One that is not known is an error, and
// PolicySetTerminal counts.
func (s *settings) policy(kind source.Kind) (PodPolicy, error) {
	policy := s.opts.Policy(kind)
	if policy == PolicyDelete && !s.opts.Plan.Steps.Statuses {
		return policy, fmt.Errorf("pod policy %s for a shutdown of kind %q deletes no pod: Options.Reporter is no StatusFlusher", policy, kind)
	}
	if !policy.known() {
		return PolicySetTerminal, fmt.Errorf("pod policy %q for a shutdown of kind %q is not known, %s counts", policy, kind, PolicySetTerminal)
	}
	return policy, nil
}

// budget returns what a whole drain needs.
func (s *settings) budget() plan.Budget { return plan.NewBudget(s.schedule, s.opts.Plan) }

// requestedDelay returns the delay to ask of the host: the time of a whole drain, or Plan.Limit
// if that is less.
func (s *settings) requestedDelay() time.Duration { return s.opts.Plan.Cap(s.budget().Total()) }

// shortensBucket reports whether some bucket gets less than its configured time if the host waits
// for limit.
func (s *settings) shortensBucket(limit time.Duration) bool {
	return s.budget().Fit(limit, nil).Pods() < s.schedule.Total()
}

// logRequest logs the requested delay and its parts, once.
func (s *settings) logRequest(ctx context.Context) {
	b, logger := s.budget(), klog.FromContext(ctx)
	if s.shortensBucket(s.requestedDelay()) {
		logger.Info("The limit of the shutdown options is too short for the schedule, some pods get less time", "limit", s.opts.Plan.Limit, "schedule", b.Pods())
	}
	logger.V(1).Info("Asking the host to delay its shutdown", "delay", s.requestedDelay(),
		"pods", b.Pods(), "prepare", b.Prepare, "hold", b.Hold, "publish", b.Publish, "besideBuckets", b.Beside()-b.Publish,
		"containersFloor", b.Floor, "releaseMargin", b.Margin)
}

// scheduleOf returns the schedule for a node that has none configured: one bucket that lasts as
// long as the longest grace period of a pod.
func scheduleOf(pods []*v1.Pod) plan.Schedule {
	seconds := graceperiod.DefaultSeconds
	for _, pod := range pods {
		if pod != nil && pod.Spec.TerminationGracePeriodSeconds != nil {
			seconds = max(seconds, *pod.Spec.TerminationGracePeriodSeconds)
		}
	}
	return plan.Schedule{{Seconds: seconds}}
}

// withGrace returns pods that all have a grace period of their own, of which the default is Kubernetes'.
func withGrace(pods []*v1.Pod) []*v1.Pod {
	pods = slices.Clone(pods)
	for i, pod := range pods {
		if pod != nil && pod.Spec.TerminationGracePeriodSeconds == nil {
			seconds := graceperiod.DefaultSeconds
			pods[i] = pod.DeepCopy()
			pods[i].Spec.TerminationGracePeriodSeconds = &seconds
		}
	}
	return pods
}

// plan returns what a drain would do now if the host waits for limit; the longest duration means
// that it has no limit. A list of the pods that does not come within a second is a warning.
func (s *settings) plan(ctx context.Context, calls *call.Group, limit time.Duration) plan.Plan {
	opts := s.opts.Plan
	if limit < math.MaxInt64 && (opts.Limit == 0 || limit < opts.Limit) {
		opts.Limit = cmp.Or(max(limit, 0), -1) // 0 would mean no limit
	}
	listed := call.Start(ctx, calls, "Options.ListPods", s.opts.ListPods)
	pods, err := listed.Await(ctx, time.Now().Add(answerTime))
	schedule := s.schedule
	if len(schedule) == 0 {
		schedule, pods = scheduleOf(pods), withGrace(pods)
	}
	computed := call.Start(ctx, calls, "Options.Plan.PriorityOf", func(context.Context) (plan.Plan, error) {
		return plan.New(schedule, pods, opts), nil
	})
	planned, priorityErr := computed.Await(ctx, time.Now().Add(answerTime))
	if priorityErr != nil {
		opts.PriorityOf = nil
		planned = plan.New(schedule, pods, opts)
		planned.Warnings = append(planned.Warnings, fmt.Sprintf("priority classes that are not built in count as priority 0: %v", priorityErr))
	}
	switch {
	case errors.Is(err, call.ErrTimeSpent):
		planned.Warnings = append(planned.Warnings, "the pods are not known: Options.ListPods did not return within a second")
	case err != nil:
		planned.Warnings = append(planned.Warnings, fmt.Sprintf("the list of pods is not complete: %v", err))
	}
	return planned
}
