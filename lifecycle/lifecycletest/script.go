package lifecycletest

import (
	"context"
	"time"

	v1 "k8s.io/api/core/v1"
)

// Script says what a container does. With the zero value it runs until its stop signal and
// then ends at once.
type Script struct {
	// ExitAfterTerm is how long the container takes to end after its first stop
	// signal; 0 or less: it ends at once.
	ExitAfterTerm time.Duration
	// IgnoreTerm makes the container ignore its stop signal: only a kill, or
	// ExitAfter, ends it. ExitAfterTerm has no effect then.
	IgnoreTerm bool
	// ExitAfter is how long after its start the container ends by itself; 0 or
	// less: never.
	ExitAfter time.Duration

	// ExitCode is the exit code if the container ends by itself or by its stop signal;
	// if it is killed, the exit code is 137.
	ExitCode int32
	// StopSignal is sent by StopContainer before it kills; "" is SIGTERM.
	StopSignal v1.Signal

	// StartTakes is how long [Runtime.StartContainer] takes; 0 or less: no time.
	StartTakes time.Duration
	// StartIgnoresContext makes StartContainer ignore its context: the container is started all
	// the same.
	StartIgnoresContext bool
	// StartErr is the error of StartContainer, after StartTakes; nil: it succeeds.
	StartErr error

	// HangStops is how many StopContainer calls hang, the first ones; negative: all. A
	// call that hangs sends no signal and returns when its context ends.
	HangStops int
	// HangIgnoresContext makes calls that hang ignore their context, as in a runtime that is
	// stuck in the kernel. They end only with [Runtime.Release].
	HangIgnoresContext bool
	// FailStops is how many StopContainer calls, after those that hang, fail with
	// StopErr and send no signal; negative: all.
	FailStops int
	// StopErr is the error of a StopContainer that fails; nil: [ErrScripted].
	StopErr error
	// StopReturnsEarly makes StopContainer return nil as soon as it has sent its signal. It still
	// kills at the end of its timeout.
	StopReturnsEarly bool
	// StopReturnsLate is how long after the end of the container StopContainer returns; 0 or less:
	// at once.
	StopReturnsLate time.Duration

	// Exec runs the command of an exec hook and returns its output; nil: every command
	// succeeds at once without output. ctx ends with the caller's, at the timeout of the
	// call, and when the container exits. Exec may ignore it, like a runtime that does
	// not react to a cancellation.
	Exec func(ctx context.Context, cmd []string) ([]byte, error)
}
