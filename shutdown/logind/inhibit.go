//go:build linux

package logind

import (
	"context"
	"errors"
	"io"
)

// Inhibit takes the lock.
func (s *session) Inhibit(context.Context) (io.Closer, error) { return nil, errors.ErrUnsupported }
