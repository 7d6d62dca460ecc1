package unixsocket

import (
	"maps"
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
	waiting   map[net.Conn]struct{}
}

// announcement is a shutdown that was announced last.
type announcement struct {
	event  source.Event
	goesOn time.Time // when the host goes on at the latest; zero: when the locks are closed
}

func newHosts(delay time.Duration) *hosts {
	return &hosts{delay: delay, waiting: map[net.Conn]struct{}{}}
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
	_, known := h.waiting[host]
	switch {
	case h.lockCount == 0:
		h.released()
		return false, "released"
	case len(h.waiting) >= maxWaiting && !known:
		return false, "error: too many connections wait for the reply"
	}
	h.waiting[host] = struct{}{}
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

// pending returns the shutdown that is under way, or nil. heard is false if no host has
// announced one. A host that is up long after it went on has not shut down.
func (h *hosts) pending() (event *source.Event, heard bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	a := h.announced
	if a == nil {
		return nil, false
	}
	if !a.goesOn.IsZero() && time.Since(a.goesOn) >= stayedAfter {
		return nil, true
	}
	copied := a.event
	return &copied, true
}

// takeWaiting removes and returns the hosts that wait.
func (h *hosts) takeWaiting() []net.Conn {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.takeWaitingLocked()
}

// addLock counts a new lock.
func (h *hosts) addLock() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.lockCount++
}

// removeLock discounts a lock. If it was the last one, it removes and returns the hosts
// that wait.
func (h *hosts) removeLock() []net.Conn {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.lockCount--; h.lockCount > 0 {
		return nil
	}
	h.released()
	return h.takeWaitingLocked()
}

// takeWaitingLocked removes and returns the hosts that wait. The caller holds the mutex.
func (h *hosts) takeWaitingLocked() []net.Conn {
	taken := slices.Collect(maps.Keys(h.waiting))
	clear(h.waiting)
	return taken
}
