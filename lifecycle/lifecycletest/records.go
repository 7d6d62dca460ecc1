package lifecycletest

import (
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
)

// Stop is one StopContainer call.
type Stop struct {
	ID             string
	TimeoutSeconds int64     // as it was asked
	At             time.Time // when it was asked
	Returned       time.Time // when it was answered; zero: it is still blocked
	Err            error     // its answer; nil also while it is blocked
}

// Exec is one RunInContainer call.
type Exec struct {
	ID      string
	Cmd     []string
	Timeout time.Duration // as it was asked, 0: none
	At      time.Time     // when it was asked
}

// ExitCause says what ended a container.
type ExitCause string

const (
	// ByItself means that its script ended it, or [Runtime.Exit] did.
	ByItself ExitCause = "itself"
	// ByTerm means that it obeyed its stop signal.
	ByTerm ExitCause = "TERM"
	// ByKill means that it was killed: it had outlived the timeout of its stop.
	ByKill ExitCause = "KILL"
)

// Exit is the end of one container.
type Exit struct {
	ID   string
	By   ExitCause
	Code int32 // [Script.ExitCode], or 137 for one that was killed
	At   time.Time
}

// Signal is one signal that a container was sent.
type Signal struct {
	ID     string
	Signal v1.Signal // [Script.StopSignal], or SIGKILL
	At     time.Time
}

// Stops are the StopContainer calls so far, in the order they came in.
func (r *Runtime) Stops() []Stop {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.stops)
}

// Execs are the RunInContainer calls so far, in the order they came in.
func (r *Runtime) Execs() []Exec {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.execs)
}

// Signals are those that were sent so far, in their order. A container that has exited
// is sent none.
func (r *Runtime) Signals() []Signal {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.signals)
}

// ExitCode is how a container has ended; false: it runs, or is unknown.
func (r *Runtime) ExitCode(id string) (code int32, exited bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	c := r.containers[id]
	if c == nil || !c.gone {
		return 0, false
	}
	return c.code, true
}

// Exits are the containers that have ended, in the order they did.
func (r *Runtime) Exits() []Exit {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.exits)
}
