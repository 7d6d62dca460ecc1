package lifecycle

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubegrace/kubegrace/internal/call"
	"github.com/kubegrace/kubegrace/internal/features"
	"github.com/kubegrace/kubegrace/internal/podkey"
)

// ErrClosed is wrapped by the errors of a closed [Terminator].
var ErrClosed = errors.New("the terminator was closed")

var (
	errNotMade    = errors.New("the Terminator was not made with NewTerminator")
	errNoPod      = errors.New("the pod is nil")
	errNoIdentity = errors.New("the pod has neither a UID nor a name")
)

// check returns an error if a method cannot work: the terminator is nil or zero, or the pod is nil or has neither a UID nor a
// name.
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

// Terminator terminates pods. Create it with [NewTerminator], and end it with [Terminator.Close]. Use one for all
// pods of a node: two terminators that terminate the same pod run its hooks twice. All methods are safe for
// concurrent use. A pod is identified by its UID or, without a UID, by its namespace and name. Methods return an
// error for the zero Terminator, and for a pod with neither a UID nor a name.
type Terminator struct {
	opts         TerminatorOptions
	sleepEnabled bool            // PodLifecycleSleepAction is on
	ctx          context.Context // parent of all calls; Close cancels it with CauseTerminatorClosed
	close        context.CancelCauseFunc
	calls        call.Group // of all goroutines, so that Close can wait for them and name those that hang

	// mu guards pods. It may be locked while a pod's mutex is held; the other way round could deadlock.
	mu   sync.Mutex
	pods map[types.UID]*podState // by the pod's UID or, without a UID, by its namespace and name
}

// NewTerminator returns a terminator. It starts no goroutine. The error joins all invalid options.
func NewTerminator(opts TerminatorOptions) (*Terminator, error) {
	if err := opts.validate(); err != nil {
		return nil, fmt.Errorf("failed to create terminator: %w", err)
	}
	opts.StopTimeoutSlack = cmp.Or(opts.StopTimeoutSlack, DefaultStopTimeoutSlack)
	opts.GiveUpAfter = cmp.Or(opts.GiveUpAfter, DefaultGiveUpAfter)
	if opts.Hooks == nil {
		opts.Hooks = NewHandlerRunner(HandlerRunnerOptions{
			Commands: opts.Commands, PodIP: opts.PodIP,
			Events: opts.Events, Metrics: opts.Metrics, Gates: opts.Gates,
		})
	}
	tr := &Terminator{opts: opts, sleepEnabled: features.Enabled(opts.Gates, PodLifecycleSleepAction), pods: map[types.UID]*podState{}}
	tr.ctx, tr.close = context.WithCancelCause(context.Background()) //nolint:forbidigo // NewTerminator has no context
	return tr, nil
}

// KillPod calls [Terminator.Terminate] and [Termination.Wait].
func (tr *Terminator) KillPod(ctx context.Context, pod *v1.Pod, req Request) (Result, error) {
	return tr.Terminate(ctx, pod, req).Wait(ctx)
}

// Terminate begins the termination of a pod and returns at once. The termination keeps a shallow copy of the
// pod: the caller may set the pod's fields, but must not modify its containers until the termination has ended.
//
// A pod has one termination at a time. If one is in progress, Terminate returns it, requests a new list
// from the runtime, and shortens the grace period if the pod or the request now specifies less. The
// termination ends only after that list: calls that come more often than the runtime lists postpone
// its end.
//
// After it has ended, the next call begins another termination, of the containers that the runtime lists
// then. A container that could not be stopped keeps its old deadline; one that was started since, or listed
// too late to be stopped, gets a new one. If nothing is listed, the result is that of the previous
// termination, but the containers that had not ended by then get [OutcomeNotFound].
//
// Only the values of ctx are used, such as the logger. For a nil pod, or a request with an invalid
// container ID, Terminate returns a termination that has ended with an error. After [Terminator.Close]
// it returns one that has ended with [OutcomeLeftRunning] and [ErrClosed].
func (tr *Terminator) Terminate(ctx context.Context, pod *v1.Pod, req Request) *Termination {
	if err := tr.check(pod); err != nil {
		return endedTermination(OutcomeRuntimeStuck, err)
	}
	if err := checkContainers(req.Containers); err != nil {
		return endedTermination(OutcomeRuntimeStuck, fmt.Errorf("failed to terminate pod %q: Containers: %w", formatPod(pod), err))
	}
	leave, isOpen := tr.enter("the termination", pod, "")
	if !isOpen {
		return endedTermination(OutcomeLeftRunning, ErrClosed)
	}
	defer leave()
	p := tr.lock(pod)
	defer p.unlock()
	return p.terminate(tr.callContext(ctx), pod, &req)
}

