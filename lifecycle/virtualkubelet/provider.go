package virtualkubelet

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/internal/nilcheck"
	"github.com/kubegrace/kubegrace/lifecycle"
)

// Provider is a provider for virtual-kubelet and a [shutdown.PodKiller]. Make one with [New] and end it
// with [Provider.Close]. All methods may be called concurrently. Methods return an error for the zero
// Provider, for a nil pod, and for one with neither a UID nor a name.
type Provider struct {
	agent *agent
}

// New returns a provider without pods. It starts no goroutine. The error joins an error for each invalid
// option.
func New(opts Options) (*Provider, error) {
	err := opts.validate()
	if err != nil { // go on with valid values, so that the error also has those of the terminator's options
		opts.PollInterval = max(opts.PollInterval, 0)
		if nilcheck.IsTypedNil(opts.Runtime) {
			opts.Runtime = nil
		}
		if nilcheck.IsTypedNil(opts.Pods) {
			opts.Pods = nil
		}
	}
	opts.PollInterval = cmp.Or(opts.PollInterval, defaultPollInterval)
	shared := &agent{opts: opts, registered: make(chan struct{}), pods: newPodTable()}
	shared.starts = make(chan struct{}, maxStarts)
	if opts.Pods != nil {
		shared.poller = newPoller(shared)
	}
	newTerminator := opts.newTerminator
	if newTerminator == nil {
		newTerminator = func(opts lifecycle.TerminatorOptions) (terminator, error) { return lifecycle.NewTerminator(opts) }
	}
	var terminatorErr error
	shared.terminator, terminatorErr = newTerminator(shared.terminatorOptions())
	if err := errors.Join(err, terminatorErr); err != nil {
		return nil, fmt.Errorf("failed to make a provider: %w", err)
	}
	shared.ctx, shared.close = context.WithCancelCause(context.Background()) //nolint:forbidigo // New has no context; Close ends it
	return &Provider{agent: shared}, nil
}

// Close ends the provider and leaves its pods running; a restarted agent takes them over with
// [Provider.Adopt]. It cancels all hooks and all calls that stop or start containers, and makes no new
// ones. To stop the pods too, call shutdown.Manager.TerminateAll first.
//
// Close waits until all goroutines have ended or ctx ends. The error then names the containers whose
// stop hangs, and the pods whose start or notification hangs. It may be called again.
func (p *Provider) Close(ctx context.Context) error {
	if err := p.check(); err != nil {
		return err
	}
	p.agent.close(lifecycle.ErrClosed)
	err := p.agent.terminator.Close(ctx)
	hanging := p.agent.calls.WaitLoudly(ctx, "Provider.Close", ctx.Done())
	if len(hanging) == 0 {
		return err
	}
	// hanging has calls, which watchCall names "CALL of POD", and goroutines that wait for them, which spawn names after
	// their pod. Only the calls are of interest.
	isGoroutine := func(name string) bool { return !strings.Contains(name, " of ") }
	if calls := slices.DeleteFunc(slices.Clone(hanging), isGoroutine); len(calls) > 0 {
		hanging = calls
	}
	return errors.Join(err, fmt.Errorf("calls that have not returned: %s: %w", strings.Join(hanging, ", "), context.Cause(ctx)))
}

var (
	errNotMade = errors.New("the provider was not made with New")
	errNoPod   = errors.New("the pod is nil")

	errNoIdentity  = errors.New("the pod has neither a UID nor a name")
	errNoContainer = errors.New("spec.containers: must not be empty")
)

// check returns an error for a provider that was not made with New, for a nil pod, and for a pod without any
// identity.
func (p *Provider) check(pods ...*v1.Pod) error {
	if p == nil || p.agent == nil {
		return errNotMade
	}
	if slices.Contains(pods, nil) {
		return errNoPod
	}
	if slices.ContainsFunc(pods, func(pod *v1.Pod) bool { return pod.UID == "" && pod.Name == "" }) {
		return errNoIdentity
	}
	return nil
}

// find returns the record of a pod. An unknown pod is an errdefs.ErrNotFound. A nil pod, or a provider that was not made
// with New, is another error.
func (p *Provider) find(pod *v1.Pod) (*record, error) {
	if err := p.check(pod); err != nil {
		return nil, err
	}
	if r := p.agent.pods.find(pod); r != nil {
		return r, nil
	}
	return nil, newNotFoundError(pod.Namespace, pod.Name)
}
