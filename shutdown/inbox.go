package shutdown

import "sync/atomic"

// The phases of a manager: it is run once.
const (
	phaseIdle int32 = iota
	phaseRunning
	phaseOver
)

// inbox is how the event loop is reached.
type inbox struct {
	messages chan message  // read by the event loop alone
	stopped  chan struct{} // closed when it is read no more
	phase    atomic.Int32
}

// post hands a message to the loop; false: it reads no more.
func (i *inbox) post(msg message) bool {
	select {
	case i.messages <- msg:
		return true
	case <-i.stopped:
		return false
	}
}

// ask has the loop do something and waits for it; without Run nothing is done.
func (i *inbox) ask(msg message) {
	if i.phase.Load() != phaseRunning {
		return
	}
	heard := make(chan struct{})
	if i.post(func(l *loop) { defer close(heard); msg(l) }) {
		<-heard
	}
}
