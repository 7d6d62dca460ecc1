package document_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/examples/internal/document"
)

func TestReadTakesRegularFilesOnly(t *testing.T) {
	dir := t.TempDir()
	in := func(name string) string { return filepath.Join(dir, name) }
	require.NoError(t, syscall.Mkfifo(in("fifo"), 0o600))
	require.NoError(t, os.Symlink("fifo", in("link")))
	require.NoError(t, os.Symlink("/dev/zero", in("zero")))
	require.NoError(t, os.Mkdir(in("folder"), 0o700))
	require.NoError(t, os.WriteFile(in("large"), nil, 0o600))
	require.NoError(t, os.Truncate(in("large"), document.MaxSize+1))
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

// Files below /proc say that they have no bytes.
func TestReadIsBoundWhateverTheSizeSaid(t *testing.T) {
	text, err := document.ReadFile("/proc/self/status")
	require.NoError(t, err)
	require.Contains(t, string(text), "Name:")
}

// A file of another kind may have any number of unknown fields.
func TestUnknownFieldsAreNamedUpToALimit(t *testing.T) {
	docs, err := document.Parse("f", []byte("spec: {containers: ["+strings.Repeat("{imag: x}, ", 20)+"]}"))
	require.NoError(t, err)
	_, err = document.Decode[v1.Pod](docs[0])
	require.Error(t, err)
	lines := strings.Split(err.Error(), "\n")
	require.Len(t, lines, 11)
	require.Equal(t, `f: spec.containers[9].imag: Invalid value: "x": unknown field`, lines[9])
	require.Equal(t, "f: and 10 more like these", lines[10])
}
