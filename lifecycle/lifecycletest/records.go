package lifecycletest

import (
	"slices"
	"time"
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
	ID string
	By ExitCause
	At time.Time
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

// Exits are the containers that have ended, in the order they did.
func (r *Runtime) Exits() []Exit {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.exits)
}