// Termination returns the pod's newest termination, in progress or ended. It returns nil and false if
// there is none, if the pod is nil, or after [Terminator.Forget].
func (tr *Terminator) Termination(pod *v1.Pod) (*Termination, bool) {
	if tr.check(pod) != nil {
		return nil, false
	}
	p := tr.lock(pod)
	defer p.unlock()
	return p.termination, p.termination != nil
}

// Forget drops the terminator's state of a pod. Call it when the pod is gone. It frees memory, and
// allows a pod with the same UID, such as a recreated static pod, to be started and terminated again. A
// nil pod has no effect.
//
// Forget stops no container. A termination in progress continues with the containers listed so far. If none
// has been listed yet, they keep running, and the result is [OutcomeRuntimeStuck]. Starts that are in progress
// during that termination are cancelled. Later ones are independent of it.
func (tr *Terminator) Forget(pod *v1.Pod) {
	if tr.check(pod) != nil {
		return
	}
	p := tr.lock(pod)
	defer p.unlock()
	p.forget()
}

// Close cancels the contexts of all hooks, stops, lists and starts with [CauseTerminatorClosed], and waits
// for the terminator's goroutines. Containers that have not ended are [OutcomeLeftRunning]. Close does not
// wait for a function passed to [Terminator.Start], which runs in the agent's goroutine: if Start was called
// before Close, its function may even begin later, and its context ends at once.
//
// When ctx ends first, the error wraps its cause, and names the calls that have not returned, such as hooks
// and StopContainer calls that ignore their contexts, with their pods and containers. After 5 s Close also
// logs these calls. Once Close has returned nil, nothing else begins any more, even if a method was called
// during Close. Close may be called again.
func (tr *Terminator) Close(ctx context.Context) error {
	if tr == nil || tr.ctx == nil {
		return errNotMade
	}
	tr.calls.Close()
	tr.close(CauseTerminatorClosed)
	hanging := tr.calls.WaitAndLog(ctx, "Terminator.Close", ctx.Done()) // each "CALL of NAMESPACE/POD/CONTAINER"
	if len(hanging) == 0 {
		return nil
	}
	return fmt.Errorf("the terminator was closed, calls that have not returned: %s: %w", strings.Join(hanging, ", "), context.Cause(ctx))
}

// enter registers the caller, a method of the terminator: until it calls leave, it may start goroutines, and Close waits for it. If
// it hangs, the error of Close names it as WORK of NAMESPACE/POD/CONTAINER, such as "the stop of ns/pod/app"; container is "" for
// the whole pod. After Close, isOpen is false and leave is nil.
func (tr *Terminator) enter(work string, apiPod *v1.Pod, container string) (leave func(), isOpen bool) {
	return tr.calls.EnterIfOpen(func() string { return work + " of " + fullName(apiPod, container) })
}

// lock returns the state that the terminator keeps for a pod, with the state's mutex locked. It creates the
// state if there is none. The caller must call [podState.unlock]. If another goroutine has dropped the state
// before its mutex could be locked, lock tries again.
func (tr *Terminator) lock(apiPod *v1.Pod) *podState {
	key := podkey.Of(apiPod)
	for {
		tr.mu.Lock()
		p := tr.pods[key]
		if p == nil {
			p = newPodState(tr, key)
			tr.pods[key] = p
		}
		tr.mu.Unlock()
		p.mu.Lock()
		if !p.dropped {
			return p
		}
		p.mu.Unlock()
	}
}

// callContext returns the context for calls of the agent's code. It has the caller's values, such as the
// logger. It does not end with the caller's context, because a termination continues when its caller no
// longer waits; it ends when the terminator is closed.
func (tr *Terminator) callContext(caller context.Context) context.Context {
	return &valuesContext{Context: tr.ctx, caller: caller}
}

// valuesContext ends when its Context, the terminator's, ends. It has the values of that context and of the caller's.
type valuesContext struct {
	context.Context // the terminator's

	caller context.Context
}

// Value implements [context.Context]. It asks the terminator's context first: with a private key, package context looks
// for the context that ends this one, and must not find the caller's. The terminator's context has no other values, so
// that all other keys are looked up in the caller's.
func (c *valuesContext) Value(key any) any {
	if value := c.Context.Value(key); value != nil {
		return value
	}
	return c.caller.Value(key)
}
