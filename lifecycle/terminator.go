package lifecycle

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"maps"
	"slices"
	"strings"
	"sync/atomic"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	"github.com/kubegrace/kubegrace/internal/features"
)

// Terminator terminates pods. Make one with [NewTerminator] and end it with
// [Terminator.Close]. All methods may be called concurrently.
type Terminator struct {
	opts         TerminatorOptions
	builtin      *handlerRunner // opts.Hooks if it is from NewHandlerRunner, else nil
	sleepEnabled bool           // PodLifecycleSleepAction is on

	closed atomic.Bool
	seed   maphash.Seed
	shards [64]shard
}

// NewTerminator makes a terminator. It starts no goroutine. The error has everything that
// is wrong with the options.
func NewTerminator(opts TerminatorOptions) (*Terminator, error) {
	if err := opts.validate(); err != nil {
		return nil, fmt.Errorf("failed to make a terminator: %w", err)
	}
	opts.StopSlack = cmp.Or(opts.StopSlack, DefaultStopSlack)
	opts.GiveUp = cmp.Or(opts.GiveUp, DefaultGiveUp)
	if opts.Hooks == nil {
		opts.Hooks = NewHandlerRunner(HandlerRunnerOptions{
			Commands: opts.Commands, HTTP: opts.HTTP, PodIP: opts.PodIP,
			Events: opts.Events, Metrics: opts.Metrics, Gates: opts.Gates,
		})
	}
	builtin, _ := opts.Hooks.(*handlerRunner)
	tr := &Terminator{
		opts: opts, builtin: builtin,
		sleepEnabled: features.Enabled(opts.Gates, PodLifecycleSleepAction),
		seed:         maphash.MakeSeed(),
	}
	for i := range tr.shards {
		tr.shards[i].pods = map[types.UID]*podTable{}
	}
	return tr, nil
}

// Terminate starts the termination of a pod and returns at once. The pod must not be
// changed until the termination has ended.
//
// The grace period is that of [graceperiod.ForPod], with the override of the request; it
// is at least 1 s. The containers are those of the request, or those that run by the
// pod's status, and always those that [Terminator.Start] has started or is starting and
// that are not known to have exited. The error of a container whose state nothing of this
// tells wraps [ErrUnknownContainers]. A hook or stop that is under way for a container
// becomes part of the termination and gets its deadline.
//
// A pod has one termination at a time. If one is under way, Terminate returns it, adds
// containers that it did not have, and shortens its grace period if the pod or the request
// now gives less. A termination that has ended is kept until [Terminator.Forget], and is
// returned again unless there is something to stop. Then a new termination replaces it. It
// has the old deadline if it is about containers that are stuck, or that were started
// before the old one ended. It has a new grace period if the pod's status says that a
// container was started later, or does not say when.
//
// ctx gives values such as the logger; its end and its deadline have no effect. After
// [Terminator.Close] the result is a termination that has ended, with all containers
// [LeftRunning]. For a nil pod it is one that has ended with an error.
func (tr *Terminator) Terminate(ctx context.Context, pod *v1.Pod, req Request) *Termination {
	if pod == nil {
		return tr.nilPodTermination()
	}
	named := req.Containers
	if named == nil {
		named = ContainersOf(pod)
	}
	p := tr.lock(podKey(pod), true)
	t := p.terminateLocked(ctx, pod, &req, named)
	p.unlock()
	logV1(ctx, func(l klog.Logger) { l.Info("Terminating pod", "pod", klog.KObj(pod)) })
	return t
}

// logV1 logs at the level of the kubelet's messages about pods. log is called only if that
// level is enabled.
func logV1(ctx context.Context, log func(klog.Logger)) {
	if logger := klog.FromContext(ctx).V(1); logger.Enabled() {
		log(logger)
	}
}

// nilPodTermination returns a termination that has ended with the error for a nil pod.
func (tr *Terminator) nilPodTermination() *Termination {
	result := ContainerResult{Outcome: RuntimeStuck, Err: errNoPod}
	return &Termination{table: &podTable{terminator: tr}, records: []record{recordOf(&result)}}
}

