package shutdown

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/component-base/featuregate"

	"github.com/kubegrace/kubegrace/internal/features"
	"github.com/kubegrace/kubegrace/internal/nilcheck"
	"github.com/kubegrace/kubegrace/metrics"
	"github.com/kubegrace/kubegrace/shutdown/plan"
	"github.com/kubegrace/kubegrace/shutdown/source"
)

// Options configures a [Manager]. ListPods and Killer are required.
type Options struct {
	// Config is the kubelet's shutdown configuration. With the zero value no host is watched: only
	// Trigger and TerminateAll drain. They wait up to 30 s for the first list of pods, then use one
	// bucket that lasts as long as the longest grace period of a pod, at least 30 s.
	Config plan.Config
	// ListPods returns the pods of this node that have not ended, each once. A pod without a UID is
	// identified by its namespace and name. Return an error while the list is incomplete: the last
	// complete list is used, and ListPods is called again. Leave out pods that have ended, otherwise
	// they are killed and reported like the others. ListPods is called from any goroutine when a
	// shutdown begins, before each bucket, and before the lock is released. If it has not returned after
	// a second, it is called again concurrently. The manager changes neither the pods nor the slice.
	// [ListPodsFunc] adapts an informer or a map.
	//
	// To start a pod, add it to this list, call [Manager.Admit], then start it; remove it from the
	// list if Admit refuses it. This order ensures that a shutdown either refuses the pod or finds it
	// in the list.
	ListPods func(context.Context) ([]*v1.Pod, error)
	// Killer kills pods. It is called for many pods concurrently.
	Killer PodKiller

	// Source announces the shutdowns of the host and provides its inhibitor lock. Use one manager for a host:
	// a second one would take its own lock and kill the pods too. Nil: only Trigger announces shutdowns.
	Source source.Source
	// Volumes waits for the volumes of a bucket's pods after the pods have ended. Nil: no wait, and
	// the plan reserves no time for it.
	Volumes VolumeWaiter
	// Reporter publishes the node state. If it is also a [StatusFlusher], it sends the final statuses
	// of pods. If it is also a [ReadinessMarker], it marks pods as not ready before they are killed.
	// Nil: nothing is published, and the plan reserves no time for it.
	Reporter Reporter
	// Events records the kubelet's events about the node. Nil: no events.
	Events EventRecorder
	// Node is the object of these events. It is required with Events.
	Node runtime.Object
	// Metrics are the shutdown metrics, from metrics.NewShutdown. Nil: no metrics.
	Metrics *metrics.Shutdown
	// Gates enables features. Nil, and gates that it does not know, mean the defaults of this package.
	Gates featuregate.FeatureGate

	// Policy returns what happens to the status of killed pods, by kind of shutdown; it gets
	// [source.KindUnknown] for TerminateAll too. Nil: [PolicySetTerminal] for every kind, as in the
	// kubelet. An unknown policy is reported as an error and treated as PolicySetTerminal. If the host
	// announces another kind than Trigger did, its kind decides for the pods that are killed from then on,
	// until the host cancels.
	Policy func(source.Kind) PodPolicy
	// Plan sets the times of the other steps, priorities, and a limit for the whole drain. The
	// manager overwrites Plan.Steps: they follow from Prepare, Hold, Reporter and Volumes. A timeout of more
	// than 24 h is an error.
	Plan plan.Options

	// Prepare is called when a drain begins, before the pods are listed, to stop whatever would start
	// pods again. The drain waits for at most Plan.PrepareTimeout and at most half of the host's
	// remaining time. Prepare is called once in a shutdown, and again if a restarted agent resumes the
	// shutdown. An error is reported and the drain continues. Nil: nothing is called.
	Prepare func(context.Context) error
	// Hold is called before the first kill, which it delays by at most Plan.HoldTimeout: another
	// program can move its work away in this time. If the host grants too little time, the hold is
	// shortened first. An error is reported and the drain continues. Nil: no hold.
	Hold func(context.Context) error
	// OnPlan gets the plan when a drain begins, also a drain of TerminateAll. The drain does not wait
	// for it. Nil: nothing is called.
	OnPlan func(context.Context, plan.Plan)
	// OnReport gets the report of a shutdown, or of TerminateAll, once the drain is over or cancelled
	// and all signalled pods have ended. Pods that still run delay it until 10 s after the drain and
	// their grace periods, but not beyond the end of Run. If another announcer announces the shutdown
	// after the lock was released, the node is drained again, and OnReport gets a report of the whole
	// shutdown again. If the end of Run interrupts the drain, the report's Ended is zero. After a
	// cancellation ShutdownStatus is already nil, unless another shutdown has begun. The host does
	// not wait for OnReport. TerminateAll waits up to 10 s for it, and Run as long as for other calls.
	// Its context ends when both Run and TerminateAll have ended. Nil: nothing is called.
	OnReport func(context.Context, Report)
	// OnRelease is called right before the lock is released, within the host's time, for example to
	// end a lease. Nil: nothing is called.
	OnRelease func(context.Context)

	// Clock measures the shutdown, but not the timeouts of calls to your code, which always use the
	// system clock. It is for a kubelet fork, whose configuration has a clock. Nil: the system clock.
	Clock Clock

	// StateDir is the absolute path of an existing directory for the state log
	// (graceful_node_shutdown_log), the kubelet's graceful_node_shutdown_state and a lock file. The state
	// log is JSON lines: the newest line about a shutdown or pod counts, and a torn last line is ignored.
	// The next agent resumes from it, and [StoredReport] reads it. "": nothing is stored, and a
	// restarted agent does not resume the shutdown. If another agent uses the directory, Run waits up
	// to 10 s for it. During this time it holds the inhibitor lock and refuses pods. It does the same for
	// up to 5 s if reading the log takes long. After that it reports an error, and stores and resumes
	// nothing.
	StateDir string
	// RequireStateDir makes Run return an error if it cannot lock StateDir, or cannot read it in time. A
	// damaged log is no such error.
	RequireStateDir bool
}

