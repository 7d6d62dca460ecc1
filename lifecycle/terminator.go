package lifecycle

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

	"github.com/kubegrace/kubegrace/internal/features"
)

// Terminator terminates pods. Make one with [NewTerminator] and end it with
// [Terminator.Close]. All methods may be called concurrently.
//
// [Terminator.Pod] gives the life of a pod. KillPod, KillContainer and ForgetPod are for
// callers that keep no lives, such as a kubelet.
type Terminator struct {
	*register

	settings *settings
}

// settings are the options of a terminator, and what follows from them.
type settings struct {
	TerminatorOptions

	sleepEnabled bool // PodLifecycleSleepAction is on
	closed       atomic.Bool
}

// isClosed reports whether the terminator was closed.
func (s *settings) isClosed() bool { return s.closed.Load() }

// isSleepEnabled reports whether sleep hooks run: by the runner of a request, or else by the
// options.
func (s *settings) isSleepEnabled(hooks HandlerRunner) bool {
	if builtin, _ := hooks.(*handlerRunner); builtin != nil {
		return builtin.sleepEnabled
	}
	return s.sleepEnabled
}

// NewTerminator makes a terminator. It starts no goroutine. The error has everything that
// is wrong with the options.
func NewTerminator(opts TerminatorOptions) (*Terminator, error) {
	if err := opts.validate(); err != nil {
		return nil, fmt.Errorf("failed to make a terminator: %w", err)
	}
	opts.StopSlack = cmp.Or(opts.StopSlack, DefaultStopSlack)
	opts.GiveUp = cmp.Or(opts.GiveUp, DefaultGiveUp)
	opts.ExitSlack = cmp.Or(opts.ExitSlack, DefaultExitSlack)
	if opts.Hooks == nil {
		opts.Hooks = NewHandlerRunner(HandlerRunnerOptions{
			Commands: opts.Commands, HTTP: opts.HTTP, PodIP: opts.PodIP,
			Events: opts.Events, Metrics: opts.Metrics, Gates: opts.Gates,
		})
	}
	return &Terminator{register: newRegister(), settings: &settings{
		TerminatorOptions: opts, sleepEnabled: features.Enabled(opts.Gates, PodLifecycleSleepAction),
	}}, nil
}

// Pod returns the life of a pod: the one that is under way, or a new one, which begins with
// its first [Pod.Start] or kill. All handles of a life are equal. A life is found by the UID
// of its pod. One that began without a UID is found by namespace and name, and takes the
// first UID that comes with them; it is found by both from then on. Another UID is another
// life, and so is a pod without UID for a life that began with one.
//
// The handle keeps the pod, for its methods, until Pod is called with a newer one or the pod
// is forgotten. It must not be changed meanwhile. The methods of the handle of a nil pod give
// an error.
func (tr *Terminator) Pod(pod *v1.Pod) *Pod {
	if pod == nil {
		return &Pod{}
	}
	for {
		l := tr.lifeOf(tr, pod, true)
		if p := l.setPod(pod); p != nil {
			return p
		}
	}
}

// KillPod is [Pod.Kill] for the life that the pod has.
func (tr *Terminator) KillPod(ctx context.Context, pod *v1.Pod, req Request) (Result, error) {
	if pod == nil {
		return failedTermination(errNoPod).Wait(ctx)
	}
	for {
		t, err := terminate(ctx, tr.lifeOf(tr, pod, tr.settings.isClosed()), nil, pod, &req)
		if err == nil {
			return t.Wait(ctx)
		}
	}
}

// KillContainer is [Pod.KillContainer] for the life that the pod has.
func (tr *Terminator) KillContainer(ctx context.Context, pod *v1.Pod, c Container, req ContainerRequest) (ContainerResult, error) {
	if pod == nil {
		return ContainerResult{Name: c.Name, ID: c.ID}, errNoPod
	}
	for {
		result, err := tr.lifeOf(tr, pod, tr.settings.isClosed()).killContainer(ctx, nil, pod, c, req)
		if !errors.Is(err, ErrForgotten) {
			return result, err
		}
	}
}

// ForgetPod is [Pod.Forget] for the pod with a UID, or "NAMESPACE/NAME" for a pod that began
// without.
func (tr *Terminator) ForgetPod(uid types.UID) {
	if l := tr.get(uid); l != nil {
		l.forget(nil)
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
// The contexts of [Pod.Start] and [Pod.PostStart] are cancelled too, but Close does not wait
// for these calls, which run in goroutines of the agent.
//
// When ctx ends first, the error is a [*StillRunningError] with the containers whose hook
// or StopContainer ignores its cancellation. Close may be called again.
func (tr *Terminator) Close(ctx context.Context) error {
	tr.settings.closed.Store(true)
	lives := tr.all()
	for _, l := range lives {
		l.cancel()
	}
	var stuck []string //nolint:prealloc // usually stays empty
	for _, l := range lives {
		stuck = append(stuck, l.awaitIdle(ctx)...)
	}
	if len(stuck) == 0 {
		return nil
	}
	slices.Sort(stuck)
	return &StillRunningError{Containers: stuck, Cause: context.Cause(ctx)}
}