// KillPod calls [Terminator.Terminate] and then [Termination.Wait].
func (tr *Terminator) KillPod(ctx context.Context, pod *v1.Pod, req Request) (Result, error) {
	return tr.Terminate(ctx, pod, req).Wait(ctx)
}

// Termination returns the termination of a pod that is under way, or that has ended and
// was not forgotten; false if there is none. For a pod without UID, uid is
// "NAMESPACE/NAME".
func (tr *Terminator) Termination(uid types.UID) (*Termination, bool) {
	p := tr.lock(uid, false)
	if p == nil {
		return nil, false
	}
	defer p.mu.Unlock()
	return p.current, p.current != nil
}

// Forget removes what the terminator knows about a pod. Call it when the pod is gone: it
// frees the memory, and a pod with the same UID, such as a static pod that returns, can be
// started and terminated again. For a pod without UID, uid is "NAMESPACE/NAME".
//
// Forget stops nothing. A termination that is under way goes on, and containers that are
// being started or stopped become part of the next termination. It also removes the record
// that a preStop hook has run: if the container is stopped again after Forget, its hook
// runs again.
func (tr *Terminator) Forget(uid types.UID) {
	if p := tr.lock(uid, false); p != nil {
		p.current = nil
		for _, c := range p.containers {
			c.obsolete = true
		}
		p.removeObsoleteLocked()
		p.removeIfEmptyLocked(uid)
		p.mu.Unlock()
	}
}

// StillRunningError is returned when a wait was ended by its context. It names the
// containers that had not ended.
type StillRunningError struct {
	// Containers are "NAMESPACE/POD/CONTAINER", sorted.
	Containers []string
	// Cause is the cause of the context, which errors.Is finds.
	Cause error
}

// Error returns a text with the containers. After a timeout it begins with the kubelet's
// text for that.
func (e *StillRunningError) Error() string {
	text := "stopped waiting"
	if errors.Is(e.Cause, context.DeadlineExceeded) {
		text = "timeout waiting to kill pod"
	}
	return fmt.Sprintf("%s: containers that have not ended: %s: %v", text, strings.Join(e.Containers, ", "), e.Cause)
}

// Unwrap returns the cause.
func (e *StillRunningError) Unwrap() error { return e.Cause }

// Close cancels all hooks and stops, with the cause [AgentStopping], and waits until the
// terminator's goroutines have ended. Containers that have not ended are [LeftRunning].
// The contexts of [Terminator.Start] and [Terminator.PostStart] are cancelled too, but
// Close does not wait for these calls, which run in goroutines of the agent.
//
// When ctx ends first, the error is a [*StillRunningError] with the containers whose hook
// or StopContainer ignores its cancellation. Close may be called again.
func (tr *Terminator) Close(ctx context.Context) error {
	tr.closed.Store(true)
	var tables []*podTable
	for i := range tr.shards {
		s := &tr.shards[i]
		s.mu.Lock()
		tables = slices.AppendSeq(tables, maps.Values(s.pods))
		s.mu.Unlock()
	}
	for _, p := range tables {
		p.close()
	}
	var stuck []string //nolint:prealloc // usually stays empty
	for _, p := range tables {
		stuck = append(stuck, p.awaitIdle(ctx)...)
	}
	if len(stuck) == 0 {
		return nil
	}
	slices.Sort(stuck)
	return &StillRunningError{Containers: stuck, Cause: context.Cause(ctx)}
}

// close cancels what is under way for the pod, because the terminator is closed.
func (p *podTable) close() {
	p.mu.Lock()
	defer p.unlock()
	p.closed = true
	for _, c := range p.containers {
		if c.starting.cancel != nil {
			c.starting.cancel(AgentStopping)
		}
		if c.run != nil {
			c.run.cancel(AgentStopping)
		}
	}
}

// awaitIdle waits until all goroutines of the pod have ended, or ctx has. It returns the
// containers that then still have one.
func (p *podTable) awaitIdle(ctx context.Context) (stuck []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	isBusy := func(c *container) bool { return c.goroutines > 0 }
	p.waitLocked(func() bool { return !slices.ContainsFunc(p.containers, isBusy) }, nil, ctx.Done())
	for _, c := range p.containers {
		if isBusy(c) {
			stuck = append(stuck, fullName(c.pod, c.result.Name))
		}
	}
	return stuck
}