// ListPodsFunc returns an [Options.ListPods] that calls list, and returns an error while hasSynced, such as
// an informer's HasSynced, returns false. With a nil hasSynced the list is always complete. With a nil
// list the result is nil.
func ListPodsFunc(list func() []*v1.Pod, hasSynced func() bool) func(context.Context) ([]*v1.Pod, error) {
	if list == nil {
		return nil
	}
	return func(context.Context) ([]*v1.Pod, error) {
		if hasSynced != nil && !hasSynced() {
			return nil, errNotSynced
		}
		return list(), nil
	}
}

// errNotSynced is the error of a list that is not complete yet.
var errNotSynced = errors.New("the list of pods has not synced yet")

// VolumeWaiter waits until the volumes of pods are unmounted. The kubelet's volume manager implements it.
type VolumeWaiter interface {
	WaitForAllPodsUnmount(ctx context.Context, pods []*v1.Pod) error
}

// Clock replaces the system clock. The clocks of k8s.io/utils/clock implement it.
type Clock interface {
	Now() time.Time
	// After returns a channel that receives the time after d.
	After(d time.Duration) <-chan time.Time
}

// systemClock is the [Clock] of package time.
type systemClock struct{}

// Now implements [Clock].
func (systemClock) Now() time.Time { return time.Now() }

// After implements [Clock].
func (systemClock) After(d time.Duration) <-chan time.Time { return time.After(d) }

// EventRecorder records an event on an object. The recorder of client-go implements it.
type EventRecorder interface {
	Event(object runtime.Object, eventtype, reason, message string)
}

// maxTimeout is the longest timeout of a step in Options.Plan.
const maxTimeout = 24 * time.Hour

