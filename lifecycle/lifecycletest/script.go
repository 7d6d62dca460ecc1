package lifecycletest

import (
	"context"
	"time"
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
