package shutdown

import (
	"time"

	"github.com/kubegrace/kubegrace/shutdown/internal/statelog"
)

// NewManagerOn returns a manager, as NewManager does. It gets the boot ID and the time since the boot from boot.
func NewManagerOn(opts Options, boot func() (id string, since time.Duration, err error)) (*Manager, error) {
	return NewManagerWith(opts, boot, nil)
}

// NewManagerWith returns a manager, as NewManager does. boot returns the ID of the boot and the time since it began. before is
// called before each disk operation (a step of statelog.Options.Before), which fails if before returns an error; nil: none fails.
func NewManagerWith(opts Options, boot func() (id string, since time.Duration, err error), before func(step, path string) error) (*Manager, error) {
	return newManager(opts, statelog.Options{Boot: boot, Before: before})
}
