//go:build go1.25

package atomicfile_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kubegrace/kubegrace/internal/atomicfile"
)

// names returns the names in a directory, including hidden ones.
func names(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	var all []string
	for _, e := range entries {
		all = append(all, e.Name())
	}
	return all
}

// Write creates a file, and then replaces its content by a shorter one, and by none. No temporary file is left.
func TestWriteCreatesAndReplaces(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "state")
	for _, content := range []string{"first, and a longer one", "second", ""} {
		require.NoError(t, atomicfile.Write(path, []byte(content)))
		got, err := os.ReadFile(path)
		require.NoError(t, err)
		require.Equal(t, content, string(got))
	}
	require.Equal(t, []string{"state"}, names(t, dir), "no temporary file is left")
}

// Write gives a file the mode 0644, even if the old file had another mode.
func TestWriteSetsTheMode(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state")
	require.NoError(t, os.WriteFile(path, []byte("secret"), 0o600))
	require.NoError(t, atomicfile.Write(path, []byte("open")))
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o644), info.Mode())
}

// A reader has opened the file before Write replaces it. The reader reads the old content, because Write does not
// overwrite the old file.
func TestAnOpenReaderReadsTheOldContent(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state")
	require.NoError(t, atomicfile.Write(path, []byte("old")))
	reader, err := os.Open(path)
	require.NoError(t, err)
	require.NoError(t, atomicfile.Write(path, []byte("new")))
	var seen bytes.Buffer
	_, err = seen.ReadFrom(reader)
	require.NoError(t, err)
	require.NoError(t, reader.Close())
	require.Equal(t, "old", seen.String())
}

// 16 writers concurrently write the file, once each. The content of each is one digit, its own, repeated 4096 times. In
// the end the file has the whole content of one writer, and no temporary file is left.
func TestConcurrentWritesDoNotMix(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "state")
	var writers sync.WaitGroup
	for i := range 16 {
		writers.Go(func() {
			if err := atomicfile.Write(path, []byte(strings.Repeat(fmt.Sprintf("%x", i), 4096))); err != nil {
				t.Error(err)
			}
		})
	}
	writers.Wait()
	got, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, strings.Repeat(string(got[:1]), 4096), string(got))
	require.Equal(t, []string{"state"}, names(t, dir))
}

// The path is only a name, so Write makes the file in the working directory. Its temporary file must be there too: from the
// system's directory for temporary files, which may be on another file system, it could not be renamed.
func TestWriteInTheWorkingDirectory(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	require.NoError(t, atomicfile.Write("state", []byte("here")))
	require.Equal(t, []string{"state"}, names(t, dir))
}

// The directory of the file does not exist. Write does not create it, and returns an error that names the file.
func TestWriteWithoutADirectory(t *testing.T) {
	path := filepath.Join(t.TempDir(), "absent", "state")
	err := atomicfile.Write(path, nil)
	require.ErrorIs(t, err, os.ErrNotExist)
	require.ErrorContains(t, err, path)
}

// A directory has the name of the file, so that Write cannot replace it. Write returns an error, and leaves no
// temporary file.
func TestWriteThatCannotRenameChangesNothing(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "state")
	require.NoError(t, os.Mkdir(path, 0o755))
	require.ErrorContains(t, atomicfile.Write(path, []byte("new")), "failed to replace "+path)
	require.Equal(t, []string{"state"}, names(t, dir), "the temporary file is removed")
}

// The function that writes the content fails after it has written something. The file keeps its old content, and no
// temporary file is left.
func TestReplaceThatFailsKeepsTheOldContent(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "state")
	require.NoError(t, atomicfile.Write(path, []byte("old")))
	err := atomicfile.Replace(path, 0o644, func(w io.Writer) error {
		_, err := w.Write([]byte("new"))
		return errors.Join(err, errors.ErrUnsupported)
	})
	require.ErrorIs(t, err, errors.ErrUnsupported)
	require.ErrorContains(t, err, "failed to write "+path)
	got, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, "old", string(got))
	require.Equal(t, []string{"state"}, names(t, dir), "the temporary file is removed")
}

// BenchmarkWrite writes 4 KB. "plain" does what the kubelet does: it syncs the file but not its directory.
func BenchmarkWrite(b *testing.B) {
	data := bytes.Repeat([]byte("x"), 4096)
	for _, way := range []struct {
		name  string
		write func(path string, data []byte) error
	}{{"plain", plainWrite}, {"kubegrace", atomicfile.Write}} {
		b.Run("way="+way.name, func(b *testing.B) {
			path := filepath.Join(b.TempDir(), "state")
			for b.Loop() {
				if err := way.write(path, data); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// plainWrite replaces a file as the kubelet does: by a temporary file that is synced and renamed.
func plainWrite(path string, data []byte) error {
	temp, err := os.CreateTemp(filepath.Dir(path), ".tmp-"+filepath.Base(path))
	if err != nil {
		return err
	}
	_, writing := temp.Write(data)
	if err := errors.Join(writing, temp.Chmod(0o644), temp.Sync(), temp.Close()); err != nil {
		return err
	}
	return os.Rename(temp.Name(), path)
}
