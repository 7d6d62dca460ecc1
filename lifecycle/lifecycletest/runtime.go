package lifecycletest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/kubegrace/kubegrace/lifecycle"
)

// ErrScripted is the error of a StopContainer that fails by its [Script], if that has no
// StopErr.
var ErrScripted = errors.New("the script fails this stop")

// ErrContainerExited is the error of a command whose container exits, or had exited.
var ErrContainerExited = errors.New("container has exited")

var (
	_ lifecycle.Runtime       = (*Runtime)(nil)
	_ lifecycle.CommandRunner = (*Runtime)(nil)
	_ lifecycle.ExitWatcher   = (*Runtime)(nil)
)

// Runtime is a container runtime whose containers follow a [Script]. It is a
// [lifecycle.Runtime], a [lifecycle.CommandRunner] and a [lifecycle.ExitWatcher].
type Runtime struct {
	records
	absence

	mu         sync.Mutex // guards the fields below; not held while anything waits
	containers map[string]*container
	forgiving  bool // the stop of an unknown container succeeds
	released   chan struct{}
}

// NewRuntime makes a runtime without containers.
func NewRuntime() *Runtime {
	return &Runtime{containers: map[string]*container{}, released: make(chan struct{})}
}

// Start runs a container. If a container with this ID has run before, the new one replaces
// it; one that still runs exits first.
func (r *Runtime) Start(id string, s Script) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if old := r.containers[id]; old != nil {
		old.end(ByItself)
	}
	r.containers[id] = run(id, s, &r.records)
}

// StartContainer runs a container after [Script.StartTakes], unless [Script.StartErr] is
// set, and returns the ID, as a function for [lifecycle.Pod.Start] does. A start that
// fails, or whose context ends, leaves no container, and its error wraps
// [lifecycle.ErrContainerNotFound], and StartErr or the cause of the context's end.
func (r *Runtime) StartContainer(ctx context.Context, id string, s Script) (string, error) {
	ended := ctx.Done()
	if s.StartDeaf {
		ended = nil
	}
	takes := time.NewTimer(s.StartTakes)
	defer takes.Stop()
	select {
	case <-takes.C:
	case <-ended:
		return "", fmt.Errorf("%w: %w", lifecycle.ErrContainerNotFound, context.Cause(ctx))
	}
	if s.StartErr != nil {
		return "", fmt.Errorf("%w: %w", lifecycle.ErrContainerNotFound, s.StartErr)
	}
	r.Start(id, s)
	return id, nil
}

// AnswerNilForUnknown makes StopContainer return nil for an unknown container, as containerd
// 2 does. Without it there is an error.
func (r *Runtime) AnswerNilForUnknown() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.forgiving = true
}

// Exit makes a container exit by itself, now. It does nothing if the container is unknown or
// has exited.
func (r *Runtime) Exit(id string) {
	if c := r.find(id); c != nil {
		c.end(ByItself)
	}
}

// ExitCode returns the exit code of a container, false if it runs or is unknown.
func (r *Runtime) ExitCode(id string) (code int32, exited bool) {
	if c := r.find(id); c != nil {
		return c.exitCode()
	}
	return 0, false
}

// Remove makes a container exit, if it runs, and removes it: it is unknown then. Its records
// stay.
func (r *Runtime) Remove(id string) {
	r.Exit(id)
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.containers, id)
}

// Exited returns a channel that is closed when the container has exited, also if it was
// removed since. It is nil for an ID that no container has had.
func (r *Runtime) Exited(id string) <-chan struct{} {
	if c := r.find(id); c != nil {
		return c.exited
	}
	if !slices.ContainsFunc(r.Exits(), func(e Exit) bool { return e.ID == id }) {
		return nil
	}
	closed := make(chan struct{})
	close(closed)
	return closed
}

// Release ends all StopContainer calls that hang, with [Script.StopErr] or [ErrScripted].
// Calls do not hang any more from then on.
func (r *Runtime) Release() {
	r.mu.Lock()
	defer r.mu.Unlock()
	select {
	case <-r.released:
	default:
		close(r.released)
	}
}

// StopContainer sends the stop signal, waits timeoutSeconds for the container to end, and
// then kills it; with a timeout of 0 or less it kills at once. If ctx ends first, it returns
// the error of ctx and does not kill. For an unknown container the error wraps
// [lifecycle.ErrContainerNotFound], or is nil after [Runtime.AnswerNilForUnknown]. While the
// runtime is [Runtime.Away] it returns [ErrAway].
func (r *Runtime) StopContainer(ctx context.Context, id string, timeoutSeconds int64) error {
	returned := r.stopCalled(id, timeoutSeconds)
	ctx, cancel, isAway := r.limit(ctx)
	defer cancel()
	err := ErrAway
	if !isAway {
		err = r.stop(ctx, id, timeoutSeconds)
	}
	if errors.Is(context.Cause(ctx), ErrAway) && err != nil {
		err = ErrAway
	}
	returned(err)
	return err
}

// stop is StopContainer of a runtime that is there.
func (r *Runtime) stop(ctx context.Context, id string, timeoutSeconds int64) error {
	r.mu.Lock()
	c, forgiving := r.containers[id], r.forgiving
	r.mu.Unlock()
	switch {
	case c != nil:
		return c.stop(ctx, timeoutSeconds, r.released)
	case forgiving:
		return nil
	default:
		return errUnknown(id)
	}
}

// RunInContainer runs a command with the container's [Script.Exec], for at most timeout if
// that is above 0. For a container that has exited it returns [ErrContainerExited], and for
// an unknown one an error that wraps [lifecycle.ErrContainerNotFound].
func (r *Runtime) RunInContainer(ctx context.Context, id string, cmd []string, timeout time.Duration) ([]byte, error) {
	r.execCalled(id, cmd, timeout)
	ctx, cancel, isAway := r.limit(ctx)
	defer cancel()
	c := r.find(id)
	switch {
	case isAway:
		return nil, ErrAway
	case c == nil:
		return nil, errUnknown(id)
	default:
		return c.exec(ctx, cmd, timeout)
	}
}

// find returns the container with an ID, nil if it is unknown.
func (r *Runtime) find(id string) *container {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.containers[id]
}

// errUnknown returns the error for an ID that no container has.
func errUnknown(id string) error {
	return fmt.Errorf("failed to find container %q: %w", id, lifecycle.ErrContainerNotFound)
}
