package virtualkubelet

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/lifecycle"
	"github.com/kubegrace/kubegrace/shutdown"
)

// defaultExitSlack is the default of [Options.ExitSlack].
const defaultExitSlack = 2 * time.Second

// Options configure a [Provider]. Only Runtime is required.
type Options struct {
	// Runtime runs the containers; nil is an error. If it is also a
	// [lifecycle.CommandRunner], it runs exec hooks.
	Runtime Runtime
	// Terminator has the options for stopping containers: events, metrics, hook timing,
	// slack and feature gates. Its Runtime and Exits must be nil, because the Runtime
	// above is used. Its Commands, if nil, are those of the Runtime above.
	Terminator lifecycle.TerminatorOptions
	// Status sets the fields of a status that only the author of the provider knows:
	// podIP, hostIP, image IDs, readiness. It is called with a copy of the pod for every
	// status that is made, from any goroutine. If it is nil, nothing is set, and httpGet
	// hooks without a host fail because there is no podIP.
	Status func(pod *v1.Pod)
	// ExitSlack is how long after a successful stop the runtime may take to report the
	// exit. After that the container gets an unknown exit code. 0 means 2 s; a negative
	// value is an error.
	ExitSlack time.Duration
	// Admit is asked once for every pod that is to be started, after the pod is in the list of
	// [Provider.Pods] and before anything of it starts: it is Manager.Admit. A pod that is
	// refused never starts; its final status is Failed, with the reason and the message of the
	// answer. If it is nil, every pod is admitted.
	Admit func(pod *v1.Pod) shutdown.Admission
}

// Provider is a provider for virtual-kubelet and a [shutdown.PodKiller]. Make one with
// [New] and end it with [Provider.Close]. All methods may be called concurrently. The
// zero value is not usable.
type Provider struct {
	agent *agent
}

// New returns a provider without pods and starts no goroutine. The error joins all faults
// of the options.
func New(opts Options) (*Provider, error) {
	if err := opts.validate(); err != nil {
		return nil, fmt.Errorf("failed to make a provider: %w", err)
	}
	opts.ExitSlack = cmp.Or(opts.ExitSlack, defaultExitSlack)
	terminator, err := lifecycle.NewTerminator(opts.terminator())
	if err != nil {
		return nil, fmt.Errorf("failed to make a provider: %w", err)
	}
	shared := &agent{
		opts: opts, terminator: terminator,
		workers: newWorkers(), listener: newListener(), pods: newPodTable(),
	}
	return &Provider{agent: shared}, nil
}

// validate joins an error for every invalid field, except those of the terminator's
// options, which the terminator validates itself.
func (o Options) validate() error {
	var errs []error
	if o.Runtime == nil {
		errs = append(errs, errors.New("Runtime: must be set"))
	}
	if o.Terminator.Runtime != nil {
		errs = append(errs, errors.New("Terminator.Runtime: must not be set, Runtime is"))
	}
	if o.Terminator.Exits != nil {
		errs = append(errs, errors.New("Terminator.Exits: must not be set, Runtime is"))
	}
	if o.ExitSlack < 0 {
		errs = append(errs, fmt.Errorf("ExitSlack: must not be negative, is %v", o.ExitSlack))
	}
	return errors.Join(errs...)
}

// terminator returns the terminator's options with the runtime.
func (o Options) terminator() lifecycle.TerminatorOptions {
	opts := o.Terminator
	opts.Runtime, opts.Exits, opts.ExitSlack = o.Runtime, o.Runtime, cmp.Or(opts.ExitSlack, o.ExitSlack, defaultExitSlack)
	if opts.Commands == nil {
		opts.Commands, _ = o.Runtime.(lifecycle.CommandRunner) // nil: exec hooks fail with an error
	}
	return opts
}
