//go:build !windows

package atomicfile

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestWriteAndCloseOfAClosedFile(t *testing.T) {
	temp, err := os.CreateTemp(t.TempDir(), "x")
	require.NoError(t, err)
	require.NoError(t, temp.Close())
	require.ErrorIs(t, writeAndClose(temp, func(io.Writer) error { return nil }), os.ErrClosed)
}

func TestSyncDir(t *testing.T) {
	require.NoError(t, SyncDir(t.TempDir()))
	require.ErrorIs(t, SyncDir(filepath.Join(t.TempDir(), "absent")), os.ErrNotExist)
}

func TestCannotSync(t *testing.T) {
	wrapped := func(err error) error { return fmt.Errorf("sync: %w", err) }
	require.True(t, cannotSync(wrapped(syscall.EINVAL)))
	require.True(t, cannotSync(wrapped(syscall.ENOTSUP)))
	require.False(t, cannotSync(wrapped(syscall.EIO)), "an I/O error is a failure")
	require.False(t, cannotSync(nil))
}
