package lifecycletest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubegrace/kubegrace/internal/podkey"
	"github.com/kubegrace/kubegrace/internal/times"
	"github.com/kubegrace/kubegrace/lifecycle"
)

// ErrScripted is the error of a scripted failure.
var ErrScripted = errors.New("the script fails this stop")

// errContainerExited is the error of a command whose container has exited.
var errContainerExited = errors.New("container has exited")

var (
	_ lifecycle.Runtime       = (*Runtime)(nil)
	_ lifecycle.CommandRunner = (*Runtime)(nil)
	_ lifecycle.ExitWatcher   = (*Runtime)(nil)
)

// Runtime is a fake container runtime whose containers follow a [Script]. It implements
// [lifecycle.Runtime], [lifecycle.CommandRunner] and [lifecycle.ExitWatcher]. Create one with
// [NewRuntime].
type Runtime struct {
	records
	absence

	mu         sync.Mutex // guards the fields below; not held while a call waits
	containers map[string]*container
	pods       map[types.UID][]*container // the same containers, in the order of their starts
	lists      Lists
	listsSetAt time.Time     // when lists was set; polls are counted from this time
	released   chan struct{} // closed by Release; ends the calls that hang
}

// NewRuntime returns a runtime without containers. In a test with a testing/synctest bubble, call it in the
// bubble: if a call of a runtime that was made outside hangs ([Script].HangStops, [Lists].Hang), the bubble's
// clock stops, and so the test hangs.
func NewRuntime() *Runtime {
	return &Runtime{
		containers: map[string]*container{}, pods: map[types.UID][]*container{},
		listsSetAt: time.Now(), released: make(chan struct{}),
	}
}

// Start starts a container of a pod, and returns it with the current time as its Began. It replaces
// a container with the same ID, which exits if it still runs. The pod is identified by its UID, or by
// its namespace and name if it has none.
func (r *Runtime) Start(pod *v1.Pod, name, id string, script Script) lifecycle.Container {
	r.Remove(id)
	c := run(podkey.Of(pod), lifecycle.Container{Name: name, ID: id, Began: time.Now()}, script, &r.records)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.containers[id] = c
	r.pods[c.pod] = append(r.pods[c.pod], c)
	return c.listed
}

// StartContainer starts a container after [Script.StartTakes].
// Call it in the function passed to [lifecycle.Terminator.Start]. If ctx ends first, there is no
// container, and the error wraps the cause of ctx.
func (r *Runtime) StartContainer(ctx context.Context, pod *v1.Pod, name, id string, script Script) error {
	if script.StartIgnoresContext {
		ctx = context.WithoutCancel(ctx)
	}
	if err := times.Sleep(ctx, script.StartTakes); err != nil {
		return fmt.Errorf("failed to start container %q: %w", id, err)
	}
	r.Start(pod, name, id, script)
	return nil
}

// Exit makes a container exit by itself. It does nothing if the container is unknown or has
// exited.
func (r *Runtime) Exit(id string) {
	if c := r.find(id); c != nil {
		c.end(ByItself)
	}
}

// ExitCode returns the exit code of a container. exited is false if it runs or is unknown.
func (r *Runtime) ExitCode(id string) (code int32, exited bool) {
	if c := r.find(id); c != nil {
		return c.exitCode()
	}
	return 0, false
}

// Remove makes a container exit, if it runs, and removes it. Its records stay.
func (r *Runtime) Remove(id string) {
	r.Exit(id)
	r.mu.Lock()
	defer r.mu.Unlock()
	c := r.containers[id]
	if c == nil {
		return
	}
	delete(r.containers, id)
	r.pods[c.pod] = slices.DeleteFunc(r.pods[c.pod], func(other *container) bool { return other == c })
	if len(r.pods[c.pod]) == 0 {
		delete(r.pods, c.pod)
	}
}

// Exited implements [lifecycle.ExitWatcher]. The channel of a removed container is closed. For an
// unknown ID it is nil.
func (r *Runtime) Exited(id string) <-chan struct{} {
	if c := r.find(id); c != nil {
		return c.exited.Done()
	}
	wasRemoved := slices.ContainsFunc(r.Exits(), func(e Exit) bool { return e.ID == id })
	if !wasRemoved {
		return nil
	}
	closed := make(chan struct{})
	close(closed)
	return closed
}

// Release ends all hanging StopContainer and Running calls with [ErrScripted]. Later calls do
// not hang.
func (r *Runtime) Release() {
	r.mu.Lock()
	defer r.mu.Unlock()
	select {
	case <-r.released: // Release was called before
	default:
		close(r.released)
	}
}

// StopContainer implements [lifecycle.Runtime]. It sends the stop signal and kills the container
// after timeoutSeconds; with 0 or less it kills immediately. If ctx ends first, it returns the
// error of ctx and does not kill. For an unknown container the error wraps
// [lifecycle.ErrContainerNotFound].
func (r *Runtime) StopContainer(ctx context.Context, id string, timeoutSeconds int64) error {
	recordResult := r.stopCalled(id, timeoutSeconds)
	ctx, cancel, isAway := r.endWhenAway(ctx)
	defer cancel()
	var err error
	switch c := r.find(id); {
	case isAway:
		err = ErrAway
	case c == nil:
		err = errUnknown(id)
	default:
		err = c.stop(ctx, timeoutSeconds, r.released)
	}
	if errors.Is(context.Cause(ctx), ErrAway) && err != nil { // the runtime became unavailable during the call
		err = ErrAway
	}
	recordResult(err)
	return err
}

// RunInContainer implements [lifecycle.CommandRunner] with the container's [Script].Exec. A timeout
// of 0 or less means none. For an exited container it returns an error, and for an unknown one an error
// that wraps [lifecycle.ErrContainerNotFound].
func (r *Runtime) RunInContainer(ctx context.Context, id string, cmd []string, timeout time.Duration) ([]byte, error) {
	r.execCalled(id, cmd)
	ctx, cancel, isAway := r.endWhenAway(ctx)
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

// find returns the container with an ID, or nil.
func (r *Runtime) find(id string) *container {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.containers[id]
}

// errUnknown returns the error for an unknown ID.
func errUnknown(id string) error {
	return fmt.Errorf("failed to find container %q: %w", id, lifecycle.ErrContainerNotFound)
}
