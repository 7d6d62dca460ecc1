//go:build !linux

package logind

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"

	"github.com/kubegrace/kubegrace/shutdown/source"
)

// Source cannot be made on this system.
type Source struct{}

var (
	_ source.Source  = (*Source)(nil)
	_ source.Adopter = (*Source)(nil)
)

// New fails with an error that wraps [errors.ErrUnsupported].
func New(Options) (*Source, error) { return nil, unsupported() }

// Available fails with an error that wraps [errors.ErrUnsupported].
func (*Source) Available(context.Context) error { return unsupported() }

// Adopt returns nil.
func (*Source) Adopt() io.Closer { return nil }

// RemoveDropIn fails with an error that wraps [errors.ErrUnsupported].
func (*Source) RemoveDropIn(context.Context) error { return unsupported() }

// Connect fails with an error that wraps [errors.ErrUnsupported].
func (*Source) Connect(context.Context) (source.Session, error) { return nil, unsupported() }

// unsupported returns the error of all functions.
func unsupported() error {
	return fmt.Errorf("there is no systemd-logind on %s: %w", runtime.GOOS, errors.ErrUnsupported)
}
