package shutdown

import (
	"context"
	"errors"
	"fmt"
	"os"
	"reflect"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kubegrace/kubegrace/internal/features"
	"github.com/kubegrace/kubegrace/metrics"
	"github.com/kubegrace/kubegrace/shutdown/plan"
)

// Options says what a [Manager] drains, how, and for which host. Config, Pods
// and Killer are required.
type Options struct {
	// Config is the kubelet's configuration of the node shutdown. The zero value
	// switches the watching off: only Trigger and TerminateAll drain then, in one
	// bucket that lasts as long as the longest grace period of a pod.
	Config plan.Config
	// Pods gives the pods that run now, each once; terminated ones are left out. It
	// is asked when a shutdown begins and again before each bucket, and must be safe
	// to be called from any goroutine. The pods are never written to, and the list is
	// not kept.
	Pods func() []*v1.Pod
	// Killer kills one pod; it is called for many at once.
	Killer PodKiller

	// Source is the host that announces its shutdown. Nil: Trigger is the only way.
	Source Source
	// Volumes is waited for after the pods of a bucket have ended. Nil: no wait,
	// and no time for it.
	Volumes VolumeWaiter
	// Reporter publishes the node's state. One that is a [StatusFlusher] also flushes the
	// pods' final statuses, and one that is a [ReadinessMarker] takes pods out of their
	// services first. Nil: nothing is published, and no time is kept for it.
	Reporter Reporter
	// Events takes the kubelet's events about the node. Nil: none is recorded.
	Events EventRecorder
	// Node is the object that Events speaks of; required with Events.
	Node runtime.Object
	// Metrics shows the shutdown; nil shows nothing.
	Metrics *metrics.Shutdown
	// Gates switches features; nil and gates that lack ours mean the defaults.
	Gates FeatureGate

	// Policy says what becomes of the pods' status for a kind of shutdown
	// ([KindUnknown] is that of TerminateAll too). Nil: [PolicySetTerminal] for all, as
	// the kubelet does, which also stands for a policy that is not known: the report
	// says so.
	Policy func(Kind) PodPolicy
	// Plan shapes the plan: time for what is done beside the kills, roll-over,
	// priorities, and what the platform leaves at most. Its Hooks are set from these
	// options: Hold, a Reporter, a [ReadinessMarker], Volumes, a [StatusFlusher].
	Plan plan.Options

	// LateStart tells whether the drain of an event begins as late as the schedule
	// allows before the host's limit is over, not at once: a cloud's notice two minutes
	// ahead need not cost the pods two minutes of work. Admission is refused and the
	// node's state published at once all the same. Nil: always at once.
	LateStart func(Event) bool
	// Hold is called before the first pod is killed, and the kills wait for it, for
	// Plan.HoldTimeout at most: an external actor may move its work away. An error is
	// reported and the drain goes on. A host that waits for less than it is asked to
	// shortens the hold first. Nil: no hold.
	Hold func(context.Context) error
	// OnPlan is called when a drain begins, with what it is about to do, and OnReport when
	// it has ended or was cancelled and all of its pods have ended. Nobody waits for them.
	// Nil: nothing is called.
	OnPlan   func(context.Context, plan.Plan)
	OnReport func(context.Context, Report)
	// OnRelease is called when the lock is about to be released, within the host's
	// limit: the last moment to end a lease. Nil: nothing is called.
	OnRelease func(context.Context)

	// StateDir is the directory of the state files; it must exist. "": nothing is
	// stored and a restart forgets the shutdown. One that another agent uses is waited for,
	// ten seconds from the beginning of Run, in which the host is held; then this agent
	// goes on without, stores and resumes nothing, and says so. It refuses pods as long as
	// that one's shutdown may go on.
	StateDir string
}

// validate gives every reason why a manager cannot be made of o, joined.
func (o *Options) validate() error {
	var errs []error
	if o.Pods == nil {
		errs = append(errs, errors.New("Options.Pods is required"))
	}
	if o.Killer == nil {
		errs = append(errs, errors.New("Options.Killer is required"))
	}
	if o.Events != nil && o.Node == nil {
		errs = append(errs, errors.New("Options.Node is required with Options.Events"))
	}
	for _, option := range []struct {
		name  string
		value any
	}{
		{"Options.Killer", o.Killer},
		{"Options.Source", o.Source},
		{"Options.Volumes", o.Volumes},
		{"Options.Reporter", o.Reporter},
		{"Options.Events", o.Events},
		{"Options.Node", o.Node},
		{"Options.Gates", o.Gates},
	} {
		if isTypedNil(option.value) {
			errs = append(errs, fmt.Errorf("%s is a nil %T, leave it out or make one", option.name, option.value))
		}
	}
	if o.StateDir != "" {
		if info, err := os.Stat(o.StateDir); err != nil {
			errs = append(errs, fmt.Errorf("Options.StateDir is not usable: %w", err))
		} else if !info.IsDir() {
			errs = append(errs, fmt.Errorf("Options.StateDir %q is no directory", o.StateDir))
		}
	}
	return errors.Join(append(errs, o.validateConfig())...)
}

// isTypedNil tells whether an interface holds a nil pointer, function or map: it is not
// nil itself and would fail when it is used.
func isTypedNil(value any) bool {
	v := reflect.ValueOf(value)
	switch v.Kind() {
	case reflect.Pointer, reflect.Func, reflect.Map, reflect.Chan, reflect.Slice:
		return v.IsNil()
	default:
		return false
	}
}

func (o *Options) validateConfig() error {
	byPriority := features.Enabled(o.Gates, GracefulNodeShutdownBasedOnPodPriority)
	if features.Enabled(o.Gates, GracefulNodeShutdown) {
		return o.Config.Validate(byPriority)
	}
	return o.Config.ValidateWithoutGate(byPriority)
}

// withDefaults is o with every default filled in.
func (o Options) withDefaults() Options {
	_, marks := o.Reporter.(ReadinessMarker)
	_, flushes := o.Reporter.(StatusFlusher)
	o.Plan.Hooks = plan.Hooks{
		Hold:      o.Hold != nil,
		Publish:   o.Reporter != nil,
		Readiness: marks,
		Unmount:   o.Volumes != nil,
		Statuses:  flushes,
	}
	if o.Policy == nil {
		o.Policy = func(Kind) PodPolicy { return PolicySetTerminal }
	}
	if o.LateStart == nil {
		o.LateStart = func(Event) bool { return false }
	}
	return o
}
