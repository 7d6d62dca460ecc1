package lifecycletest

import (
	"context"
	"time"
)

// Script describes the behaviour of a container. With the zero value it runs until its stop signal
// and then exits immediately.
type Script struct {
	// ExitAfterTerm is the time from the first stop signal to the exit; 0 or less: it exits
	// immediately.
	ExitAfterTerm time.Duration
	// IgnoreTerm makes the container ignore its stop signal. ExitAfterTerm has no effect then.
	IgnoreTerm bool
	// ExitAfter is the time from the start until the container exits by itself; 0 or less:
	// never.
	ExitAfter time.Duration

	// ExitCode is the exit code, except after a kill, when it is 137.
	ExitCode int32

	// StartTakes is the duration of [Runtime.StartContainer]; 0 or less: none.
	StartTakes time.Duration
	// StartIgnoresContext makes StartContainer ignore its context: the container starts anyway.
	StartIgnoresContext bool

	// HangStops is how many StopContainer calls hang, counted from the first; negative: all. A hanging
	// call sends no signal and returns when its context ends.
	HangStops int
	// HangIgnoresContext makes hanging calls ignore their context. They end only with
	// [Runtime.Release].
	HangIgnoresContext bool
	// FailStops is how many of the next StopContainer calls, after those that hang, fail with [ErrScripted]
	// and send no signal; negative: all.
	FailStops int
	// StopReturnsEarly makes StopContainer return nil immediately after it has sent its signal. The
	// container is still killed at the end of the timeout.
	StopReturnsEarly bool
	// StopReturnsLate is the time from the exit until StopContainer returns; 0 or less: none.
	StopReturnsLate time.Duration

	// Exec runs the command of an exec hook and returns its output. If it is nil, every command
	// succeeds without output. Its ctx ends with the caller's, at the timeout of the call, and when the
	// container exits. Exec may ignore it, like a command that hangs.
	Exec func(ctx context.Context, cmd []string) ([]byte, error)
}
