//go:build unix && go1.25

package store_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kubegrace/kubegrace/shutdown/internal/store"
)

// Files that another user may have planted are neither read nor waited for. The next write
// replaces them.
func TestPlantedFiles(t *testing.T) {
	whole := []byte(`{"version":3,"bootID":"one","report":{}}`)
	for text, plant := range map[string]func(path string) error{
		"it is no regular file but p": func(path string) error { return syscall.Mkfifo(path, 0o600) },
		"too many levels":             func(path string) error { return os.Symlink("/dev/zero", path) },
		"may be written to by others: its mode is -rw-rw-rw-": func(path string) error {
			return errors.Join(os.WriteFile(path, whole, 0o600), os.Chmod(path, 0o666))
		},
		"it has 268435457 bytes, 268435456 are the most": func(path string) error {
			return errors.Join(os.WriteFile(path, nil, 0o600), os.Truncate(path, store.MaxSize+1))
		},
		"it belongs to neither this user nor root": func(path string) error {
			return errors.Join(os.WriteFile(path, whole, 0o600), os.Chown(path, 12345, -1))
		},
	} {
		t.Run(text, func(t *testing.T) {
			dir := t.TempDir()
			for _, name := range []string{store.RecordFile, store.TimesFile} {
				if err := plant(filepath.Join(dir, name)); errors.Is(err, fs.ErrPermission) {
					t.Skip("only root can give files away")
				} else {
					require.NoError(t, err)
				}
			}
			s := locked(t, options(dir))
			found := read(t, s)
			require.Nil(t, found.Record)
			require.Zero(t, found.Times)
			require.Len(t, found.Errs, 2)
			require.ErrorContains(t, found.Errs[0], "shutdown state "+filepath.Join(dir, store.TimesFile)+" is not usable: ")
			require.ErrorContains(t, found.Errs[1], "shutdown state "+filepath.Join(dir, store.RecordFile)+" is not usable: ")
			require.ErrorContains(t, found.Errs[0], text)
			require.ErrorContains(t, found.Errs[1], text)
			_, err := store.ReadRecord(dir)
			require.EqualError(t, err, found.Errs[1].Error())

			save(t, s, example())
			require.NoError(t, await(t, s.SaveTimes(store.Times{StartTime: at(1)})))
			require.Empty(t, read(t, s).Errs)
		})
	}
}

// A folder can be used by one agent at a time. The next one gets it as soon as it is free; its
// writes wait until then.
func TestLockThatIsHeld(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		first, second := locked(t, options(dir)), store.New(options(dir))
		save(t, first, example())
		saved := second.Save(0, content(store.Record{T0: 2}))
		begun := time.Now()
		time.AfterFunc(3*time.Second, func() { _ = first.Close(time.Now()) })
		warning, err := second.Lock(t.Context())
		require.NoError(t, errors.Join(warning, err))
		require.InDelta(t, 3*time.Second, time.Since(begun), float64(100*time.Millisecond))
		require.NoError(t, await(t, saved))
		require.Equal(t, time.Duration(2), read(t, second).Record.T0)
		require.NoError(t, second.Close(time.Now().Add(time.Second)))
	})
}

// Without the lock nothing is stored, neither what was saved before nor what is saved afterwards.
func TestLockThatIsNotHad(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		first, second := locked(t, options(dir)), store.New(options(dir))
		before := second.Save(0, content(store.Record{T0: 2}))
		times := second.SaveTimes(store.Times{StartTime: at(2)})
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		begun := time.Now()
		_, err := second.Lock(ctx)
		require.EqualError(t, err, "failed to use the state folder, nothing is stored: failed to lock folder "+dir+": another agent uses it")
		require.Equal(t, 10*time.Second, time.Since(begun))
		require.NoError(t, await(t, before))
		require.NoError(t, await(t, times))
		require.NoError(t, await(t, second.Save(0, content(store.Record{T0: 3}))))
		require.NoError(t, first.Close(time.Now().Add(time.Second)))
		require.NoError(t, second.Close(time.Now().Add(time.Second)))
		require.Nil(t, read(t, first).Record)
		require.NoFileExists(t, filepath.Join(dir, store.TimesFile))
	})
}

