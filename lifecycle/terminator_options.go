package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/component-base/featuregate"

	"github.com/kubegrace/kubegrace/internal/nilcheck"
	"github.com/kubegrace/kubegrace/metrics"
)

// The defaults of [TerminatorOptions].
const (
	// DefaultStopTimeoutSlack is the default of StopTimeoutSlack in [TerminatorOptions].
	DefaultStopTimeoutSlack = 5 * time.Second
	// DefaultGiveUpAfter is the default of GiveUpAfter in [TerminatorOptions]. The kubelet's CRI
	// client waits as long for a StopContainer call after its timeout.
	DefaultGiveUpAfter = 2 * time.Minute
)

// TerminatorOptions configures a [Terminator]. Runtime or Pods is required.
type TerminatorOptions struct {
	// Runtime lists and stops the containers; nil is an error unless Pods is set.
	Runtime Runtime
	// Pods replaces Runtime for pods that stop as a unit; nil: containers stop one by one. The
	// preStop hooks of all containers run in parallel. When they have ended, or at the deadline,
	// StopPod is called with the rest of the grace period, at least 2 s. There is no order of
	// containers, sidecars are not started again, and HooksAtTurn has no effect.
	Pods PodStopper
	// Commands and PodIP are as in [HandlerRunnerOptions]. They have no effect if Hooks is set.
	Commands CommandRunner
	PodIP    func(context.Context, *v1.Pod) (string, error)
	// Hooks runs the hooks; nil: the runner of [NewHandlerRunner] with the Commands, PodIP, Events,
	// Metrics and Gates of these options.
	Hooks HandlerRunner
	// Exits tells when a container has exited, which ends its sleep hook; nil: the hook goes on
	// sleeping, as in the kubelet (k/k#134338).
	Exits ExitWatcher
	// OnHook is called with the result of each preStop hook that has run, when the hook has
	// returned or was abandoned; nil: there is no call. It runs in its own goroutine, after the
	// earlier events of the container. Calls for several containers may run at the same time. The
	// termination waits for OnHook for at most a second.
	OnHook func(pod *v1.Pod, c Container, r HookResult)
	// HooksAtTurn runs the preStop hook of a sidecar only after the main containers, and the sidecars
	// that are declared after it, have ended. If it is false, all hooks of a pod run in parallel when
	// the termination begins, as in the kubelet.
	HooksAtTurn bool
	// StopTimeoutSlack is how long a StopContainer call may take beyond its timeout. After that a
	// second, concurrent call with timeout 0 is made, and each further call after twice the wait.
	// It is also how long a Running call may take, until its context ends and another call is
	// made. For a runtime that polls it must be longer than the interval. 0 means
	// [DefaultStopTimeoutSlack]; a negative value is an error.
	StopTimeoutSlack time.Duration
	// GiveUpAfter is how long the terminator goes on trying to stop a container after its deadline,
	// or after the first StopContainer call if that is later. A container that the runtime still
	// lists then is [OutcomeRuntimeStuck]. 0 means [DefaultGiveUpAfter]; a negative value is an error.
	//
	// The one call of OneAttempt is given up GiveUpAfter and StopTimeoutSlack past its timeout. So
	// the error of a client that gives up first, such as the kubelet's, is still awaited.
	GiveUpAfter time.Duration
	// Events records the kubelet's events; nil: none are recorded.
	Events EventRecorder
	// Metrics counts terminations, hooks and kills; nil: nothing is counted.
	Metrics *metrics.Lifecycle
	// Gates is read once, by [NewTerminator]; nil: the default of each feature.
	Gates featuregate.FeatureGate
}

// validate returns everything that is wrong with the options, joined.
func (o TerminatorOptions) validate() error {
	var errs []error
	if f, isFunc := o.Runtime.(RuntimeFunc); o.Pods == nil && o.Runtime == nil || isFunc && f == nil {
		errs = append(errs, errors.New("Runtime: must be set"))
	} else if !isFunc {
		errs = append(errs, nilcheck.Option("Runtime", o.Runtime))
	}
	if o.Runtime != nil && o.Pods != nil {
		errs = append(errs, errors.New("Runtime: must not be set with Pods, which replaces it"))
	}
	errs = append(errs, nilcheck.Option("Pods", o.Pods), nilcheck.Option("Commands", o.Commands), nilcheck.Option("Hooks", o.Hooks),
		nilcheck.Option("Exits", o.Exits), nilcheck.Option("Events", o.Events), nilcheck.Option("Gates", o.Gates))
	for name, span := range map[string]time.Duration{"StopTimeoutSlack": o.StopTimeoutSlack, "GiveUpAfter": o.GiveUpAfter} {
		if span < 0 {
			errs = append(errs, fmt.Errorf("%s: must not be negative, is %v", name, span))
		}
	}
	return errors.Join(errs...)
}
