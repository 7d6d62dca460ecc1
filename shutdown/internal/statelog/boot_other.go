//go:build !linux

package statelog

import (
	"errors"
	"time"
)

// systemBoot always fails, because it knows no boot ID of this system. Nothing is stored or resumed then.
func systemBoot() (string, time.Duration, error) { return "", 0, errors.ErrUnsupported }
