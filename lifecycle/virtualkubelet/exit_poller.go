package virtualkubelet

import (
	"slices"
	"sync"
	"time"
)

// exits tells when a container has exited: the runtime itself or, for a container of which it
// gives no channel, the lists of a [RunningLister]. It is a [lifecycle.ExitWatcher].
type exits struct {
	runtime Runtime
	lister  RunningLister // nil: nothing is polled

	mu     sync.Mutex
	polled map[string]polledExit // by container ID
}

// polledExit is a container whose exit is found by polling.
type polledExit struct {
	since  time.Time // lists that were asked for before do not count
	exited chan struct{}
}

func newExits(runtime Runtime) *exits {
	lister, _ := runtime.(RunningLister)
	return &exits{runtime: runtime, lister: lister, polled: map[string]polledExit{}}
}

// Exited returns a channel that is closed when a container has exited, or nil if nobody can
// tell.
func (e *exits) Exited(id string) <-chan struct{} {
	if exited := e.runtime.Exited(id); exited != nil {
		return exited
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.polled[id].exited
}

// expect adds a container that runs.
func (e *exits) expect(id string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.lister != nil {
		e.polled[id] = polledExit{since: time.Now(), exited: make(chan struct{})}
	}
}

// forget removes a container.
func (e *exits) forget(id string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.polled, id)
}

// take closes the channels of the containers that a list lacks.
func (e *exits) take(running []string, asked time.Time) {
	slices.Sort(running)
	e.mu.Lock()
	defer e.mu.Unlock()
	for id, polled := range e.polled {
		if _, runs := slices.BinarySearch(running, id); !runs && polled.since.Before(asked) {
			closeOnce(polled.exited)
		}
	}
}
