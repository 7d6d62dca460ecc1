package shutdown

import (
	"context"
	"errors"
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kubegrace/kubegrace/metrics"
)

const (
	// DefaultPublishTimeout bounds the wait for the node's state to be published
	// before the first pod is touched, when [Options.PublishTimeout] is 0.
	DefaultPublishTimeout = 2 * time.Second
	// DefaultReleaseMargin is how long before the host's own end the lock is
	// released, when [Options.ReleaseMargin] is 0.
	DefaultReleaseMargin = 500 * time.Millisecond
	// DefaultHoldTimeout bounds [Options.Hold] when [Options.HoldTimeout] is 0.
	DefaultHoldTimeout = 10 * time.Second
)

// Options says what a [Manager] drains, how, and for which host. Config, Pods
// and Killer are required.
type Options struct {
	// Config is the kubelet's configuration of the node shutdown. The zero value
	// switches the watching off: only Trigger and TerminateAll drain then, in one
	// bucket that lasts as long as the longest grace period of a pod.
	Config Config
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
	// and no reserve for it.
	Volumes VolumeWaiter
	// Reporter publishes the node's state and flushes the pods' final statuses; one
	// that is a [ReadinessMarker] also takes pods out of their services first. Nil:
	// nothing is published, and no reserve is kept.
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
	// Plan shapes the plan: reserves, roll-over, priorities. Its Limit is an upper
	// bound that counts beside that of the host.
	Plan PlanOptions
	// PublishTimeout bounds the wait for PublishNode; 0 means
	// [DefaultPublishTimeout]. A quarter of the first bucket with pods bounds it too.
	PublishTimeout time.Duration
	// ReleaseMargin is how long before the host's end the lock is released; 0 means
	// [DefaultReleaseMargin]. It is never more than a tenth of the host's limit.
	ReleaseMargin time.Duration

	// LateStart tells whether the drain for an event with a deadline begins as late
	// as the schedule allows, not at once: a cloud's notice two minutes ahead need
	// not cost the pods two minutes of work. Admission is refused and the node's
	// state published at once all the same. Nil: always at once.
	LateStart func(Event) bool
	// Hold is called before the first pod is killed, and the kills wait for it: an
	// external actor may move its work away. An error is reported and the drain
	// goes on. Nil: no hold.
	Hold func(context.Context) error
	// HoldTimeout bounds Hold; 0 means [DefaultHoldTimeout]. It is asked of the
	// host beside the schedule; a host that grants less shortens the hold first.
	HoldTimeout time.Duration
	// OnRelease is called when the lock is about to be released, within the host's
	// limit: the last moment to end a lease. Nil: nothing is called.
	OnRelease func(context.Context)

	// StateDir is the directory of the state files; it must exist. "": nothing is
	// stored and a restart forgets the shutdown.
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
	errs = append(errs,
		notNegative("Options.PublishTimeout", o.PublishTimeout),
		notNegative("Options.ReleaseMargin", o.ReleaseMargin),
		notNegative("Options.HoldTimeout", o.HoldTimeout),
		o.Config.Validate(o.Gates))
	return errors.Join(errs...)
}

// notNegative names the field of a span that is below zero.
func notNegative(field string, d time.Duration) error {
	if d < 0 {
		return fmt.Errorf("%s must not be negative: %v", field, d)
	}
	return nil
}

// withDefaults is o with every default filled in.
func (o Options) withDefaults() Options {
	if o.PublishTimeout == 0 {
		o.PublishTimeout = DefaultPublishTimeout
	}
	if o.ReleaseMargin == 0 {
		o.ReleaseMargin = DefaultReleaseMargin
	}
	if o.HoldTimeout == 0 {
		o.HoldTimeout = DefaultHoldTimeout
	}
	if o.Policy == nil {
		o.Policy = func(Kind) PodPolicy { return PolicySetTerminal }
	}
	if o.LateStart == nil {
		o.LateStart = func(Event) bool { return false }
	}
	return o
}
