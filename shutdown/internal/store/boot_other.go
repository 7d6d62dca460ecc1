//go:build !linux

package store

import (
	"errors"
	"fmt"
	"time"
)

// systemBoot always fails on this system: it cannot tell one boot from another, so that nothing
// can be resumed.
func systemBoot() (id string, since time.Duration, err error) {
	return "", 0, fmt.Errorf("failed to read the boot id: %w", errors.ErrUnsupported)
}
