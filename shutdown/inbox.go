package shutdown

import "sync/atomic"

// The phases of a manager, in order.
const (
	phaseIdle int32 = iota
	phaseRunning
	phaseOver
)

// inbox passes messages to the event loop.
type inbox struct {
	messages chan message  // only the event loop receives
	stopped  chan struct{} // closed when the loop has ended
	phase    atomic.Int32
}

// post passes a message to the loop. It returns false if the loop has ended.
func (i *inbox) post(msg message) bool {
	select {
	case i.messages <- msg:
		return true
	case <-i.stopped:
		return false
	}
}

// postAndWait has the loop run a message and waits for it. Outside Run it does nothing.
func (i *inbox) postAndWait(msg message) {
	if i.phase.Load() != phaseRunning {
		return
	}
	heard := make(chan struct{})
	if i.post(func(l *loop) { defer close(heard); msg(l) }) {
		<-heard
	}
}
