package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubegrace/kubegrace/graceperiod"
	"github.com/kubegrace/kubegrace/internal/features"
	"github.com/kubegrace/kubegrace/metrics"
)

// DefaultStopSlack is how long past its timeout a StopContainer may be silent
// when [TerminatorOptions.StopSlack] is 0.
const DefaultStopSlack = 5 * time.Second

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
	// Hooks runs the hooks; nil: [NewHandlerRunner] with the Events, Metrics and
	// Gates of these options, whose exec hooks fail and say so.
	Hooks HandlerRunner
	// Exits tells when a container has exited, which ends its sleep hook; nil: a
	// sleep lasts as long as its pod's grace lets it, as in the kubelet (k/k#134338).
	Exits ExitWatcher
	// HookTiming says when preStop hooks run; "": [HooksAtTermination].
	HookTiming HookTiming
	// StopSlack is how long past its timeout a StopContainer may be silent before
	// it is asked once more, with timeout 0, and how long that one may be; 0:
	// [DefaultStopSlack]; negative is an error.
	StopSlack time.Duration
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
	sleep  *sleepHook // of the runner, nil if that is another's
	sleeps bool       // PodLifecycleSleepAction is on

	mu     sync.Mutex // never held while anything blocks; may be held to take a Termination's
	closed bool
	pods   map[types.UID]*podState
	// working are the terminations that have not ended, or for which a goroutine
	// still works, and guests the agent's calls under way. Forget takes nothing from
	// them, so that Close misses none.
	working map[*Termination]struct{}
	guests  map[*guest]struct{}
}

// NewTerminator makes a terminator. It starts nothing. All that is wrong with
// the options is in the error.
func NewTerminator(opts TerminatorOptions) (*Terminator, error) {
	if err := opts.validate(); err != nil {
		return nil, fmt.Errorf("failed to make a terminator: %w", err)
	}
	if opts.StopSlack == 0 {
		opts.StopSlack = DefaultStopSlack
	}
	if opts.Hooks == nil {
		opts.Hooks = NewHandlerRunner(HandlerRunnerOptions{Events: opts.Events, Metrics: opts.Metrics, Gates: opts.Gates})
	}
	return &Terminator{
		opts:    opts,
		sleep:   sleepOf(opts.Hooks),
		sleeps:  features.Enabled(opts.Gates, PodLifecycleSleepAction),
		pods:    map[types.UID]*podState{},
		working: map[*Termination]struct{}{},
		guests:  map[*guest]struct{}{},
	}, nil
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
	if o.StopSlack < 0 {
		errs = append(errs, fmt.Errorf("StopSlack: must not be negative, is %v", o.StopSlack))
	}
	return errors.Join(errs...)
}

// Terminate begins the termination of a pod and returns at once. The pod must not
// be changed until it has ended.
//
// The grace period is that of [graceperiod.ForPod]: the override and the deletion
// grace of the pod if it has them, else its spec's, 1 s at least. A pod that is
// being terminated, or was, keeps its one termination until [Terminator.Forget]: it is
// returned again, and shortened if the pod or the request now ask for less; the
// containers of the first request count. Besides those, it ends the containers that
// [Terminator.Start] is starting, and, where there is an [ExitWatcher], those that
// it has started and that have not exited. The kill of a single container that is
// under way becomes a part of it.
//
// ctx gives values such as the logger; that it ends does not matter. After
// [Terminator.Close] the termination has ended when it is returned, with all
// containers [LeftRunning].
func (tr *Terminator) Terminate(ctx context.Context, pod *v1.Pod, req Request) *Termination {
	t, existed := tr.enter(ctx, pod, req)
	if existed {
		t.join(pod, req)
	} else {
		tr.send(t)
	}
	return t
}

// send begins a termination that was entered, unless the agent stops.
func (tr *Terminator) send(t *Termination) {
	if tr.isClosed() {
		t.leave()
	} else {
		t.begin()
	}
}

// enter finds the termination of a pod, or enters a new one that has not begun.
func (tr *Terminator) enter(ctx context.Context, pod *v1.Pod, req Request) (t *Termination, existed bool) {
	exited := tr.exitedOf(pod)
	tr.mu.Lock()
	defer tr.mu.Unlock()
	state := tr.stateLocked(pod)
	if state.termination != nil {
		return state.termination, true
	}
	seconds, _ := graceperiod.ForPod(pod, 0, req.GracePeriodSeconds)
	running := req.Containers
	if running == nil {
		running = ContainersOf(pod)
	}
	t = newTermination(ctx, tr, pod, seconds, state.withStarted(running, exited), tr.startingLocked(state))
	t.message = req.Message
	state.termination = t
	state.bindKills(t)
	tr.bindGuestsLocked(state, t)
	tr.working[t] = struct{}{}
	return t, false
}

// KillPod terminates a pod, as [Terminator.Terminate] does, and waits for its end, as
// [Termination.Wait] does.
func (tr *Terminator) KillPod(ctx context.Context, pod *v1.Pod, req Request) (Result, error) {
	return tr.Terminate(ctx, pod, req).Wait(ctx)
}

// Forget lets go of a pod that is gone, so that one with the same UID, as a static
// pod has when it returns, starts afresh. For a pod without UID, uid is
// "NAMESPACE/NAME". A termination under way goes on, and Close still waits for it.
func (tr *Terminator) Forget(uid types.UID) {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	delete(tr.pods, uid)
}
