//go:build unix

package statefile_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kubegrace/kubegrace/shutdown/internal/statefile"
)

func TestRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state")
	_, err := statefile.Read(path)
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.NoError(t, os.WriteFile(path, []byte("{}"), 0o644))
	data, err := statefile.Read(path)
	require.NoError(t, err)
	require.Equal(t, "{}", string(data))
}

// Files that another user may have planted are neither read nor waited for.
func TestReadRefuses(t *testing.T) {
	for text, plant := range map[string]func(path string) error{
		"is no regular file": func(path string) error { return syscall.Mkfifo(path, 0o600) },
		"too many levels":    func(path string) error { return os.Symlink("/dev/zero", path) },
		"may be written to by others: its mode is -rw-rw-rw-": func(path string) error {
			return errors.Join(os.WriteFile(path, []byte("{}"), 0o600), os.Chmod(path, 0o666))
		},
		"67108865 bytes, 67108864 are the most": func(path string) error {
			return errors.Join(os.WriteFile(path, nil, 0o600), os.Truncate(path, statefile.MaxSize+1))
		},
		"belongs to neither this user nor root": func(path string) error {
			return errors.Join(os.WriteFile(path, []byte("{}"), 0o600), os.Chown(path, 12345, -1))
		},
		"is no regular file but d": func(path string) error { return os.Mkdir(path, 0o700) },
	} {
		t.Run(text, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "state")
			if err := plant(path); errors.Is(err, fs.ErrPermission) {
				t.Skip("only root can give files away")
			} else {
				require.NoError(t, err)
			}
			_, err := statefile.Read(path)
			require.ErrorContains(t, err, text)
			require.ErrorContains(t, err, path)
		})
	}
}

func TestCheckFolder(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, statefile.CheckFolder(dir))
	require.NoError(t, os.Chmod(dir, 0o777))
	require.ErrorContains(t, statefile.CheckFolder(dir), "may be written to by others: its mode is -rwxrwxrwx")
	require.NoError(t, os.Chmod(dir, 0o777|fs.ModeSticky))
	require.NoError(t, statefile.CheckFolder(dir), "as /tmp is: nobody replaces the file of another")
	require.ErrorIs(t, statefile.CheckFolder(dir+"/absent"), fs.ErrNotExist)
}

func TestRemoveLeftovers(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"state", ".tmp-state123", ".tmp-state9", ".tmp-other1", "tmp-state1"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), nil, 0o600))
	}
	require.NoError(t, statefile.RemoveLeftovers(dir, "state"))
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	var left []string
	for _, entry := range entries {
		left = append(left, entry.Name())
	}
	require.Equal(t, []string{".tmp-other1", "state", "tmp-state1"}, left)
	require.ErrorIs(t, statefile.RemoveLeftovers(dir+"/absent", "state"), fs.ErrNotExist)
}

// Only one can lock a folder; the next one gets the lock as soon as it is free.
func TestLock(t *testing.T) {
	dir := t.TempDir()
	first, err := statefile.Lock(t.Context(), dir)
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	_, err = statefile.Lock(ctx, dir)
	require.ErrorContains(t, err, "another agent uses it")
	require.ErrorContains(t, err, dir)
	got := make(chan error, 1)
	go func() {
		second, err := statefile.Lock(t.Context(), dir)
		if err == nil {
			err = second.Close()
		}
		got <- err
	}()
	require.NoError(t, first.Close())
	require.NoError(t, <-got)
	_, err = statefile.Lock(t.Context(), filepath.Join(dir, "absent"))
	require.ErrorIs(t, err, fs.ErrNotExist)
}

// A planted lock file is not opened.
func TestLockFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, ".graceful_node_shutdown_lock")
	for text, plant := range map[string]func() error{
		"too many levels":            func() error { return os.Symlink(filepath.Join(dir, "elsewhere"), path) },
		"is no regular file but p":   func() error { return syscall.Mkfifo(path, 0o600) },
		"is a directory":             func() error { return os.Mkdir(path, 0o700) },
		"neither this user nor root": func() error { return errors.Join(os.WriteFile(path, nil, 0o600), os.Chown(path, 12345, -1)) },
	} {
		err := plant()
		if errors.Is(err, fs.ErrPermission) {
			continue // only root can give files away
		}
		require.NoError(t, err)
		_, err = statefile.Lock(t.Context(), dir)
		require.ErrorContains(t, err, text)
		require.NoError(t, os.Remove(path))
	}
	require.NoFileExists(t, filepath.Join(dir, "elsewhere"))
}
