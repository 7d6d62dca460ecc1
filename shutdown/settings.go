package shutdown

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"k8s.io/klog/v2"

	"github.com/kubegrace/kubegrace/internal/call"
	"github.com/kubegrace/kubegrace/internal/features"
	"github.com/kubegrace/kubegrace/shutdown/internal/drain"
	"github.com/kubegrace/kubegrace/shutdown/internal/outbox"
	"github.com/kubegrace/kubegrace/shutdown/internal/timetable"
	"github.com/kubegrace/kubegrace/shutdown/plan"
)

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
		s.opts.StateDir = "" // the record of an agent with the feature is left alone
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

// flushes reports whether final statuses are sent to the API server.
func (s *settings) flushes() bool {
	_, flushes := s.opts.Reporter.(StatusFlusher)
	return flushes
}

// marks reports whether pods are marked not ready before they are killed.
func (s *settings) marks() bool {
	_, marks := s.opts.Reporter.(ReadinessMarker)
	return marks
}

// awaitKill waits for a kill whose error has an Await method, as podkiller's *OverdueError. It
// returns any other error unchanged.
func awaitKill(ctx context.Context, result KillResult, err error) (KillResult, error) {
	var goesOn interface {
		Await(ctx context.Context) (KillResult, error)
	}
	if errors.As(err, &goesOn) {
		return goesOn.Await(ctx)
	}
	return result, err
}

// outboxOptions returns the reporter as the outbox calls it. changed is called when the debts have
// changed; nil: nothing is stored.
func (s *settings) outboxOptions(changed func()) outbox.Options {
	o := outbox.Options{PublishAttempt: plan.NewBudget(nil, s.opts.Plan).Publish, Changed: changed}
	if reporter := s.opts.Reporter; reporter != nil {
		o.Publish = func(ctx context.Context, state any) error {
			return reporter.PublishNode(ctx, state.(NodeState)) //nolint:forcetypeassert // the manager publishes nothing else
		}
	}
	if flusher, ok := s.opts.Reporter.(StatusFlusher); ok {
		o.FlushPod = flusher.FlushPod
	}
	if marker, ok := s.opts.Reporter.(ReadinessMarker); ok {
		o.MarkNotReady = marker.MarkNotReady
	}
	if restorer, ok := s.opts.Reporter.(ReadinessRestorer); ok {
		o.RestoreReadiness = restorer.RestoreReadiness
	}
	return o
}

// policy asks for the pod policy of a kind of shutdown. If the answer is late or unknown,
// PolicySetTerminal counts.
func (s *settings) policy(ctx context.Context, calls *call.Group, kind Kind, fail func(error)) PodPolicy {
	if s.opts.Policy == nil {
		return PolicySetTerminal
	}
	answer := call.Start(ctx, calls, "Options.Policy", func(context.Context) (PodPolicy, error) { return s.opts.Policy(kind), nil })
	policy, err := answer.Await(ctx, time.Now().Add(answerTime))
	switch {
	case err != nil:
		fail(fmt.Errorf("failed to ask for the pod policy, %s counts: %w", PolicySetTerminal, err))
		return PolicySetTerminal
	case policy.known():
		return policy
	default:
		fail(fmt.Errorf("pod policy %q for a shutdown of kind %q is not known, %s counts", policy, kind, PolicySetTerminal))
		return PolicySetTerminal
	}
}

// budget returns what a whole drain needs.
func (s *settings) budget() plan.Budget { return plan.NewBudget(s.schedule, s.opts.Plan) }

// requestedDelay returns the delay to ask of the host: the time of a whole drain, or Plan.Limit
// if that is less.
func (s *settings) requestedDelay() time.Duration {
	total := s.budget().Total()
	if limit := s.opts.Plan.Limit; limit != 0 {
		return min(total, max(limit, 0))
	}
	return total
}

// shortensBucket reports whether some bucket gets less than its configured time if the host waits
// for limit.
func (s *settings) shortensBucket(limit time.Duration) bool {
	return s.budget().Fit(limit, nil).Schedule.Total() < s.schedule.Total()
}

// logRequest logs the requested delay and its parts, once.
func (s *settings) logRequest(ctx context.Context) {
	b, logger := s.budget(), klog.FromContext(ctx)
	if s.shortensBucket(s.requestedDelay()) {
		logger.Info("The limit of the shutdown options is too short for the schedule, some pods get less time", "limit", s.opts.Plan.Limit, "schedule", b.Schedule.Total())
	}
	logger.V(1).Info("Asking the host to delay its shutdown", "delay", s.requestedDelay(),
		"pods", b.Schedule.Total(), "prepare", b.Prepare, "hold", b.Hold, "publish", b.Publish, "besideBuckets", b.Overhead()-b.Publish,
		"containersFloor", b.Floor, "releaseMargin", b.Margin)
}

// eventLag is how long an event may be on its way without costing a pod a second.
const eventLag = 100 * time.Millisecond

// request returns what the timetable of a drain is made for. Of a host's 30 s a little less is left
// when its event is received: what lacks of a whole second has been before.
func (s *settings) request(hostEnd, received time.Time) timetable.Request {
	if part := hostEnd.Sub(received) % time.Second; !hostEnd.IsZero() && part >= time.Second-eventLag {
		received = received.Add(part - time.Second)
	}
	return timetable.Request{Schedule: s.schedule, Options: s.opts.Plan, Received: received, HostEnd: hostEnd}
}

// end returns when a drain for an announcement would stop waiting for pods. Whether it begins late
// is not known yet; it may if there is a deadline.
func (s *settings) end(a announcement, received time.Time) time.Time {
	request := s.request(a.deadline, received)
	request.Late = true
	if len(request.Schedule) == 0 {
		request.Schedule = plan.Schedule{{Seconds: math.MaxInt32}} // the pods make it; the timetable then says when it ends
	}
	end, _ := timetable.End(request)
	return end
}

// plan returns what a drain would do now if the host waits for limit; the longest duration means
// that it has no limit.
func (s *settings) plan(limit time.Duration) plan.Plan {
	opts := s.opts.Plan
	if limit < math.MaxInt64 && (opts.Limit == 0 || limit < opts.Limit) {
		opts.Limit = cmp.Or(max(limit, 0), -1) // 0 would mean no limit
	}
	pods, err := s.opts.Pods(context.Background()) //nolint:forbidigo // Manager.Plan has no context
	schedule := s.schedule
	if len(schedule) == 0 {
		schedule = drain.ScheduleOf(pods)
	}
	planned := plan.New(schedule, pods, opts)
	if err != nil {
		planned.Warnings = append(planned.Warnings, fmt.Sprintf("the list of pods is not complete: %v", err))
	}
	return planned
}
