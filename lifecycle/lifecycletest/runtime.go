package lifecycletest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"

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

// killedCode is the exit code of a process that SIGKILL has ended.
const killedCode = 137

// Runtime is a container runtime whose containers follow a [Script]. It is a
// [lifecycle.Runtime], a [lifecycle.CommandRunner] and a [lifecycle.ExitWatcher].
type Runtime struct {
	mu         sync.Mutex // guards the fields below; not held while anything waits
	containers map[string]*container
	stops      []Stop
	execs      []Exec
	exits      []Exit
	signals    []Signal
	windows    []window // in which the runtime is away
	forgiving  bool     // the stop of an unknown container succeeds
	released   chan struct{}
}

// container is one run of a container. The mutex of the runtime guards the fields that
// change.
type container struct {
	id     string
	script Script
	exited chan struct{} // closed once it has exited
	gone   bool          // it has exited
	code   int32         // the exit code, once it has exited
	calls  int           // StopContainer calls so far
	termed bool          // the stop signal was sent
	bySelf *time.Timer   // ends it by ExitAfter; nil: it does not end by itself
	byTerm *time.Timer   // ends it by ExitAfterTerm; nil: it was sent no signal, or ended at once
}

// NewRuntime makes a runtime without containers.
func NewRuntime() *Runtime {
	return &Runtime{containers: map[string]*container{}, released: make(chan struct{})}
}

// Start runs a container. If a container with this ID has run before, the new one replaces
// it; one that still runs exits first.
func (r *Runtime) Start(id string, s Script) {
	c := &container{id: id, script: s, exited: make(chan struct{})}
	r.mu.Lock()
	defer r.mu.Unlock()
	if old := r.containers[id]; old != nil {
		r.endLocked(old, ByItself)
	}
	r.containers[id] = c
	if s.ExitAfter > 0 {
		c.bySelf = time.AfterFunc(s.ExitAfter, func() { r.end(c, ByItself) })
	}
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
		r.end(c, ByItself)
	}
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
	r.mu.Lock()
	defer r.mu.Unlock()
	if c := r.containers[id]; c != nil {
		return c.exited
	}
	if !slices.ContainsFunc(r.exits, func(e Exit) bool { return e.ID == id }) {
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

// find returns the container with an ID, nil if it is unknown.
func (r *Runtime) find(id string) *container {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.containers[id]
}

// end makes a container exit, unless it has exited.
func (r *Runtime) end(c *container, by ExitCause) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.endLocked(c, by)
}

// endLocked is end with the mutex held.
func (r *Runtime) endLocked(c *container, by ExitCause) {
	if c.gone {
		return
	}
	c.gone = true
	for _, timer := range []*time.Timer{c.bySelf, c.byTerm} {
		if timer != nil {
			timer.Stop()
		}
	}
	c.code = c.script.ExitCode
	if by == ByKill {
		c.code = killedCode
		r.signals = append(r.signals, Signal{ID: c.id, Signal: v1.SIGKILL, At: time.Now()})
	}
	r.exits = append(r.exits, Exit{ID: c.id, By: by, Code: c.code, At: time.Now()})
	close(c.exited)
}
