package lifecycle

import (
	"context"
	"errors"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// ErrForgotten is the error of the methods of a [Pod] after [Pod.Forget].
var ErrForgotten = errors.New("the pod was forgotten")

// ErrUnit is the error of [Pod.KillContainer] for a terminator with a [PodStopper], whose
// containers stop only together.
var ErrUnit = errors.New("the containers of the pod stop as a unit")

// ErrKilled is wrapped by the error of a [Runtime] or [PodStopper] that had to kill: the
// container has ended, and its outcome is [GraceExceeded], or [Forced] if the timeout was 0.
var ErrKilled = errors.New("the runtime has killed the container")

// PodStopper stops all containers of a pod as a unit.
type PodStopper interface {
	StopPod(ctx context.Context, pod *v1.Pod, timeoutSeconds int64) error
}

// Pod is the life of one pod on this agent. Make one with [Terminator.Pod].
type Pod struct {
	terminator *Terminator
	pod        *v1.Pod
}

// Pod returns the life of a pod: the one that is under way, or a new one.
func (tr *Terminator) Pod(pod *v1.Pod) *Pod { return &Pod{terminator: tr, pod: pod} }

// Start starts one container of the pod.
func (p *Pod) Start(ctx context.Context, name string, start func(context.Context) (id string, err error)) error {
	return p.terminator.Start(ctx, p.pod, name, start)
}

// PostStart runs the postStart hook of a container.
func (p *Pod) PostStart(ctx context.Context, c Container) error {
	return p.terminator.PostStart(ctx, p.pod, c)
}

// Terminate starts the termination of the pod and returns at once.
func (p *Pod) Terminate(ctx context.Context, req Request) *Termination {
	return p.terminator.Terminate(ctx, p.pod, req)
}

// Kill calls [Pod.Terminate] and then [Termination.Wait].
func (p *Pod) Kill(ctx context.Context, req Request) (Result, error) {
	return p.terminator.KillPod(ctx, p.pod, req)
}

// KillContainer stops one container of the pod.
func (p *Pod) KillContainer(ctx context.Context, c Container, req ContainerRequest) (ContainerResult, error) {
	return p.terminator.KillContainer(ctx, p.pod, c, req)
}

// Termination returns the termination of the pod, false if there is none.
func (p *Pod) Termination() (*Termination, bool) { return p.terminator.Termination(podKey(p.pod)) }

// Forget ends the life of the pod.
func (p *Pod) Forget() { p.terminator.Forget(podKey(p.pod)) }

// ForgetPod ends the life of the pod with a UID; "NAMESPACE/NAME" for one without UID.
func (tr *Terminator) ForgetPod(uid types.UID) { tr.Forget(uid) }

// Outcomes returns all outcomes of a container, from the best to the worst.
func Outcomes() []Outcome {
	return []Outcome{Graceful, NotFound, GraceExceeded, Forced, RuntimeStuck, LeftRunning}
}
