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

// The temporary file is closed already. writeAndClose returns the error of the close, although the function that writes
// the content has returned none.
func TestWriteAndCloseOfAClosedFile(t *testing.T) {
	temp, err := os.CreateTemp(t.TempDir(), "x")
	require.NoError(t, err)
	require.NoError(t, temp.Close())
	require.ErrorIs(t, writeAndClose(temp, kubeletsMode, func(io.Writer) error { return nil }), os.ErrClosed)
}

// SyncDir syncs an existing directory, and fails for one that does not exist.
func TestSyncDir(t *testing.T) {
	require.NoError(t, SyncDir(t.TempDir()))
	require.ErrorIs(t, SyncDir(filepath.Join(t.TempDir(), "absent")), os.ErrNotExist)
}

// Some file systems cannot sync directories, and return EINVAL or ENOTSUP. That is no failure; an I/O error is one.
func TestCannotSync(t *testing.T) {
	wrapped := func(err error) error { return fmt.Errorf("sync: %w", err) }
	require.True(t, cannotSync(wrapped(syscall.EINVAL)))
	require.True(t, cannotSync(wrapped(syscall.ENOTSUP)))
	require.False(t, cannotSync(wrapped(syscall.EIO)), "an I/O error is a failure")
	require.False(t, cannotSync(nil))
}
