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
	// DefaultStopTimeoutSlack is the default of [TerminatorOptions].StopTimeoutSlack.
	DefaultStopTimeoutSlack = 5 * time.Second
	// DefaultGiveUpAfter is the default of [TerminatorOptions].GiveUpAfter. The kubelet's CRI client
	// waits as long for a StopContainer call after its timeout.
	DefaultGiveUpAfter = 2 * time.Minute
)

// TerminatorOptions configures a [Terminator]. Runtime or Pods is required.
type TerminatorOptions struct {
	// Runtime lists and stops the containers. Either Runtime or Pods must be set, not both.
	Runtime Runtime
	// Pods replaces Runtime for pods that stop as a unit; nil: containers stop one by one. The preStop
	// hooks of all containers run in parallel. After the last hook, or at the deadline, StopPod is
	// called with the remaining grace period, at least 2 s. Containers have no order, sidecars are not
	// started again, and HooksAtTurn has no effect. If an earlier termination could not stop the pod, its
	// old deadline applies to containers started since then, too, unless Forget was called in between.
	Pods PodStopper
	// Commands and PodIP are as in [HandlerRunnerOptions], and are used only if Hooks is nil. [NewTerminator]
	// refuses Commands beside a runner of [NewHandlerRunner] that has none: they would never run a hook.
	Commands CommandRunner
	PodIP    func(context.Context, *v1.Pod) (string, error)
	// Hooks runs the hooks; nil: [NewHandlerRunner] with Commands, PodIP, Events, Metrics and Gates of
	// these options.
	Hooks HandlerRunner
	// Exits reports when a container has exited, so that its sleep hook ends at once instead of
	// delaying the termination; nil: the sleep continues, as in the kubelet (k/k#134338).
	Exits ExitWatcher
	// OnHook is called with the result of each preStop hook that ran, after the hook has returned or
	// was abandoned; nil: not called. It runs in its own goroutine, after earlier events of the
	// container, and concurrently for several containers. The termination waits up to 1 s for it.
	OnHook func(pod *v1.Pod, c Container, r HookResult)
	// HooksAtTurn runs a sidecar's preStop hook only after the main containers and the sidecars
	// declared after it have ended. If false, all hooks of a pod start in parallel when the termination
	// begins, as in the kubelet.
	HooksAtTurn bool
	// StopTimeoutSlack is how long a StopContainer call may take beyond its timeout. After that, a
	// concurrent second call with timeout 0 is made. Each further call may take twice as long beyond its
	// timeout as the one before.
	//
	// StopTimeoutSlack is also how long a Running call may take before its context ends and it is
	// repeated; for a runtime that polls, it must exceed the polling interval. 0 means
	// [DefaultStopTimeoutSlack]; a negative value is an error.
	StopTimeoutSlack time.Duration
	// GiveUpAfter is how long the terminator keeps trying to stop a container after its deadline, or
	// after the first StopContainer call if that is later. A container that the runtime still lists
	// then is [OutcomeRuntimeStuck], and so is one that is first listed GiveUpAfter past the pod's deadline
	// or later. 0 means [DefaultGiveUpAfter]; a negative value is an error.
	//
	// A request with OneAttempt waits longer for its single call: until GiveUpAfter plus
	// StopTimeoutSlack past the call's timeout. A client of the runtime that gives up by itself, such
	// as the kubelet's, can then still return its error.
	GiveUpAfter time.Duration
	// Events records the kubelet's events; nil: not recorded. A recorder that hangs delays the end of a
	// stop by at most 1 s.
	Events EventRecorder
	// Metrics counts terminations, hooks and kills; nil: not counted.
	Metrics *metrics.Lifecycle
	// Gates is read once, by [NewTerminator]; nil: the default of each feature.
	Gates featuregate.FeatureGate
}

// validate returns one error that joins the errors of all invalid options. nilcheck.Option finds an interface that holds a nil
// pointer, which would panic later.
func (o TerminatorOptions) validate() error {
	errs := []error{nilcheck.Option("Runtime", o.Runtime)}
	if o.Runtime == nil && o.Pods == nil {
		errs = append(errs, errors.New("Runtime: must be set"))
	}
	if o.Runtime != nil && o.Pods != nil {
		errs = append(errs, errors.New("Runtime: must not be set with Pods, which replaces it"))
	}
	errs = append(errs, nilcheck.Option("Pods", o.Pods), nilcheck.Option("Commands", o.Commands), nilcheck.Option("Hooks", o.Hooks),
		nilcheck.Option("Exits", o.Exits), nilcheck.Option("Events", o.Events), nilcheck.Option("Gates", o.Gates))
	builtin, _ := o.Hooks.(*handlerRunner) // nil if Hooks is a runner of the agent's own
	runsNoCommands := builtin != nil && builtin.Commands == nil
	if runsNoCommands && o.Commands != nil { // exec hooks would fail although there is a runner for them
		errs = append(errs, errors.New("the option Commands has no effect with Hooks, which has no Commands: set it in HandlerRunnerOptions"))
	}
	if o.StopTimeoutSlack < 0 {
		errs = append(errs, fmt.Errorf("StopTimeoutSlack: must not be negative, is %v", o.StopTimeoutSlack))
	}
	if o.GiveUpAfter < 0 {
		errs = append(errs, fmt.Errorf("GiveUpAfter: must not be negative, is %v", o.GiveUpAfter))
	}
	return errors.Join(errs...)
}
