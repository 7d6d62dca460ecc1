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
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	"github.com/kubegrace/kubegrace/internal/features"
	"github.com/kubegrace/kubegrace/metrics"
)

// The defaults of [TerminatorOptions].
const (
	// DefaultStopSlack is how long past its timeout a StopContainer may be silent.
	DefaultStopSlack = 5 * time.Second
	// DefaultGiveUp is how long past its deadline a container is asked for: the
	// kubelet's CRI client waits as long past the timeout of its one call.
	DefaultGiveUp = 2 * time.Minute
)

// HookTiming says when preStop hooks run.
type HookTiming string

const (
	// HooksAtTermination runs all hooks of a pod at once when its termination
	// begins, those of sidecars included, as the kubelet does. It is the zero value.
	HooksAtTermination HookTiming = ""
	// HooksAtTurn runs the hook of a container when its turn to stop has come:
	// that of a sidecar after the main containers have ended.
	HooksAtTurn HookTiming = "AtTurn"
)

// TerminatorOptions says what a [Terminator] works with. Only Runtime must be set.
type TerminatorOptions struct {
	// Runtime stops the containers; nil is an error.
	Runtime Runtime
	// Commands, HTTP and PodIP are those of [HandlerRunnerOptions]. They count where
	// Hooks is nil.
	Commands CommandRunner
	HTTP     HTTPDoer
	PodIP    func(context.Context, *v1.Pod) (string, error)
	// Hooks runs the hooks; nil: [NewHandlerRunner] with the Commands, HTTP, PodIP,
	// Events, Metrics and Gates of these options.
	Hooks HandlerRunner
	// Exits tells when a container has exited, which ends its sleep hook; nil: a
	// sleep lasts as long as its pod's grace lets it, as in the kubelet (k/k#134338).
	Exits ExitWatcher
	// HookTiming says when preStop hooks run; "": [HooksAtTermination].
	HookTiming HookTiming
	// StopSlack is how long past its timeout a StopContainer may be silent before
	// it is asked once more beside it, with timeout 0. Each such call may be silent for
	// twice as long as the one before. 0: [DefaultStopSlack]; negative is an error.
	StopSlack time.Duration
	// GiveUp is how long past its deadline a container is asked for whose StopContainer
	// fails or is silent, before it is [RuntimeStuck]; 0: [DefaultGiveUp]; negative is
	// an error.
	GiveUp time.Duration
	// Events takes the kubelet's events; nil: none are recorded.
	Events EventRecorder
	// Metrics counts; nil: nothing is counted.
	Metrics *metrics.Lifecycle
	// Gates is asked once, here; nil: the default of each gate.
	Gates FeatureGate
}

// Terminator terminates pods. All methods may be called concurrently; make one
// with [NewTerminator] and end it with [Terminator.Close].
type Terminator struct {
	opts   TerminatorOptions
	own    *handlerRunner // the runner, nil if it is another's
	sleeps bool           // PodLifecycleSleepAction is on

	closed atomic.Bool
	seed   maphash.Seed
	shards [64]shard
}

// NewTerminator makes a terminator. It starts nothing. All that is wrong with
// the options is in the error.
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
	own, _ := opts.Hooks.(*handlerRunner)
	tr := &Terminator{
		opts: opts, own: own,
		sleeps: features.Enabled(opts.Gates, PodLifecycleSleepAction),
		seed:   maphash.MakeSeed(),
	}
	for i := range tr.shards {
		tr.shards[i].pods = map[types.UID]*podTable{}
	}
	return tr, nil
}

// validate tells all that is wrong.
func (o TerminatorOptions) validate() error {
	var errs []error
	if o.Runtime == nil {
		errs = append(errs, errors.New("Runtime: must be set"))
	}
	if o.HookTiming != HooksAtTermination && o.HookTiming != HooksAtTurn {
		errs = append(errs, fmt.Errorf("HookTiming: unknown value %q", o.HookTiming))
	}
	for name, span := range map[string]time.Duration{"StopSlack": o.StopSlack, "GiveUp": o.GiveUp} {
		if span < 0 {
			errs = append(errs, fmt.Errorf("%s: must not be negative, is %v", name, span))
		}
	}
	return errors.Join(errs...)
}

