package lifecycletest

import (
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
)

// Stop is one StopContainer call.
type Stop struct {
	ID             string
	TimeoutSeconds int64     // the argument
	At             time.Time // when it was called
	Returned       time.Time // when it returned; zero: it has not
	Err            error     // its result; nil also if it has not returned
}

// Exec is one RunInContainer call.
type Exec struct {
	ID      string
	Cmd     []string
	Timeout time.Duration // the argument; 0: none
	At      time.Time     // when it was called
}

// ExitCause says what ended a container.
type ExitCause string

const (
	// ByItself means that it exited without a signal: by [Script.ExitAfter],
	// [Runtime.Exit], [Runtime.Remove] or a second [Runtime.Start].
	ByItself ExitCause = "itself"
	// ByTerm means that its stop signal ended it.
	ByTerm ExitCause = "TERM"
	// ByKill means that it was killed, at the end of the timeout of its stop.
	ByKill ExitCause = "KILL"
)

// Exit is the end of one container.
type Exit struct {
	ID   string
	By   ExitCause
	Code int32 // [Script.ExitCode], or 137 if it was killed
	At   time.Time
}

// Signal is one signal that a container was sent.
type Signal struct {
	ID     string
	Signal v1.Signal // [Script.StopSignal], or SIGKILL
	At     time.Time
}

// Stops returns the StopContainer calls so far, in order.
func (r *Runtime) Stops() []Stop {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.stops)
}

// Execs returns the RunInContainer calls so far, in order.
func (r *Runtime) Execs() []Exec {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.execs)
}

// Signals returns the signals that were sent so far, in order. A container that has exited
// is sent no signal.
func (r *Runtime) Signals() []Signal {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.signals)
}

// ExitCode returns the exit code of a container, false if it runs or is unknown.
func (r *Runtime) ExitCode(id string) (code int32, exited bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	c := r.containers[id]
	if c == nil || !c.gone {
		return 0, false
	}
	return c.code, true
}

// Exits returns the exits of containers so far, in order.
func (r *Runtime) Exits() []Exit {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.exits)
}
