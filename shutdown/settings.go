package shutdown

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"

	"github.com/kubegrace/kubegrace/graceperiod"
	"github.com/kubegrace/kubegrace/internal/call"
	"github.com/kubegrace/kubegrace/internal/features"
	"github.com/kubegrace/kubegrace/shutdown/internal/node"
	"github.com/kubegrace/kubegrace/shutdown/plan"
)

// answerTime is how long the manager waits for embedder functions that should return at once.
const answerTime = time.Second

// priorityTime is how long the manager waits for Options.Plan.PriorityOf. It is less than the time that a drain waits for
// a list: if PriorityOf hangs, the list still comes in time, and only PriorityOf is reported.
const priorityTime = 900 * time.Millisecond

// noLimit stands for a host that waits without a limit.
const noLimit = time.Duration(math.MaxInt64)

// settings are the options of a manager and values derived from them. They do not change.
type settings struct {
	opts           Options
	schedule       plan.Schedule   // nil: the feature is off, or nothing is configured
	isGateOn       bool            // the feature gate GracefulNodeShutdown is on
	byPriority     bool            // the feature gate GracefulNodeShutdownBasedOnPodPriority is on
	whyNotWatching string          // why no host is watched; "" if one is
	flusher        StatusFlusher   // Options.Reporter; nil: it is no StatusFlusher
	marker         ReadinessMarker // Options.Reporter; nil: it is no ReadinessMarker
}

// newSettings returns the settings for valid options.
func newSettings(opts Options) *settings {
	s := &settings{
		opts:       opts.withDefaults(),
		isGateOn:   features.Enabled(opts.Gates, GracefulNodeShutdown),
		byPriority: features.Enabled(opts.Gates, GracefulNodeShutdownBasedOnPodPriority),
	}
	s.flusher, _ = opts.Reporter.(StatusFlusher)
	s.marker, _ = opts.Reporter.(ReadinessMarker)
	if s.isGateOn {
		s.schedule = opts.Config.Schedule(s.byPriority)
	} else {
		s.opts.StateDir = "" // an agent whose gate is off must not change the state log of one whose gate is on
	}
	switch {
	case opts.Source == nil:
		s.whyNotWatching = "Options.Source is not set"
	case !s.isGateOn:
		s.whyNotWatching = "the feature gate GracefulNodeShutdown is off"
	case len(s.schedule) == 0:
		s.whyNotWatching = "no grace period is configured"
	}
	return s
}

// watches reports whether a host is watched.
func (s *settings) watches() bool { return s.whyNotWatching == "" }

// nodeConfig returns the configuration of the core (package node). askPolicies passes the pod policies to the core later.
func (s *settings) nodeConfig() node.Config {
	return node.Config{Schedule: s.schedule, Options: s.opts.Plan}
}

// budget returns the time of each part of a drain, if no limit shortens it.
func (s *settings) budget() plan.Budget { return plan.NewBudget(s.schedule, s.opts.Plan) }

// requestedDelay returns the delay to request from the host: the whole budget, but at most Options.Plan.Limit.
func (s *settings) requestedDelay() time.Duration { return s.opts.Plan.Cap(s.budget().Total()) }

// shortensBucket reports whether a bucket gets less than its configured time if the host grants limit.
func (s *settings) shortensBucket(limit time.Duration) bool {
	fitted := s.budget().Fit(limit, nil) // nil: which buckets have pods is not known
	return fitted.Pods() < s.schedule.Total()
}

// logBucketsWithoutTime logs which priorities have 0 s in ShutdownGracePeriodByPodPriority. That may be a mistake: the
// configuration may have misspelt shutdownGracePeriodSeconds or left it out. The other form of Options.Config,
// ShutdownGracePeriod and ShutdownGracePeriodCriticalPods, is not checked: 0 s for critical pods is the kubelet's default there.
func (s *shell) logBucketsWithoutTime(ctx context.Context) {
	var priorities []int32
	for _, p := range s.opts.Config.ShutdownGracePeriodByPodPriority {
		if p.ShutdownGracePeriodSeconds == 0 {
			priorities = append(priorities, p.Priority)
		}
	}
	if len(s.schedule) > 0 && len(priorities) > 0 {
		s.logLines.Add(func() {
			klog.FromContext(ctx).Info("Pods are killed at once, because shutdownGracePeriodSeconds is 0 for their priorities", "priorities", priorities)
		})
	}
}

// logRequestedDelay logs the delay that is requested from the host, and the time of each part of the drain (plan.Budget). It
// also logs if Options.Plan.Limit makes the delay too short for the schedule.
func (s *settings) logRequestedDelay(ctx context.Context) {
	b, logger := s.budget(), klog.FromContext(ctx)
	if s.shortensBucket(s.requestedDelay()) {
		logger.Info("Options.Plan.Limit is shorter than the schedule, some pods get less time", "limit", s.opts.Plan.Limit, "schedule", b.Pods())
	}
	otherSteps := b.Beside() - b.Publish // readiness marks, unmounts and final statuses of all buckets
	logger.V(1).Info("Asking the host to delay its shutdown", "delay", s.requestedDelay(),
		"pods", b.Pods(), "prepare", b.Prepare, "hold", b.Hold, "publish", b.Publish, "otherBucketSteps", otherSteps,
		"containersFloor", b.Floor, "releaseMargin", b.Margin)
}

// defaultSchedule returns the schedule of a node that has none configured: one bucket that lasts as long
// as the longest grace period of a pod.
func defaultSchedule(pods []*v1.Pod) plan.Schedule {
	seconds := graceperiod.DefaultSeconds
	for _, pod := range pods {
		if pod != nil && pod.Spec.TerminationGracePeriodSeconds != nil {
			seconds = max(seconds, *pod.Spec.TerminationGracePeriodSeconds)
		}
	}
	return plan.Schedule{{Seconds: seconds}}
}

// withGracePeriods returns the pods. A pod without a grace period is replaced by a copy with Kubernetes' default.
func withGracePeriods(pods []*v1.Pod) []*v1.Pod {
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

// plan returns what a drain would do now if the host grants limit, which may be noLimit. It waits for Options.ListPods, and then
// for Options.Plan.PriorityOf, at most answerTime each. If one of them hangs, or the list fails, it plans without the results, and
// a warning in the plan says so. The context of ListPods ends when plan returns.
func (s *shell) plan(limit time.Duration) plan.Plan {
	ctx, cancel := context.WithCancel(s.context())
	defer cancel()
	opts := s.opts.Plan
	if limit < noLimit {
		opts.Limit = opts.Cap(limit)
		if opts.Limit == 0 { // the host does not wait
			opts.Limit = -1 // 0 would mean no limit
		}
	}
	listed := call.Start(ctx, s.calls, "Options.ListPods", s.opts.ListPods)
	pods, listErr := listed.Await(ctx, time.Now().Add(answerTime))
	schedule := s.schedule
	if len(schedule) == 0 {
		schedule, pods = defaultSchedule(pods), withGracePeriods(pods)
	}
	opts, priorityErr := s.priorities(ctx, opts, pods)
	planned := plan.New(schedule, pods, opts)
	if priorityErr != nil {
		planned.Warnings = append(planned.Warnings, fmt.Sprintf("priority classes that are not built in count as priority 0: %v", priorityErr))
	}
	switch {
	case errors.Is(listErr, call.ErrTimeSpent):
		planned.Warnings = append(planned.Warnings, "the plan has no pods: Options.ListPods did not return within 1s")
	case listErr != nil:
		planned.Warnings = append(planned.Warnings, fmt.Sprintf("the list of pods is incomplete: %v", listErr))
	}
	return planned
}
