//go:build linux

package logind

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// If sending a lock to systemd fails (here nobody listens at the socket), it does not count as stored, and its name is
// free again.
func TestAnUnsentLockIsNotStored(t *testing.T) {
	dir := t.TempDir()
	file, err := os.Create(filepath.Join(dir, "lock"))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, file.Close()) })
	store := &fdStore{socket: filepath.Join(dir, "nobody"), names: map[string]bool{}}
	stored, err := store.keep(file)
	require.ErrorContains(t, err, "store the inhibitor: notify systemd: ")
	require.Nil(t, stored)
	require.Empty(t, store.names, "its name is free again")
}
