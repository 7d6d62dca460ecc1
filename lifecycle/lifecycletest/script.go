package lifecycletest

import (
	"context"
	"time"

	v1 "k8s.io/api/core/v1"
)

// Script says what a container does in its life. The zero value runs until it is
// asked to stop, and then ends at once.
type Script struct {
	// ExitAfterTerm is how long the container takes to end after its first stop
	// signal; 0 or less: it ends at once.
	ExitAfterTerm time.Duration
	// IgnoreTerm makes the container ignore its stop signal: only a kill, or
	// ExitAfter, ends it. ExitAfterTerm is then without effect.
	IgnoreTerm bool
	// ExitAfter is how long after its start the container ends by itself; 0 or
	// less: never.
	ExitAfter time.Duration

	// ExitCode is the container's where it ends by itself or by its stop signal; one
	// that is killed has 137.
	ExitCode int32
	// StopSignal is sent by StopContainer before it kills; "" is SIGTERM.
	StopSignal v1.Signal

	// StartTakes is how long [Runtime.StartContainer] takes to bring it up; 0 or less:
	// it does so at once.
	StartTakes time.Duration
	// StartDeaf makes a start ignore its context: the container comes up all the same.
	StartDeaf bool
	// StartErr makes the start fail with it, after StartTakes; nil: it succeeds.
	StartErr error

	// HangStops is how many StopContainer calls hang before the others are
	// served; negative: all. A hung call sends no signal and ends with its context.
	HangStops int
	// HangDeaf makes hung calls ignore their context: they end with
	// [Runtime.Release] only, as those of a runtime that is stuck in the kernel.
	HangDeaf bool
	// FailStops is how many StopContainer calls, after those that hang, fail
	// with StopErr and send no signal; negative: all.
	FailStops int
	// StopErr is the error of a failed stop; nil: [ErrScripted].
	StopErr error

	// Exec runs the command of an exec hook and gives its output; nil: every
	// command succeeds at once without output. ctx ends with the caller's, at
	// the call's timeout, and when the container exits. Exec may ignore it, to play
	// a runtime that does not hear a cancellation.
	Exec func(ctx context.Context, cmd []string) ([]byte, error)
}
