//go:build !linux

package statelog

import (
	"errors"
	"time"
)

// systemBoot always fails, because this system has no boot ID that is known here. Nothing is stored or
// resumed then.
func systemBoot() (string, time.Duration, error) { return "", 0, errors.ErrUnsupported }
