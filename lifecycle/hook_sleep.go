package lifecycle

import (
	"context"
	"errors"
	"time"

	"github.com/kubegrace/kubegrace/graceperiod"
	"github.com/kubegrace/kubegrace/metrics"
)

// sleepTolerance is how much may lack of a sleep that counts as whole. A sleep may
// be as long as the grace period (KEP-3960), whose deadline was set a moment
// before the sleep began; in the kubelet such a sleep is not cut either.
const sleepTolerance = 100 * time.Millisecond

// sleepHook lets time pass (KEP-3960).
type sleepHook struct {
	on      bool // PodLifecycleSleepAction
	metrics *metrics.Lifecycle
}

// sleepCutError is a sleep that was ended before its time; it wraps why. The
// text is the kubelet's.
type sleepCutError struct{ cause error }

func (e *sleepCutError) Error() string { return "container terminated before sleep hook finished" }

func (e *sleepCutError) Unwrap() error { return e.cause }

// sleepOf gives what sleeps in a runner of this package, nil for another.
func sleepOf(hooks HandlerRunner) *sleepHook {
	if own, ok := hooks.(*handlerRunner); ok {
		return &own.sleep
	}
	return nil
}

// run sleeps until the seconds are over, or ctx is, or exited is closed: then it gives
// [ContainerExited]. Zero, a negative number and a feature gate that is off sleep not
// at all and are no failure. Nothing is called around the select that could be spared:
// what a sleeping hook takes in memory is, for the most part, its stack.
func (h *sleepHook) run(ctx context.Context, exited <-chan struct{}, seconds int64) error {
	if !h.on || seconds <= 0 {
		return nil
	}
	began := time.Now()
	select {
	case <-time.After(graceperiod.Duration(seconds)):
		return nil
	case <-exited:
		h.metrics.SleepEndedByExit()
		return ContainerExited
	case <-ctx.Done():
		return h.cut(ctx, graceperiod.Duration(seconds)-time.Since(began))
	}
}

// cut says what a sleep is that ctx ended when some of it was left. That its
// container has exited is no failure: there is no one left to sleep for
// (k/k#134338).
func (h *sleepHook) cut(ctx context.Context, left time.Duration) error {
	if left < sleepTolerance {
		return nil
	}
	cause := context.Cause(ctx)
	if errors.Is(cause, ContainerExited) {
		h.metrics.SleepEndedByExit()
		return nil
	}
	h.metrics.SleepTerminatedEarly()
	return &sleepCutError{cause: cause}
}
