package lifecycletest

import (
	"slices"
	"sync"
	"time"
)

// Stop is one StopContainer call.
type Stop struct {
	ID             string
	TimeoutSeconds int64     // the argument
	At             time.Time // when it was called
	Err            error     // the result; nil if it has not returned
}

// Exec is one RunInContainer call.
type Exec struct {
	ID  string
	Cmd []string
}

// ExitCause is the cause of a container's exit.
type ExitCause string

const (
	// ByItself is an exit without a signal: by [Script.ExitAfter], [Runtime.Exit],
	// [Runtime.Remove] or a second [Runtime.Start].
	ByItself ExitCause = "itself"
	// ByTerm is an exit after the stop signal.
	ByTerm ExitCause = "TERM"
	// ByKill is an exit by SIGKILL at the end of a StopContainer call's timeout.
	ByKill ExitCause = "KILL"
)

// Exit is the exit of one container.
type Exit struct {
	ID   string
	By   ExitCause
	Code int32 // [Script.ExitCode], or 137 if it was killed
	At   time.Time
}

// records are the calls of a runtime, and the exits of its containers.
type records struct {
	mu    sync.Mutex // guards the fields below
	stops []Stop
	execs []Exec
	exits []Exit
}

// Stops returns the StopContainer calls in order.
func (r *records) Stops() []Stop {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.stops)
}

// Execs returns the RunInContainer calls in order.
func (r *records) Execs() []Exec {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.execs)
}

// Exits returns the exits in order.
func (r *records) Exits() []Exit {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.exits)
}

// stopCalled records a StopContainer call that begins. recordResult adds its result when it returns.
func (r *records) stopCalled(id string, timeoutSeconds int64) (recordResult func(error)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	i := len(r.stops)
	r.stops = append(r.stops, Stop{ID: id, TimeoutSeconds: timeoutSeconds, At: time.Now()})
	return func(err error) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.stops[i].Err = err
	}
}

// execCalled records a RunInContainer call.
func (r *records) execCalled(id string, cmd []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.execs = append(r.execs, Exec{ID: id, Cmd: slices.Clone(cmd)})
}

// exited records the exit of a container.
func (r *records) exited(id string, by ExitCause, code int32) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.exits = append(r.exits, Exit{ID: id, By: by, Code: code, At: time.Now()})
}
