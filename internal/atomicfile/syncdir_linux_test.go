package atomicfile

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// The file system of /proc cannot sync a directory, which is no error.
func TestSyncDirWhereDirectoriesCannotBeSynced(t *testing.T) {
	require.NoError(t, SyncDir("/proc/self"))
}
