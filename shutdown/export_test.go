package shutdown

import (
	"io"
	"time"
)

// NewManagerOn is NewManager on another boot and another clock since the boot.
func NewManagerOn(opts Options, boot func() (id string, since time.Duration, err error)) (*Manager, error) {
	return newManager(opts, boot)
}

// StoreWith has the state files written by another function, before Run.
func (m *Manager) StoreWith(write func(path string, encode func(io.Writer) error) error) {
	m.state.ledger.write = write
}
