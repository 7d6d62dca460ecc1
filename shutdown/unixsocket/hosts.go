package unixsocket

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/kubegrace/kubegrace/shutdown/source"
)

const (
	// maxWaiting is how many connections may wait until the locks are closed. Further connections get an error.
	maxWaiting = 64
	// pendingFor is how long an announced shutdown stays pending after the time at which the host should have
	// shut down. After that it counts as failed. systemd forces a power off after the same time.
	pendingFor = 30 * time.Minute
)

// hosts has the announced shutdown, the number of locks, and the waiting connections, for all sessions
// of a Source.
type hosts struct {
	delay time.Duration // Options.Delay

	mu        sync.Mutex // guards the fields below; never held while anything is read or written
	lockCount int
	announced *announcement // nil: none
	waiting   []net.Conn    // the connections that get a reply when all locks are closed
}

// announcement is the newest announced shutdown.
type announcement struct {
	event       source.Event
	shutsDownAt time.Time // when the host shuts down at the latest; zero: when the locks are closed
}

// announce records a shutdown in place of the one that was announced earlier. waits says whether the host waits from now
// on until all locks are closed. If it does not wait, it gets the reply now:
//
//   - If no lock is held, the reply is "released".
//   - If too many hosts wait, the reply is an error, but the shutdown counts.
//
// The host shuts down at the event's deadline at the latest. If there is none, it waits for Options.Delay, if that is
// set.
func (h *hosts) announce(event source.Event, host net.Conn) (waits bool, reply string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.announced = &announcement{event: event, shutsDownAt: event.Deadline}
	if event.Deadline.IsZero() && h.delay > 0 {
		h.announced.shutsDownAt = time.Now().Add(h.delay)
	}
	switch {
	case h.lockCount == 0:
		h.setReleased()
		return false, "released"
	case slices.Contains(h.waiting, host): // the host waits already
	case len(h.waiting) >= maxWaiting:
		return false, "error: too many connections wait for the reply"
	default:
		h.waiting = append(h.waiting, host)
	}
	return true, ""
}

// setReleased records that no lock is held any more: a host that has announced a shutdown shuts down now, not at its
// deadline. The caller holds the mutex.
func (h *hosts) setReleased() {
	a, now := h.announced, time.Now()
	if a == nil { // no shutdown was announced
		return
	}
	if isLater := a.shutsDownAt.IsZero() || a.shutsDownAt.After(now); isLater {
		a.shutsDownAt = now
	}
}

// setAnnounced replaces the announcement, which may be nil, and returns the previous one.
func (h *hosts) setAnnounced(a *announcement) (previous *announcement) {
	h.mu.Lock()
	defer h.mu.Unlock()
	previous, h.announced = h.announced, a
	return previous
}

// pending returns the announced shutdown. It returns nil without an error if that shutdown has failed: the host still
// runs half an hour after the time at which it should have shut down. If none was announced, the error wraps
// [errors.ErrUnsupported].
func (h *hosts) pending() (*source.Event, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	a := h.announced
	if a == nil {
		return nil, fmt.Errorf("no shutdown was announced, and the host cannot be asked: %w", errors.ErrUnsupported)
	}
	isTimeKnown := !a.shutsDownAt.IsZero()
	if hasFailed := isTimeKnown && time.Since(a.shutsDownAt) >= pendingFor; hasFailed {
		return nil, nil
	}
	copied := a.event
	return &copied, nil
}

// takeWaiting removes and returns the waiting connections, so that the caller replies to each once.
func (h *hosts) takeWaiting() (taken []net.Conn) {
	h.mu.Lock()
	defer h.mu.Unlock()
	taken, h.waiting = h.waiting, nil
	return taken
}

// addLock counts a new lock. Hosts that announce a shutdown now wait for the reply.
func (h *hosts) addLock() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.lockCount++
}

// removeLock counts a closed lock. When no lock is held any more, it removes the waiting connections and returns
// them for the reply.
func (h *hosts) removeLock() (released []net.Conn) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.lockCount--
	if h.lockCount > 0 {
		return nil
	}
	h.setReleased()
	released, h.waiting = h.waiting, nil
	return released
}
