//go:build !linux

package statelog

import (
	"errors"
	"time"
)

// systemBoot always fails on this system: it cannot tell one boot from another, so that nothing
// can be resumed.
func systemBoot() (string, time.Duration, error) { return "", 0, errors.ErrUnsupported }
