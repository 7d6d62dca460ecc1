package shutdown

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kubegrace/kubegrace/internal/atomicfile"
)

// A state file that is cut off at any length, or whose end consists of zeros because it was not
// written to the disk, is not used. The error names the file.
func TestStateThatIsTornAnywhere(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, writeTimes(atomicfile.WriteFrom, dir, times{StartTime: at(1), EndTime: at(31)}))
	require.NoError(t, writeProgress(atomicfile.WriteFrom, dir, storedProgress()))
	read := map[string]func() (none bool, err error){
		timesFile:    func() (bool, error) { stored, err := readTimes(dir); return stored == times{}, err },
		progressFile: func() (bool, error) { p, err := readProgress(dir); return p == nil, err },
	}
	for name, read := range read {
		path := filepath.Join(dir, name)
		whole, err := os.ReadFile(path)
		require.NoError(t, err)
		none, err := read()
		require.NoError(t, err)
		require.False(t, none)
		for length := range whole {
			zeros := append(whole[:length:length], make([]byte, len(whole)-length)...)
			for _, torn := range [][]byte{whole[:length], zeros} {
				require.NoError(t, os.WriteFile(path, torn, 0o600))
				none, err := read()
				require.ErrorContains(t, err, path, "%d of %d bytes", length, len(whole))
				require.True(t, none, "%d of %d bytes", length, len(whole))
			}
		}
	}
}
