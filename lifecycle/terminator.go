package lifecycle

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubegrace/kubegrace/internal/call"
	"github.com/kubegrace/kubegrace/internal/features"
	"github.com/kubegrace/kubegrace/internal/podkey"
)

// ErrClosed is wrapped by the errors of a [Terminator] that was closed.
var ErrClosed = errors.New("the terminator was closed")

var (
	errNotMade    = errors.New("the Terminator was not made with NewTerminator")
	errNoPod      = errors.New("the pod is nil")
	errNoIdentity = errors.New("the pod has neither a UID nor a name")
)

// check returns the error of a call that can have no effect.
func (tr *Terminator) check(pod *v1.Pod) error {
	switch {
	case tr == nil || tr.ctx == nil:
		return errNotMade
	case pod == nil:
		return errNoPod
	case pod.UID == "" && pod.Name == "":
		return errNoIdentity
	default:
		return nil
	}
}

// Terminator terminates pods. Make one with [NewTerminator] and end it with [Terminator.Close]. All
// methods may be called concurrently. A pod is known by its UID, or by its namespace and name if it
// has none.
type Terminator struct {
	opts         TerminatorOptions
	sleepEnabled bool            // PodLifecycleSleepAction is on
	ctx          context.Context // parent of all calls; Close ends it with the cause TerminatorClosed
	close        context.CancelCauseFunc
	calls        call.Group // all goroutines, for Close

	mu   sync.Mutex // guards pods; may be locked with a pod's mutex held, but not the other way round
	pods map[types.UID]*pod
}

// NewTerminator makes a terminator. It starts no goroutine. The error joins everything that is wrong with
// the options.
func NewTerminator(opts TerminatorOptions) (*Terminator, error) {
	if err := opts.validate(); err != nil {
		return nil, fmt.Errorf("failed to make a terminator: %w", err)
	}
	opts.StopTimeoutSlack = cmp.Or(opts.StopTimeoutSlack, DefaultStopTimeoutSlack)
	opts.GiveUpAfter = cmp.Or(opts.GiveUpAfter, DefaultGiveUpAfter)
	if opts.Hooks == nil {
		opts.Hooks = NewHandlerRunner(HandlerRunnerOptions{
			Commands: opts.Commands, PodIP: opts.PodIP,
			Events: opts.Events, Metrics: opts.Metrics, Gates: opts.Gates,
		})
	}
	tr := &Terminator{opts: opts, sleepEnabled: features.Enabled(opts.Gates, PodLifecycleSleepAction), pods: map[types.UID]*pod{}}
	tr.ctx, tr.close = context.WithCancelCause(context.Background()) //nolint:forbidigo // NewTerminator has no context; Close ends it
	return tr, nil
}

// KillPod calls [Terminator.Terminate] and then [Termination.Wait].
func (tr *Terminator) KillPod(ctx context.Context, pod *v1.Pod, req Request) (Result, error) {
	return tr.Terminate(ctx, pod, req).Wait(ctx)
}

// Terminate begins the termination of a pod and returns at once. The pod must not be changed until
// the termination has ended.
//
// A pod has one termination at a time. If one is under way, Terminate returns it, requests a new list
// from the runtime, and shortens the grace period if the pod or the request now gives less. After a
// termination has ended, the next call begins another one, which stops what the runtime lists then. A
// container that could not be stopped keeps its old deadline; one that was started since gets a new
// deadline. If the runtime lists nothing, the result is that of the previous termination, in which a
// container that had not ended is now [OutcomeNotFound].
//
// Only the values of ctx are used, such as the logger; its end has no effect. For a nil pod, and for a
// request with a container without a valid ID, Terminate returns a termination that has ended with an
// error. After [Terminator.Close] it returns one that has ended with the outcome [OutcomeLeftRunning] and
// [ErrClosed].
func (tr *Terminator) Terminate(ctx context.Context, pod *v1.Pod, req Request) *Termination {
	if err := tr.check(pod); err != nil {
		return endedTermination(OutcomeRuntimeStuck, err)
	}
	for _, c := range req.Containers {
		if err := c.check(); err != nil {
			return endedTermination(OutcomeRuntimeStuck, fmt.Errorf("failed to terminate pod %q: Containers: %w", formatPod(pod), err))
		}
	}
	if tr.ctx.Err() != nil {
		return endedTermination(OutcomeLeftRunning, ErrClosed)
	}
	shared := sharedIDs(req.Containers)
	shared.log(ctx, pod)
	p := tr.lock(pod)
	defer p.unlock()
	return p.terminate(tr.callContext(ctx), pod, &req, shared)
}

