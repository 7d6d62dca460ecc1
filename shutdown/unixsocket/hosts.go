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
	// maxWaiting is how many connections may wait for the locks.
	maxWaiting = 64
	// stayedAfter is how long after it went on a host that is still up has stayed up. systemd
	// forces a power off that has not ended after the same time.
	stayedAfter = 30 * time.Minute
)

// hosts has what the hosts have announced, the locks, and the hosts that wait for them. It is the
// same for all sessions of a Source.
type hosts struct {
	delay time.Duration // Options.Delay

	mu        sync.Mutex // guards the fields below; never held while anything is read or written
	lockCount int
	announced *announcement // nil: no host has announced a shutdown
	waiting   []net.Conn
}

// announcement is a shutdown that was announced last.
type announcement struct {
	event  source.Event
	goesOn time.Time // when the host shuts down at the latest; zero: when the locks are closed
}

// announce records a shutdown and the host that waits for the locks. If there is nothing to
// wait for, waits is false and line is the reply.
func (h *hosts) announce(event source.Event, host net.Conn) (waits bool, line string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.announced = &announcement{event: event, goesOn: event.Deadline}
	if event.Deadline.IsZero() && h.delay > 0 {
		h.announced.goesOn = time.Now().Add(h.delay)
	}
	switch {
	case h.lockCount == 0:
		h.released()
		return false, "released"
	case slices.Contains(h.waiting, host):
	case len(h.waiting) >= maxWaiting:
		return false, "error: too many connections wait for the reply"
	default:
		h.waiting = append(h.waiting, host)
	}
	return true, ""
}

// released records that the hosts go on. The caller holds the mutex.
func (h *hosts) released() {
	now := time.Now()
	if a := h.announced; a != nil && (a.goesOn.IsZero() || a.goesOn.After(now)) {
		a.goesOn = now
	}
}

// setAnnounced replaces the announcement, nil being none, and returns the previous one.
func (h *hosts) setAnnounced(a *announcement) (before *announcement) {
	h.mu.Lock()
	defer h.mu.Unlock()
	before, h.announced = h.announced, a
	return before
}

// pending is Pending of a session. A host that is up long after it went on has not shut down.
func (h *hosts) pending() (*source.Event, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	a := h.announced
	if a == nil {
		return nil, fmt.Errorf("a host behind a socket does not say what is under way: %w", errors.ErrUnsupported)
	}
	if !a.goesOn.IsZero() && time.Since(a.goesOn) >= stayedAfter {
		return nil, nil // it has not
	}
	copied := a.event
	return &copied, nil
}

// takeWaiting removes and returns the hosts that wait.
func (h *hosts) takeWaiting() (taken []net.Conn) {
	h.mu.Lock()
	defer h.mu.Unlock()
	taken, h.waiting = h.waiting, nil
	return taken
}

// addLock counts a new lock.
func (h *hosts) addLock() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.lockCount++
}

// removeLock discounts a lock. If it was the last one, it removes and returns the hosts
// that wait.
func (h *hosts) removeLock() (taken []net.Conn) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.lockCount--; h.lockCount > 0 {
		return nil
	}
	h.released()
	taken, h.waiting = h.waiting, nil
	return taken
}
