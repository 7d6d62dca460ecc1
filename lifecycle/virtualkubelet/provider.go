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

// defaultExitSlack is how long the exit of a stopped container is awaited when
// [Options.ExitSlack] is 0.
const defaultExitSlack = 2 * time.Second

// Options says what a [Provider] works with. Only Runtime must be set.
type Options struct {
	// Runtime runs the containers; nil is an error. Where it is a
	// [lifecycle.CommandRunner], too, exec hooks run through it.
	Runtime Runtime
	// Terminator is passed on: events, metrics, hook timing, slack and gates are set
	// here. Its Runtime and Exits are those of the Runtime above and must be nil; its
	// Commands, where nil, are the Runtime's, too.
	Terminator lifecycle.TerminatorOptions
	// Status fills in what only the author knows of a status: podIP, hostIP, image
	// IDs, readiness. It is called with a copy of the pod for each status that is
	// made, from any goroutine. Nil: nothing is filled in, and httpGet hooks that name
	// no host fail for lack of a podIP.
	Status func(pod *v1.Pod)
	// ExitSlack is how long after a stop has succeeded the runtime may take to tell
	// of the exit; after that the container's end is unknown. 0: 2 s; negative is an
	// error.
	ExitSlack time.Duration
}

// Provider is a provider of virtual-kubelet's, and a [shutdown.PodKiller]. Make one
// with [New], and end it with [Provider.Close]. All methods may be called concurrently;
// the zero value is not usable.
type Provider struct {
	agent  *agent
	killer shutdown.PodKiller // for KillPod
}

// New makes a provider without pods. It starts nothing. All that is wrong with the
// options is in the error.
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
	return &Provider{agent: shared, killer: shared.killer()}, nil
}

// validate tells all that is wrong; what is the terminator's, that tells itself.
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

// terminator completes the options of the terminator.
func (o Options) terminator() lifecycle.TerminatorOptions {
	opts := o.Terminator
	opts.Runtime, opts.Exits = o.Runtime, o.Runtime
	if opts.Commands == nil {
		opts.Commands, _ = o.Runtime.(lifecycle.CommandRunner) // nil: exec hooks fail, and say so
	}
	return opts
}
