package virtualkubelet

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/internal/nilcheck"
	"github.com/kubegrace/kubegrace/lifecycle"
	"github.com/kubegrace/kubegrace/shutdown"
)

const (
	// maxStarts bounds the concurrent calls of StartContainer or Create, for all pods.
	maxStarts = 10
	// defaultPollInterval and leastPollInterval are the default and the least value of [Options.PollInterval]. A shorter
	// interval is probably a mistake: a number without a unit, which Go takes for nanoseconds.
	defaultPollInterval = 5 * time.Second
	leastPollInterval   = time.Millisecond
	// podGiveUpAfter is the default of GiveUpAfter for whole pods. Ten years mean that the terminator never gives one up, but
	// stops it again and again.
	podGiveUpAfter = 10 * 365 * 24 * time.Hour
)

// Options configures a [Provider]. Only Runtime or Pods is required.
type Options struct {
	// Runtime runs containers. Either Runtime or Pods must be set, not both. If it is also a
	// [lifecycle.CommandRunner], it runs exec hooks.
	Runtime Runtime
	// Pods runs whole pods.
	Pods PodRuntime
	// PollInterval is the time between two calls of PodRuntime.Statuses, or of Runtime.Running for each
	// running pod, and the pause after a failed Stop or Delete. 0 means 5 s; a negative value, or
	// one of less than 1 ms, is an error.
	PollInterval time.Duration
	// Terminator holds the options for stopping containers. Its Runtime, Pods and Exits must be nil; the
	// fields above replace them. If its Commands is nil, Runtime or Pods runs exec hooks.
	//
	// A StopTimeoutSlack of 0 means [lifecycle.DefaultStopTimeoutSlack], plus one PollInterval with Pods,
	// or two with a Runtime that is no [lifecycle.ExitWatcher], because one answer may need two lists.
	// With Pods, a GiveUpAfter of 0 means ten years: a provider does not give up whole pods.
	Terminator lifecycle.TerminatorOptions
	// Status sets the status fields that this package does not know: podIP, hostIP, image IDs, readiness. It
	// is called with a copy of the pod for each status, from any goroutine. Annotations that it sets are
	// kept and sent too. When Status would set other values, call [Provider.StatusChanged]. Nil sets nothing;
	// httpGet hooks without a host then fail, because there is no podIP. Status must not call the provider,
	// which would call Status again, without end.
	Status func(pod *v1.Pod)
	// ContainerEnded cleans up after a container of the Runtime that has ended. Nil: nothing is called.
	//
	//   - It is called for each run, before the container is restarted and before its end is reported.
	//   - After an error or a panic it is called again after 10 s, twice as long each time, up to 5 min.
	//   - It may block until ctx ends, and the pod's end waits for it. [Provider.Close] ends ctx.
	//   - For a container that had ended before [Provider.Adopt] it is called with the ID in the status,
	//     even if a previous agent has called it.
	ContainerEnded func(ctx context.Context, pod *v1.Pod, container *v1.Container, id string) error
	// Admit decides whether a new pod may start, as Manager.Admit of package shutdown does. It is called once
	// for each new pod, after the pod is in [Provider.Pods] and before any of its containers starts. A
	// refused pod never starts; its final status is Failed, with the answer's reason and, as the kubelet
	// writes it, the message "Pod was rejected: " plus the answer's message. A pod that is deleted while Admit
	// is in progress ends when Admit has returned. Nil admits every pod.
	Admit func(pod *v1.Pod) shutdown.Admission

	newTerminator func(lifecycle.TerminatorOptions) (terminator, error) // nil: lifecycle.NewTerminator
}

// validate joins an error for each invalid field. The terminator validates its own options.
func (o Options) validate() error {
	errs := []error{nilcheck.Option("Runtime", o.Runtime), nilcheck.Option("Pods", o.Pods)}
	if (o.Runtime == nil) == (o.Pods == nil) {
		errs = append(errs, errors.New("Runtime or Pods: exactly one must be set"))
	}
	if o.Terminator.Runtime != nil || o.Terminator.Pods != nil {
		errs = append(errs, errors.New("Terminator.Runtime and Terminator.Pods: must not be set, use Runtime or Pods"))
	}
	if o.Terminator.Exits != nil {
		errs = append(errs, errors.New("Terminator.Exits: must not be set, use Runtime"))
	}
	switch {
	case o.PollInterval < 0:
		errs = append(errs, fmt.Errorf("PollInterval: must not be negative, is %v", o.PollInterval))
	case o.PollInterval > 0 && o.PollInterval < leastPollInterval:
		errs = append(errs, fmt.Errorf("PollInterval: must be at least %v, is %v", leastPollInterval, o.PollInterval))
	}
	return errors.Join(errs...)
}

// terminatorOptions returns Options.Terminator with this package's runtime and defaults. The default of
// StopTimeoutSlack is longer than that of package lifecycle, because polling notices an end late: by up to one
// PollInterval with a PodRuntime, and by up to two with a Runtime that is no ExitWatcher.
func (p *Provider) terminatorOptions() lifecycle.TerminatorOptions {
	opts := p.opts.Terminator
	defaultSlack := lifecycle.DefaultStopTimeoutSlack
	var runtime any
	if p.opts.Pods != nil {
		runtime = p.opts.Pods
		opts.Pods = podStopper{p}
		opts.GiveUpAfter = cmp.Or(opts.GiveUpAfter, podGiveUpAfter)
		defaultSlack += p.opts.PollInterval
	} else {
		runtime = p.opts.Runtime
		opts.Runtime = containerRuntime{p}
		var isWatcher bool
		opts.Exits, isWatcher = p.opts.Runtime.(lifecycle.ExitWatcher)
		if !isWatcher {
			defaultSlack += 2 * p.opts.PollInterval
		}
	}
	opts.StopTimeoutSlack = cmp.Or(opts.StopTimeoutSlack, defaultSlack)
	if opts.Commands == nil {
		opts.Commands, _ = runtime.(lifecycle.CommandRunner) // nil: exec hooks fail with an error
	}
	return opts
}
