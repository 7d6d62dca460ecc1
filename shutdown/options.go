package shutdown

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"time"

	"k8s.io/component-base/featuregate"

	"github.com/kubegrace/kubegrace/shutdown/source"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kubegrace/kubegrace/internal/features"
	"github.com/kubegrace/kubegrace/metrics"
	"github.com/kubegrace/kubegrace/shutdown/plan"
)

// Options says what a [Manager] drains, how, and on which host. ListPods and Killer are required.
type Options struct {
	// Config is the kubelet's configuration of the node shutdown. With the zero value no host is
	// watched: only Trigger and TerminateAll drain, in one bucket that lasts as long as the
	// longest grace period of a pod, from the first list of pods on, for which they wait 30 s.
	Config plan.Config
	// ListPods returns the pods of this node that have not ended, each once. One without a UID is known
	// by its namespace and name. An error says that the list is not complete yet: the last complete
	// one counts, and ListPods is called again. Leave out pods that have ended: one that is listed is
	// killed like the others, and the report has it. ListPods is called when a shutdown begins, again
	// before each bucket, and before the lock is released, from any goroutine; beside a call that has
	// not returned for a second it is called again. The manager does not change the pods and does not
	// keep the slice. [ListPodsFunc] makes one of an informer or a map.
	//
	// To start a pod, first put it into this list, then call [Manager.Admit], then start it; if
	// it is refused, take it out again. So a shutdown either refuses the pod or finds it in the
	// list. A pod that is listed only after Admit may be missed by a shutdown that has begun
	// between the two.
	ListPods func(context.Context) ([]*v1.Pod, error)
	// Killer kills one pod. It is called for many pods at once.
	Killer PodKiller

	// source.Source is the host that announces its shutdown, and that the inhibitor lock delays. Nil:
	// shutdowns begin with Trigger only.
	Source source.Source
	// Volumes waits for the volumes of a bucket's pods after their end. Nil: there is no wait,
	// and the plan reserves no time for it.
	Volumes VolumeWaiter
	// Reporter publishes the node state. If it is a [StatusFlusher] it also sends the final
	// statuses of pods, and if it is a [ReadinessMarker] it takes pods out of their services
	// before they are killed. Nil: nothing is published, and the plan reserves no time for it.
	Reporter Reporter
	// Events records the kubelet's events about the node. Nil: none is recorded.
	Events EventRecorder
	// Node is the object of the events. It is required with Events.
	Node runtime.Object
	// Metrics has the series of the shutdown; metrics.NewShutdown makes it. Nil: nothing is
	// counted.
	Metrics *metrics.Shutdown
	// Gates switches features. Nil, and gates that lack those of this package, mean the defaults.
	Gates featuregate.FeatureGate

	// Policy returns what becomes of the status of killed pods in a kind of shutdown.
	// [source.KindUnknown] also stands for TerminateAll. Nil: [PolicySetTerminal] for every kind, as the
	// kubelet does. An unknown policy counts as PolicySetTerminal too and is reported as an
	// error.
	Policy func(source.Kind) PodPolicy
	// Plan sets the times beside the kills, priorities, and a limit to the time of a
	// drain. Its Steps are overwritten: they follow from Prepare, Hold,
	// Reporter and Volumes.
	Plan plan.Options

	// Prepare is called when a drain begins, before the pods are listed: what would start pods again
	// is stopped here. The drain waits for it for at most Plan.PrepareTimeout, and half of
	// what the host leaves. It is called once in a shutdown, and again if an event that leaves less time has cut
	// it short, or by an agent that resumes the shutdown after a restart. An error is reported and
	// the drain goes on. Nil: nothing is called.
	Prepare func(context.Context) error
	// Hold is called before the first kill, which waits for it for at most Plan.HoldTimeout:
	// another program can move its work away meanwhile. An error is reported and the drain goes
	// on. If the host waits for less than asked, the hold is shortened first. Nil: no hold.
	Hold func(context.Context) error
	// OnPlan is called with the plan when a drain begins: of a shutdown, or of TerminateAll. The
	// drain does not wait for it. Nil: nothing is called.
	OnPlan func(context.Context, plan.Plan)
	// OnReport is called with the report of a shutdown, or of TerminateAll, when it is drained or was
	// cancelled and the pods that it has killed have ended. A shutdown that is announced again after
	// the host was released, and drains again, is reported again as a whole. The host does not wait
	// for OnReport, but TerminateAll waits for it for ten seconds, and Run for as long as for other
	// calls. Its context ends when both Run and TerminateAll end; if it has not returned ten seconds
	// after that, the error of the one that ends last names it. Nil: nothing is called.
	OnReport func(context.Context, Report)
	// OnRelease is called right before the lock is released, within the host's limit: the last
	// moment to end a lease, for example. Nil: nothing is called.
	OnRelease func(context.Context)

	// Clock is the time that shutdowns are counted by. It does not limit calls of the embedder's code,
	// for which the machine's clock counts. It is for a kubelet fork, whose configuration has a clock.
	// Nil: the machine's clock.
	Clock Clock

	// StateDir is the absolute path of the directory of the state files, which must exist. "": nothing is stored, and a
	// restarted agent does not know of the shutdown. If another agent uses the directory, Run
	// waits for it for ten seconds. Meanwhile it holds the inhibitor lock and refuses pods. After that it
	// stores and resumes nothing, and reports this as an error.
	StateDir string
	// RequireStateDir has Run end with an error if another agent uses StateDir for ten seconds.
	RequireStateDir bool
}

