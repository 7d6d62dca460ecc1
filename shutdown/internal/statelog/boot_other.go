//go:build !linux

package statelog

import (
	"errors"
	"time"
)

// systemBoot always fails: without a boot ID nothing can be resumed.
func systemBoot() (string, time.Duration, error) { return "", 0, errors.ErrUnsupported }
