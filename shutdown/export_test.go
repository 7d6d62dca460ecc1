package shutdown

import (
	"time"

	"github.com/kubegrace/kubegrace/shutdown/internal/statelog"
)

// NewManagerOn returns a manager, like NewManager, for which boot tells the boot ID and the time since the boot.
func NewManagerOn(opts Options, boot func() (id string, since time.Duration, err error)) (*Manager, error) {
	return NewManagerWith(opts, boot, nil)
}

// NewManagerWith returns a manager on a boot, like NewManagerOn. before is called before each disk operation, which fails
// with its error.
func NewManagerWith(opts Options, boot func() (id string, since time.Duration, err error), before func(step, path string) error) (*Manager, error) {
	return newManager(opts, statelog.Options{Boot: boot, Before: before})
}