// ListPodsFunc makes an [Options.ListPods] of a list that is complete when hasSynced returns true, as an
// informer's HasSynced does. A nil hasSynced says that the list is always complete. A nil list gives nil.
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

var errNotSynced = errors.New("the list of pods has not synced")

// VolumeWaiter waits until the volumes of pods are unmounted. The kubelet's volume manager is
// one.
type VolumeWaiter interface {
	WaitForAllPodsUnmount(ctx context.Context, pods []*v1.Pod) error
}

// Clock tells the time and waits. Those of k8s.io/utils/clock are clocks.
type Clock interface {
	Now() time.Time
	// After returns a channel that gets the time after d.
	After(d time.Duration) <-chan time.Time
}

// machineClock is the [Clock] of package time.
type machineClock struct{}

// Now implements [Clock].
func (machineClock) Now() time.Time { return time.Now() }

// After implements [Clock].
func (machineClock) After(d time.Duration) <-chan time.Time { return time.After(d) }

// EventRecorder records an event on an object. The recorder of client-go is one.
type EventRecorder interface {
	Event(object runtime.Object, eventtype, reason, message string)
}

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
		{"Options.Clock", o.Clock},
	} {
		if isTypedNil(option.value) {
			errs = append(errs, fmt.Errorf("%s is a nil %T, leave it out or make one", option.name, option.value))
		}
	}
	switch {
	case o.StateDir == "" && o.RequireStateDir:
		errs = append(errs, errors.New("Options.StateDir is required with Options.RequireStateDir"))
	case o.StateDir == "":
	case !filepath.IsAbs(o.StateDir):
		errs = append(errs, fmt.Errorf("Options.StateDir %q is a relative path: the next agent may be started elsewhere", o.StateDir))
	default:
		if info, err := os.Stat(o.StateDir); err != nil {
			errs = append(errs, fmt.Errorf("Options.StateDir is not usable: %w", err))
		} else if !info.IsDir() {
			errs = append(errs, fmt.Errorf("Options.StateDir %q is no directory", o.StateDir))
		}
	}
	if !isTypedNil(o.Gates) {
		errs = append(errs, o.validateConfig())
	}
	return errors.Join(errs...)
}

// isTypedNil reports whether an interface holds a nil pointer, function, map, channel or slice.
// Such a value is not equal to nil, but fails when it is used.
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
	validate := o.Config.Validate
	if !features.Enabled(o.Gates, GracefulNodeShutdown) {
		validate = o.Config.ValidateWithoutGate
	}
	return errors.Join(validate(byPriority), o.Config.ValidateList())
}

// withDefaults returns o with the defaults filled in.
func (o Options) withDefaults() Options {
	if o.Clock == nil {
		o.Clock = machineClock{}
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
