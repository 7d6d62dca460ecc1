package virtualkubelet

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubegrace/kubegrace/internal/call"
	"github.com/kubegrace/kubegrace/lifecycle"
)

// Provider is a provider for virtual-kubelet and a [shutdown.PodKiller]. Make one with [New] and end it
// with [Provider.Close]. All methods may be called concurrently. Methods return an error for the zero
// Provider, for a nil pod, and for one with neither a UID nor a name.
type Provider struct {
	opts       Options
	terminator terminator      // nil: the Provider was not made with New
	ctx        context.Context // ends with Close
	close      context.CancelCauseFunc
	calls      call.Group                    // goroutines and calls of the embedder's code, which Close waits for
	notify     atomic.Pointer[func(*v1.Pod)] // virtual-kubelet's callback; nil: not registered yet
	registered chan struct{}                 // closed once notify is set
	pods       *podTable
	poller     *poller
	starts     chan struct{} // has an element for each start in progress; its capacity is maxStarts
}

// New returns a provider without pods. It starts no goroutine. The error joins an error for each invalid
// option; those of Options.Terminator are checked when the others are valid.
func New(opts Options) (*Provider, error) {
	if err := opts.validate(); err != nil {
		return nil, fmt.Errorf("failed to make a provider: %w", err)
	}
	opts.PollInterval = cmp.Or(opts.PollInterval, defaultPollInterval)
	p := &Provider{opts: opts, registered: make(chan struct{}), pods: newPodTable(), starts: make(chan struct{}, maxStarts)}
	p.poller = newPoller(p)
	newTerminator := opts.newTerminator
	if newTerminator == nil {
		newTerminator = func(opts lifecycle.TerminatorOptions) (terminator, error) { return lifecycle.NewTerminator(opts) }
	}
	var err error
	if p.terminator, err = newTerminator(p.terminatorOptions()); err != nil {
		return nil, fmt.Errorf("failed to make a provider: %w", err)
	}
	p.ctx, p.close = context.WithCancelCause(context.Background()) //nolint:forbidigo // New has no context; Close ends it
	return p, nil
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
	p.calls.Close()
	p.close(lifecycle.ErrClosed)
	err := p.terminator.Close(ctx)
	hanging := p.calls.WaitAndLog(ctx, "Provider.Close", ctx.Done())
	if len(hanging) == 0 {
		return err
	}
	hanging = callsAmong(hanging)
	return errors.Join(err, fmt.Errorf("calls that have not returned: %s: %w", strings.Join(hanging, ", "), context.Cause(ctx)))
}

// callsAmong selects from names, which say what still runs, the calls of the embedder's code: "CALL of POD". The other names, such
// as that of a pod, are those of goroutines that wait for such a call. If there is no call, callsAmong returns all names.
func callsAmong(names []string) []string {
	isGoroutine := func(name string) bool { return !strings.Contains(name, " of ") }
	if calls := slices.DeleteFunc(slices.Clone(names), isGoroutine); len(calls) > 0 {
		return calls
	}
	return names
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
	if p == nil || p.terminator == nil {
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

// find returns a known pod. An unknown pod is an errdefs.ErrNotFound. A nil pod, or a provider that was not made
// with New, is another error.
func (p *Provider) find(pod *v1.Pod) (*managedPod, error) {
	if err := p.check(pod); err != nil {
		return nil, err
	}
	if m := p.pods.find(pod); m != nil {
		return m, nil
	}
	return nil, newNotFoundError(pod.Namespace, pod.Name)
}

// terminator is the part of [lifecycle.Terminator] that this package uses. It is an interface so that tests can
// record the calls.
type terminator interface {
	Start(ctx context.Context, pod *v1.Pod, name string, start func(context.Context) error) error
	PostStart(ctx context.Context, pod *v1.Pod, c lifecycle.Container) error
	Terminate(ctx context.Context, pod *v1.Pod, req lifecycle.Request) *lifecycle.Termination
	Termination(pod *v1.Pod) (newest *lifecycle.Termination, found bool)
	Forget(pod *v1.Pod)
	Close(ctx context.Context) error
}

func (p *Provider) isClosed() bool { return p.ctx.Err() != nil }

// context returns a context that has the values of the caller's, but does not end with it. It ends with the cause
// [lifecycle.ErrClosed] when the provider is closed.
func (p *Provider) context(caller context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(caller))
	stop := context.AfterFunc(p.ctx, func() { cancel(lifecycle.ErrClosed) })
	return ctx, func() {
		stop()
		cancel(nil)
	}
}

// spawn runs work in a goroutine that Close waits for. After Close it does nothing.
func (p *Provider) spawn(name types.NamespacedName, work func()) {
	leave, isOpen := p.calls.EnterIfOpen(name.String)
	if !isOpen {
		return
	}
	go func() {
		defer leave()
		work()
	}()
}

// withinMaxStarts waits until fewer than maxStarts starts are in progress, and then calls start. It returns
// the error of start, or the cause of ctx if ctx ends during the wait.
func (p *Provider) withinMaxStarts(ctx context.Context, start func() error) error {
	select {
	case p.starts <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	defer func() { <-p.starts }()
	return start()
}

// isClosed reports whether c is closed, for a channel on which nothing is ever sent.
func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