// Terminate begins the termination of a pod and returns at once. The pod must not
// be changed until it has ended.
//
// The grace period is that of [graceperiod.ForPod]: the override and the deletion
// grace of the pod if it has them, else its spec's, 1 s at least. The containers are
// those of the request, or those that run in the pod's status, and always those that
// [Terminator.Start] has started, or is starting, and that are not known to have
// exited. Where nothing of this says how a container is, its result wraps
// [ErrUnknownContainers]. What is being done about a container already becomes a part
// of the termination, and is held to its deadline.
//
// A pod that is being terminated keeps its one termination: it is returned again, takes
// in containers that it did not know, and is shortened if the pod or the request now
// ask for less. One that has ended is kept until [Terminator.Forget]; a new one begins
// in its place where there is something to do: a container that got stuck is asked for
// again, under the old deadline, as is one that was started before the end; one that
// was started since, by its status, or whose start nobody dates, has a grace of its own.
//
// ctx gives values such as the logger; that it ends does not matter. After
// [Terminator.Close] the termination has ended when it is returned, with all
// containers [LeftRunning]. The termination of a nil pod has ended with an error.
func (tr *Terminator) Terminate(ctx context.Context, pod *v1.Pod, req Request) *Termination {
	if pod == nil {
		return tr.refused()
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

// logV1 logs as the kubelet does, if anybody wants to know.
func logV1(ctx context.Context, log func(klog.Logger)) {
	if logger := klog.FromContext(ctx).V(1); logger.Enabled() {
		log(logger)
	}
}

// refused is the termination of no pod.
func (tr *Terminator) refused() *Termination {
	result := ContainerResult{Outcome: RuntimeStuck, Err: errNoPod}
	return &Termination{table: &podTable{terminator: tr}, records: []record{recordOf(&result)}}
}

// KillPod terminates a pod, as [Terminator.Terminate] does, and waits for its end, as
// [Termination.Wait] does.
func (tr *Terminator) KillPod(ctx context.Context, pod *v1.Pod, req Request) (Result, error) {
	return tr.Terminate(ctx, pod, req).Wait(ctx)
}

// Termination finds the termination of a pod that is under way, or that has ended and
// was not forgotten. For a pod without UID, uid is "NAMESPACE/NAME".
func (tr *Terminator) Termination(uid types.UID) (*Termination, bool) {
	p := tr.lock(uid, false)
	if p == nil {
		return nil, false
	}
	defer p.mu.Unlock()
	return p.current, p.current != nil
}

// Forget lets go of a pod that is gone, so that one with the same UID, as a static
// pod has when it returns, starts afresh. For a pod without UID, uid is
// "NAMESPACE/NAME". What is under way is not forgotten: a termination goes on, and what
// is being started or stopped becomes a part of the next one. That the preStop hook of a
// container has run is forgotten too: a caller who names the container again after that has
// its hook run again.
func (tr *Terminator) Forget(uid types.UID) {
	if p := tr.lock(uid, false); p != nil {
		p.current = nil
		for _, c := range p.containers {
			c.obsolete = true
		}
		p.tidyLocked()
		p.releaseLocked(uid)
		p.mu.Unlock()
	}
}

// StillRunningError says which containers had not ended when the waiting for them
// did. Its cause, a context's, is to be had with errors.Is.
type StillRunningError struct {
	// Containers are "NAMESPACE/POD/CONTAINER", sorted.
	Containers []string
	// Cause is why the waiting ended.
	Cause error
}

// Error names the containers, after the kubelet's text where a timeout has ended the
// waiting.
func (e *StillRunningError) Error() string {
	text := "stopped waiting"
	if errors.Is(e.Cause, context.DeadlineExceeded) {
		text = "timeout waiting to kill pod"
	}
	return fmt.Sprintf("%s: containers that have not ended: %s: %v", text, strings.Join(e.Containers, ", "), e.Cause)
}

// Unwrap gives the cause.
func (e *StillRunningError) Unwrap() error { return e.Cause }

// Close ends all terminations with the cause [AgentStopping] and waits until no
// goroutine works for any of them: hooks and stops are cancelled, and containers
// that have not ended are [LeftRunning]. The contexts of [Terminator.Start] and
// [Terminator.PostStart], which run in goroutines of the agent's, end as well, and are
// not waited for. ctx bounds the waiting: when it ends, the
// error is a [*StillRunningError] that names the containers whose hook or
// StopContainer ignores its cancellation. Close may be called again.
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
		p.leave()
	}
	var stuck []string //nolint:prealloc // empty as a rule
	for _, p := range tables {
		stuck = append(stuck, p.awaitIdle(ctx)...)
	}
	if len(stuck) == 0 {
		return nil
	}
	slices.Sort(stuck)
	return &StillRunningError{Containers: stuck, Cause: context.Cause(ctx)}
}

// leave leaves the containers of a pod as they are.
func (p *podTable) leave() {
	p.mu.Lock()
	defer p.unlock()
	p.closed = true
	for _, c := range p.containers {
		if c.cancelStart != nil {
			c.cancelStart(AgentStopping)
		}
		if c.run != nil {
			c.run.cancel(AgentStopping)
		}
	}
}

// awaitIdle waits until no goroutine works for a pod, and names the containers for
// which one still does when ctx has ended.
func (p *podTable) awaitIdle(ctx context.Context) (stuck []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	works := func(c *container) bool { return c.calls > 0 }
	p.waitLocked(func() bool { return !slices.ContainsFunc(p.containers, works) }, nil, ctx.Done())
	for _, c := range p.containers {
		if works(c) {
			stuck = append(stuck, fullName(c.pod, c.result.Name))
		}
	}
	return stuck
}
