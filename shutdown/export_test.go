package shutdown

import (
	"io"
	"time"
)

// NewManagerOn is NewManager on another boot and another clock since the boot.
func NewManagerOn(opts Options, boot func() (id string, since time.Duration, err error)) (*Manager, error) {
	return newManager(opts, boot, nil)
}

// NewManagerWith is NewManagerOn with another function that writes the state files.
func NewManagerWith(opts Options, boot func() (id string, since time.Duration, err error), write func(path string, encode func(io.Writer) error) error) (*Manager, error) {
	return newManager(opts, boot, write)
}

// UnendedKills returns the number of kills of earlier shutdowns that are under way.
func (m *Manager) UnendedKills() (n int) {
	m.ledger.unended.mu.Lock()
	defer m.ledger.unended.mu.Unlock()
	for _, k := range m.ledger.unended.kills {
		if k.UnderWay() {
			n++
		}
	}
	return n
}

// UnacknowledgedStatuses returns the number of final statuses that are owed.
func (m *Manager) UnacknowledgedStatuses() int { return m.ledger.outbox.Unacknowledged() }
