package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/metrics"
)

// The defaults of [TerminatorOptions].
const (
	// DefaultStopSlack is the default of [TerminatorOptions.StopSlack].
	DefaultStopSlack = 5 * time.Second
	// DefaultGiveUp is the default of [TerminatorOptions.GiveUp]. The kubelet's CRI
	// client waits as long after the timeout of its StopContainer call.
	DefaultGiveUp = 2 * time.Minute
	// DefaultExitSlack is the default of [TerminatorOptions.ExitSlack].
	DefaultExitSlack = time.Second
)

// HookTiming says when preStop hooks run.
type HookTiming string

const (
	// HooksAtTermination runs all preStop hooks of a pod concurrently when its
	// termination starts, those of sidecars included, as the kubelet does. It is the
	// zero value.
	HooksAtTermination HookTiming = ""
	// HooksAtTurn runs the preStop hook of a container when its turn to stop comes:
	// that of a sidecar after the main containers have ended.
	HooksAtTurn HookTiming = "AtTurn"
)

// TerminatorOptions configures a [Terminator]. Only Runtime, or Pods, is required.
type TerminatorOptions struct {
	// Runtime stops the containers; nil is an error unless Pods is set.
	Runtime Runtime
	// Pods stops all containers of a pod as a unit, in place of Runtime: their preStop hooks
	// run side by side, and one StopPod follows them, or the deadline, with what is left, at
	// least 2 s. There is no order of containers, sidecars are not started again, and
	// HookTiming has no effect. nil: the containers are stopped one by one.
	Pods PodStopper
	// Commands, HTTP and PodIP are those of [HandlerRunnerOptions]. They have no effect
	// if Hooks is set.
	Commands CommandRunner
	HTTP     HTTPDoer
	PodIP    func(context.Context, *v1.Pod) (string, error)
	// Hooks runs the hooks; nil: the runner of [NewHandlerRunner] with the Commands,
	// HTTP, PodIP, Events, Metrics and Gates of these options.
	Hooks HandlerRunner
	// Exits tells when a container has exited. That ends its sleep hook, and a container of
	// which it does not say so does not count as ended, whatever the runtime says; nil: the
	// hook sleeps on, as in the kubelet (k/k#134338), and the runtime is believed.
	Exits ExitWatcher
	// ExitSlack is how long Exits may be behind the runtime. If it still says that a
	// container runs that long after StopContainer has returned nil or NotFound, the runtime
	// is asked again. A watcher that polls needs its interval. 0: [DefaultExitSlack]; negative
	// is an error.
	ExitSlack time.Duration
	// OnHook is told the result of each preStop hook that has run, once it has returned or
	// was abandoned. It is called in a goroutine of its own, after the events of the container
	// that are due before it, for several containers at the same time; the termination waits
	// for it for at most a second. nil: nobody is told.
	OnHook func(pod *v1.Pod, c Container, r HookResult)
	// HookTiming says when preStop hooks run; "": [HooksAtTermination].
	HookTiming HookTiming
	// StopSlack is how long after its timeout a StopContainer call may take before a
	// second, concurrent call with timeout 0 is made. Each further call waits twice as
	// long as the one before. 0: [DefaultStopSlack]; negative is an error.
	StopSlack time.Duration
	// GiveUp is how long after the deadline of a container, or after its first StopContainer
	// call if that comes later, the terminator goes on trying to stop it. If no StopContainer call has succeeded by then, the container is
	// [RuntimeStuck]. 0: [DefaultGiveUp]; negative is an error.
	GiveUp time.Duration
	// Events records the kubelet's events; nil: none are recorded.
	Events EventRecorder
	// Metrics counts; nil: nothing is counted.
	Metrics *metrics.Lifecycle
	// Gates is read once, by [NewTerminator]; nil: the default of each feature.
	Gates FeatureGate
}

// validate returns everything that is wrong with the options, joined.
func (o TerminatorOptions) validate() error {
	var errs []error
	if f, isFunc := o.Runtime.(RuntimeFunc); o.Pods == nil && o.Runtime == nil || isFunc && f == nil {
		errs = append(errs, errors.New("Runtime: must be set"))
	}
	if o.HookTiming != HooksAtTermination && o.HookTiming != HooksAtTurn {
		errs = append(errs, fmt.Errorf("HookTiming: unknown value %q", o.HookTiming))
	}
	for name, span := range map[string]time.Duration{"StopSlack": o.StopSlack, "GiveUp": o.GiveUp, "ExitSlack": o.ExitSlack} {
		if span < 0 {
			errs = append(errs, fmt.Errorf("%s: must not be negative, is %v", name, span))
		}
	}
	return errors.Join(errs...)
}
