package shutdown

import (
	"sync"
	"sync/atomic"
)

// readySignal has the channel that Ready returns. The channel is closed after the first attempt to get the inhibitor lock
// and the first attempt to lock the state folder, whether or not they succeeded.
type readySignal struct {
	closed chan struct{} // the channel
	close  func()        // closes it; may be called again
	// Call hostTried after an attempt to get the inhibitor lock, and folderTried after an attempt to lock the state
	// folder. Only the first call of each counts.
	hostTried, folderTried func()
}

// newReadySignal returns a signal whose channel is closed when both hostTried and folderTried have been called.
func newReadySignal() readySignal {
	closed := make(chan struct{})
	closeOnce := sync.OnceFunc(func() { close(closed) })
	var tried atomic.Int32
	count := func() {
		if tried.Add(1) == 2 {
			closeOnce()
		}
	}
	return readySignal{closed: closed, close: closeOnce, hostTried: sync.OnceFunc(count), folderTried: sync.OnceFunc(count)}
}