// Termination returns the pod's newest termination, which is under way or has ended. It returns nil and
// false if there is none, if the pod is nil, and after [Terminator.Forget].
func (tr *Terminator) Termination(pod *v1.Pod) (*Termination, bool) {
	if tr.check(pod) != nil {
		return nil, false
	}
	p := tr.lock(pod)
	defer p.unlock()
	return p.termination, p.termination != nil
}

// Forget drops what the terminator remembers of a pod; a nil pod has no effect. Call it when the pod is
// gone. It frees memory, and lets a pod with the same UID, such as a recreated static pod, be started
// and terminated again.
//
// Forget stops nothing. A termination that is under way goes on with the containers that have been listed
// so far.
func (tr *Terminator) Forget(pod *v1.Pod) {
	if tr.check(pod) != nil {
		return
	}
	p := tr.lock(pod)
	defer p.unlock()
	p.forget()
}

// Close ends the contexts of all hooks, stops and lists with the cause [CauseTerminatorClosed], and waits for
// the terminator's goroutines. Containers that have not ended are [OutcomeLeftRunning]. Close also ends the
// contexts of [Terminator.Start] and [Terminator.PostStart], but does not wait for these calls, which
// run in the agent's goroutines.
//
// When ctx ends first, the error is a [*StillRunningError] that names the containers whose hook,
// StopContainer or list ignores its context. Close may be called again.
func (tr *Terminator) Close(ctx context.Context) error {
	if tr == nil || tr.ctx == nil {
		return errNotMade
	}
	tr.close(CauseTerminatorClosed)
	hanging := tr.calls.WaitLoudly(ctx, "Terminator.Close", ctx.Done())
	if len(hanging) == 0 {
		return nil
	}
	err := &StillRunningError{calls: slices.Compact(hanging), Cause: context.Cause(ctx)}
	for _, name := range err.calls { // "CALL of NAMESPACE/POD/CONTAINER"
		err.Containers = append(err.Containers, name[strings.LastIndexByte(name, ' ')+1:])
	}
	slices.Sort(err.Containers)
	err.Containers = slices.Compact(err.Containers)
	return err
}

// lock returns the entry of a pod, new if there was none, with its mutex locked. [pod.unlock] unlocks it.
func (tr *Terminator) lock(apiPod *v1.Pod) *pod {
	key := podkey.Of(apiPod)
	for {
		tr.mu.Lock()
		p := tr.pods[key]
		if p == nil {
			p = newPod(tr, key)
			tr.pods[key] = p
		}
		tr.mu.Unlock()
		if p.mu.Lock(); !p.dropped {
			return p
		}
		p.mu.Unlock()
	}
}

// callContext returns a context that has the caller's values, and ends only with the terminator.
func (tr *Terminator) callContext(caller context.Context) context.Context {
	return &valuesContext{Context: tr.ctx, values: context.WithoutCancel(caller)}
}

// valuesContext is a context that takes its values from another one first.
type valuesContext struct {
	context.Context

	values context.Context
}

// Value returns a value of the other context, or else of the context itself.
func (c *valuesContext) Value(key any) any {
	if value := c.values.Value(key); value != nil {
		return value
	}
	return c.Context.Value(key)
}
