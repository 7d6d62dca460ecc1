package host

import (
	"math/rand/v2"
	"sync/atomic"
	"time"
)

// A host that waits for too little is asked again after firstStep, doubling to lastStep.
const (
	firstStep = time.Second
	lastStep  = 30 * time.Second
)

// delay is how long the host waits. If pods lose time with that, or it is not known, the host is
// asked again. Only the goroutine of Run uses it, but for granted.
type delay struct {
	granted atomic.Pointer[time.Duration] // as the host said last; nil: it has never said it
	failed  bool                          // the last request failed
	unmet   error                         // pods lose time; wraps a *source.DelayCappedError; nil: they do not
	step    time.Duration                 // of the next pause; 0: firstStep
}

// nextPause returns the pause before the host is asked again, between half the step and the whole
// step.
func (d *delay) nextPause() time.Duration {
	step := max(d.step, firstStep)
	d.step = min(2*step, lastStep)
	return step/2 + rand.N(step/2+1)
}
