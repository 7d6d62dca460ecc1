package shutdown

import (
	"sync"
	"sync/atomic"
)

// readySignal has the channel that Ready returns. It is closed once both the inhibitor lock and the lock of
// the state folder have been tried for the first time, whether or not that succeeded.
type readySignal struct {
	closed chan struct{} // the channel
	close  func()        // closes it; may be called again
	// hostTried is called after each attempt to get the inhibitor lock, folderTried after the one to lock the state
	// folder. Only the first call of each counts.
	hostTried, folderTried func()
}

// newReadySignal returns a signal that waits for both attempts.
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
