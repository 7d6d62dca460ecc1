package shutdown

import "time"

// NewManagerOn is NewManager on another boot and another clock since the boot.
func NewManagerOn(opts Options, boot func() (id string, since time.Duration, err error)) (*Manager, error) {
	return newManager(opts, boot)
}
