package lifecycletest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/lifecycle"
)

// ErrScripted is the error of a StopContainer that fails because its [Script]
// says so and names no other error.
var ErrScripted = errors.New("the script fails this stop")

// ErrContainerExited is what a command gets whose container has exited, before
// it or under it.
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
	mu         sync.Mutex // guards all below; never held while anything waits
	containers map[string]*container
	stops      []Stop
	execs      []Exec
	exits      []Exit
	signals    []Signal
	windows    []window // in which it is away
	forgiving  bool     // the stop of an unknown container succeeds
	released   chan struct{}
}

// container is one run of a container. Its runtime's mutex guards what changes.
type container struct {
	id     string
	script Script
	exited chan struct{} // closed once it has exited
	gone   bool          // exited is closed
	code   int32         // its exit code, once it is gone
	calls  int           // StopContainer calls so far
	termed bool          // the stop signal was sent
	bySelf *time.Timer   // nil: it does not end by itself
	byTerm *time.Timer   // nil: it has no signal to end by
}

// NewRuntime makes a runtime without containers.
func NewRuntime() *Runtime {
	return &Runtime{containers: map[string]*container{}, released: make(chan struct{})}
}

// Start runs a container. An ID that has run before runs again, as a new
// container; one that still runs is ended first, by itself.
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

// StartContainer runs a container as its script says that it is started: after
// [Script.StartTakes], or not at all. It gives the ID, as a function for
// [lifecycle.Terminator.Start] does. A start whose context ends, or that fails, leaves no
// container; the error of one whose context ends says so, and wraps
// [lifecycle.ErrContainerNotFound].
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
		return "", s.StartErr
	}
	r.Start(id, s)
	return id, nil
}

// AnswerNilForUnknown has StopContainer succeed for an unknown container, as
// containerd 2 does; without it there is an error.
func (r *Runtime) AnswerNilForUnknown() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.forgiving = true
}

// Exit ends a container by itself, now. Of an unknown or an exited one it does
// nothing.
func (r *Runtime) Exit(id string) {
	if c := r.find(id); c != nil {
		r.end(c, ByItself)
	}
}

// Remove ends a container by itself, if it runs, and forgets it: from then on it
// is unknown. What was recorded of it stays.
func (r *Runtime) Remove(id string) {
	r.Exit(id)
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.containers, id)
}

// Exited is closed once the container has exited; of an unknown container it is
// closed.
func (r *Runtime) Exited(id string) <-chan struct{} {
	if c := r.find(id); c != nil {
		return c.exited
	}
	closed := make(chan struct{})
	close(closed)
	return closed
}

// Release ends all StopContainer calls that hang, with [ErrScripted], and lets
// none hang from now on.
func (r *Runtime) Release() {
	r.mu.Lock()
	defer r.mu.Unlock()
	select {
	case <-r.released:
	default:
		close(r.released)
	}
}

// find gives the container of an ID, nil if it is unknown.
func (r *Runtime) find(id string) *container {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.containers[id]
}

// end ends a container, unless it has ended.
func (r *Runtime) end(c *container, by ExitCause) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.endLocked(c, by)
}

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