// validate returns all problems of o, joined.
func (o *Options) validate() error {
	var errs []error
	if o.ListPods == nil {
		errs = append(errs, errors.New("Options.ListPods is required"))
	}
	if o.Killer == nil {
		errs = append(errs, errors.New("Options.Killer is required"))
	}
	if o.Events != nil && o.Node == nil {
		errs = append(errs, errors.New("Options.Node is required with Options.Events"))
	}
	errs = append(errs, o.validateNilPointers(), o.validateStateDir(), o.validateTimeouts())
	if !nilcheck.IsTypedNil(o.Gates) { // otherwise asking for a gate would panic
		errs = append(errs, o.validateConfig())
	}
	return errors.Join(errs...)
}

// validateNilPointers returns an error for each interface that has a nil pointer: it would fail only when it is used.
func (o *Options) validateNilPointers() error {
	return errors.Join(
		nilcheck.Option("Options.Killer", o.Killer),
		nilcheck.Option("Options.Source", o.Source),
		nilcheck.Option("Options.Volumes", o.Volumes),
		nilcheck.Option("Options.Reporter", o.Reporter),
		nilcheck.Option("Options.Events", o.Events),
		nilcheck.Option("Options.Node", o.Node),
		nilcheck.Option("Options.Gates", o.Gates),
		nilcheck.Option("Options.Clock", o.Clock),
	)
}

// validateTimeouts returns an error for each timeout of Plan that is longer than maxTimeout.
func (o *Options) validateTimeouts() error {
	var errs []error
	for _, timeout := range []struct {
		name  string
		value time.Duration
	}{
		{"PrepareTimeout", o.Plan.PrepareTimeout},
		{"HoldTimeout", o.Plan.HoldTimeout},
		{"PublishTimeout", o.Plan.PublishTimeout},
		{"UnmountTimeout", o.Plan.UnmountTimeout},
		{"StatusesTimeout", o.Plan.StatusesTimeout},
	} {
		if timeout.value > maxTimeout {
			errs = append(errs, fmt.Errorf("Options.Plan.%s is %v, it must be at most %v: the host is asked for this time", timeout.name, timeout.value, maxTimeout))
		}
	}
	return errors.Join(errs...)
}

// validateStateDir returns what is wrong with StateDir and RequireStateDir, or nil.
func (o *Options) validateStateDir() error {
	if o.StateDir == "" {
		if o.RequireStateDir {
			return errors.New("Options.StateDir is required with Options.RequireStateDir")
		}
		return nil
	}
	if !filepath.IsAbs(o.StateDir) {
		return fmt.Errorf("Options.StateDir %q is a relative path, but the next agent may have another working directory", o.StateDir)
	}
	info, err := os.Stat(o.StateDir)
	if err != nil {
		return fmt.Errorf("Options.StateDir is not usable: %w", err)
	}
	if !info.IsDir() {
		return fmt.Errorf("Options.StateDir %q is not a directory", o.StateDir)
	}
	return nil
}

// validateConfig validates Config. A field that is set although its feature gate is off is an error.
func (o *Options) validateConfig() error {
	isGateOn := features.Enabled(o.Gates, GracefulNodeShutdown)
	byPriority := features.Enabled(o.Gates, GracefulNodeShutdownBasedOnPodPriority)
	return o.Config.Validate(isGateOn, byPriority)
}

// withDefaults returns o with its defaults. Plan.Steps says which steps a drain has: those for which o has
// something to call.
func (o Options) withDefaults() Options {
	if o.Clock == nil {
		o.Clock = systemClock{}
	}
	_, marks := o.Reporter.(ReadinessMarker)
	_, flushes := o.Reporter.(StatusFlusher)
	o.Plan.Steps = plan.Steps{
		Prepare:   o.Prepare != nil,
		Hold:      o.Hold != nil,
		Publish:   o.Reporter != nil,
		Readiness: marks,
		Unmount:   o.Volumes != nil,
		Statuses:  flushes,
	}
	return o
}
