package document_test

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kubegrace/kubegrace/examples/internal/document"
)

func TestReadRefusesWhatIsNotARegularFile(t *testing.T) {
	dir := t.TempDir()
	in := func(name string) string { return filepath.Join(dir, name) }
	require.NoError(t, syscall.Mkfifo(in("fifo"), 0o600))
	require.NoError(t, os.Symlink("fifo", in("link")))
	require.NoError(t, os.Symlink("/dev/zero", in("zero")))
	require.NoError(t, os.Mkdir(in("folder"), 0o700))
	require.NoError(t, os.WriteFile(in("large"), nil, 0o600))
	require.NoError(t, os.Truncate(in("large"), document.MaxFileBytes+1))
	for name, want := range map[string]string{
		"fifo":    "is not a regular file but a pipe (FIFO)",
		"link":    "is not a regular file but a pipe (FIFO)",
		"zero":    "is not a regular file but a device",
		"folder":  "is a folder, wanted is a file",
		"large":   "is too large: it has 10485761 bytes or more, and 10485760 (10 MiB) are the limit",
		"missing": "failed to read: no such file or directory",
	} {
		_, err := document.Read(in(name))
		require.EqualError(t, err, in(name)+": "+want)
	}
}

// The size of a file below /proc is 0, whatever it contains.
func TestAFileOfUnknownSizeIsRead(t *testing.T) {
	text, err := document.ReadFile("/proc/self/status")
	require.NoError(t, err)
	require.Contains(t, string(text), "Name:")
}