// Close ends a wait for the lock.
func TestCloseBeforeTheLock(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		first, second := locked(t, options(dir)), store.New(options(dir))
		saved := second.Save(time.Hour, content(store.Record{}))
		gotLock := make(chan error, 1)
		go func() {
			_, err := second.Lock(t.Context())
			gotLock <- err
		}()
		synctest.Wait()
		begun := time.Now()
		require.NoError(t, second.Close(begun.Add(time.Minute)))
		require.Zero(t, time.Since(begun))
		require.ErrorContains(t, <-gotLock, "another agent uses it")
		require.NoError(t, await(t, saved))
		require.NoError(t, first.Close(time.Now().Add(time.Second)))
		_, err := second.Lock(t.Context())
		require.ErrorContains(t, err, "the store is closed")
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		third := store.New(options(dir))
		_, err = third.Lock(ctx)
		require.NoError(t, err, "the second one keeps no lock")
		require.NoError(t, third.Close(time.Now()))
		require.NoFileExists(t, filepath.Join(dir, store.RecordFile))
	})
}

// Lock removes the temporary files of interrupted writes, and no others, before it lets a write
// begin.
func TestLeftovers(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{".tmp-" + store.RecordFile + "123", ".tmp-" + store.TimesFile + "9", ".tmp-other1", "tmp-" + store.RecordFile} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), nil, 0o600))
	}
	s := locked(t, options(dir))
	require.NoError(t, s.Close(time.Now().Add(time.Minute)))
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	var left []string
	for _, entry := range entries {
		left = append(left, entry.Name())
	}
	require.Equal(t, []string{".graceful_node_shutdown_lock", ".tmp-other1", "tmp-" + store.RecordFile}, left)
}

// A folder that others may write to is used, with a warning.
func TestFolderOfOthers(t *testing.T) {
	for mode, text := range map[fs.FileMode]string{
		0o755:                 "",
		0o777:                 "may be written to by others: its mode is -rwxrwxrwx",
		0o777 | fs.ModeSticky: "", // as /tmp is: nobody replaces the file of another
		0o775:                 "may be written to by others: its mode is -rwxrwxr-x",
	} {
		dir := t.TempDir()
		require.NoError(t, os.Chmod(dir, mode))
		s := store.New(options(dir))
		warning, err := s.Lock(t.Context())
		require.NoError(t, err)
		if text == "" {
			require.NoError(t, warning)
		} else {
			require.ErrorContains(t, warning, text)
		}
		save(t, s, example())
		require.NoError(t, s.Close(time.Now().Add(time.Minute)))
	}
}

// A planted lock file is not opened, and nothing is stored.
func TestPlantedLock(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, ".graceful_node_shutdown_lock")
	for text, plant := range map[string]func() error{
		"too many levels":             func() error { return os.Symlink(filepath.Join(dir, "elsewhere"), path) },
		"it is no regular file but p": func() error { return syscall.Mkfifo(path, 0o600) },
		"is a directory":              func() error { return os.Mkdir(path, 0o700) },
		"neither this user nor root":  func() error { return errors.Join(os.WriteFile(path, nil, 0o600), os.Chown(path, 12345, -1)) },
	} {
		err := plant()
		if errors.Is(err, fs.ErrPermission) {
			continue // only root can give files away
		}
		require.NoError(t, err)
		s := store.New(options(dir))
		_, err = s.Lock(t.Context())
		require.ErrorContains(t, err, text)
		save(t, s, example())
		require.NoFileExists(t, filepath.Join(dir, store.RecordFile))
		require.NoError(t, os.Remove(path))
	}
	require.NoFileExists(t, filepath.Join(dir, "elsewhere"))
}
