package virtualkubelet

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/lifecycle"
	"github.com/kubegrace/kubegrace/shutdown"
)

const (
	// defaultMaxStarts is the default of [Options.MaxStarts].
	defaultMaxStarts = 10
	// defaultPollInterval is the default of [Options.PollInterval].
	defaultPollInterval = 5 * time.Second
	// podGiveUpAfter is how long the end of a whole pod is insisted on: practically for ever.
	podGiveUpAfter = 10 * 365 * 24 * time.Hour
)

// Options configure a [Provider]. Only Runtime or Pods is required.
type Options struct {
	// Runtime runs the containers; nil is an error unless Pods is set. If it is also a
	// [lifecycle.CommandRunner], it runs exec hooks.
	Runtime Runtime
	// Pods runs whole pods, in place of Runtime: it is an error to set both. It is not a list of
	// pods: that is [Provider.Pods], for the Pods of shutdown.Options.
	Pods PodRuntime
	// PollInterval is the time between two calls of PodRuntime.Statuses, or of Runtime.Running for
	// each pod of which something runs, and after a Stop or Delete that failed. 0 means 5 s; a negative
	// value is an error.
	PollInterval time.Duration
	// Terminator has the options for stopping containers: events, metrics, hook timing,
	// slack and feature gates. Its Runtime, Pods and Exits must be nil, because the Runtime
	// above is used, or Pods. Its Commands, if nil, are those of the Runtime or Pods above.
	//
	// Its StopTimeoutSlack, if 0, is [lifecycle.DefaultStopTimeoutSlack], with Pods and a PollInterval
	// more, and with a Runtime that is no [lifecycle.ExitWatcher] two intervals more, because one
	// answer may need two of its lists. With Pods its GiveUpAfter, if 0, is ten years: a
	// provider never gives up whole pods by itself.
	Terminator lifecycle.TerminatorOptions
	// Status sets the fields of a status that only the author of the provider knows:
	// podIP, hostIP, image IDs, readiness. It is called with a copy of the pod for every
	// status that is made, from any goroutine. Annotations that it puts on the pod are told too,
	// and stay. [Provider.StatusChanged] has it called and told again. If it is nil, nothing is
	// set, and httpGet hooks without a host fail because there is no podIP.
	Status func(pod *v1.Pod)
	// MaxStarts is how many StartContainer or Create may be under way at once, for all pods. 0 means 10; a
	// negative value is an error.
	MaxStarts int
	// ContainerEnded is called for each container of the Runtime that has ended, before it is
	// started again and before its end is told to anybody, to remove what is left of it. again
	// says that it is to be started again; if the end of its pod comes first, there is one more
	// call without. After an error or a panic it is called again, after 10 s, and twice as
	// long each time up to 5 min. It may block, as long as ctx lasts, which ends with
	// [Provider.Close]; the end of the pod waits for it. For a container that had ended when it was
	// adopted it is called with the ID in its status, even if a previous agent has called it.
	// If it is nil, nothing is called.
	ContainerEnded func(ctx context.Context, pod *v1.Pod, container *v1.Container, id string, again bool) error
	// Admit is asked once for every pod that is to be started, after the pod is in the list of
	// [Provider.Pods] and before anything of it starts: it is Manager.Admit. A pod that is
	// refused never starts; its final status is Failed, with the reason of the answer and, as the
	// kubelet writes it, "Pod was rejected: " and its message. If it is nil, every pod is admitted.
	Admit func(pod *v1.Pod) shutdown.Admission

	newTerminator func(lifecycle.TerminatorOptions) (terminator, error) // nil: lifecycle.NewTerminator
}

// validate joins an error for every invalid field, except those of the terminator's
// options, which the terminator validates itself.
func (o Options) validate() error {
	var errs []error
	if (o.Runtime == nil) == (o.Pods == nil) {
		errs = append(errs, errors.New("Runtime: must be set, or Pods, and not both"))
	}
	if o.Terminator.Runtime != nil || o.Terminator.Pods != nil {
		errs = append(errs, errors.New("Terminator.Runtime and Terminator.Pods: must not be set, Runtime or Pods is"))
	}
	if o.Terminator.Exits != nil {
		errs = append(errs, errors.New("Terminator.Exits: must not be set, Runtime is"))
	}
	if o.MaxStarts < 0 {
		errs = append(errs, fmt.Errorf("MaxStarts: must not be negative, is %d", o.MaxStarts))
	}
	if o.PollInterval < 0 {
		errs = append(errs, fmt.Errorf("PollInterval: must not be negative, is %v", o.PollInterval))
	}
	return errors.Join(errs...)
}

// terminatorOptions returns the terminator's options with the runtime.
func (a *agent) terminatorOptions() lifecycle.TerminatorOptions {
	opts, runtime, slack := a.opts.Terminator, any(a.opts.Runtime), lifecycle.DefaultStopTimeoutSlack
	if a.opts.Pods != nil {
		opts.Pods, runtime, slack = podStopper{a}, a.opts.Pods, slack+a.opts.PollInterval
		opts.GiveUpAfter = cmp.Or(opts.GiveUpAfter, podGiveUpAfter)
	} else {
		var isWatcher bool
		opts.Runtime = containerRuntime{a}
		if opts.Exits, isWatcher = a.opts.Runtime.(lifecycle.ExitWatcher); !isWatcher {
			slack += 2 * a.opts.PollInterval
		}
	}
	opts.StopTimeoutSlack = cmp.Or(opts.StopTimeoutSlack, slack)
	if opts.Commands == nil {
		opts.Commands, _ = runtime.(lifecycle.CommandRunner) // nil: exec hooks fail with an error
	}
	return opts
}
