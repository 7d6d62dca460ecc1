//go:build unix && go1.25

package statelog_test

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

	"github.com/kubegrace/kubegrace/internal/call"
	"github.com/kubegrace/kubegrace/shutdown/internal/statelog"
)

// In place of the state log and of the kubelet's file (timesFile), another user may have planted something else: a pipe, which would
// block a reader, a symbolic link, or a file that is writable by others, too large, or another user's. It is not read. The next
// write replaces it; if it is a link, its target stays as it is.
func TestForeignFilesAreNotRead(t *testing.T) {
	target := t.TempDir() // its log is the target of the symbolic link
	writeLog(t, target, entries(shutdown(1)))
	whole := logText(t, target)
	for text, plant := range map[string]func(path string) error{
		"it is not a regular file but p---------": func(path string) error { return syscall.Mkfifo(path, 0o600) },
		"too many levels of symbolic links":       func(path string) error { return os.Symlink(logPath(target), path) },
		"others may write to it: its mode is -rw-rw-rw-": func(path string) error {
			return errors.Join(os.WriteFile(path, whole, 0o600), os.Chmod(path, 0o666))
		},
		"it has 268435457 bytes, more than 268435456": func(path string) error {
			return errors.Join(os.WriteFile(path, nil, 0o600), os.Truncate(path, 256<<20+1))
		},
		"it belongs to neither this user nor root": func(path string) error {
			return errors.Join(os.WriteFile(path, whole, 0o600), os.Chown(path, 12345, -1))
		},
	} {
		t.Run(text, func(t *testing.T) {
			dir := t.TempDir()
			for _, name := range []string{logFile, timesFile} {
				if err := plant(filepath.Join(dir, name)); errors.Is(err, fs.ErrPermission) {
					t.Skip("only root can give files away")
				} else {
					require.NoError(t, err)
				}
			}
			l := openLog(t, options(dir))
			found := contentsOf(t, l)
			require.Zero(t, found.Entries)
			require.Zero(t, found.Times)
			require.Len(t, found.Errs, 2)
			require.ErrorContains(t, found.Errs[0], "shutdown state "+logPath(dir)+" is not usable: ")
			require.ErrorContains(t, found.Errs[1], "shutdown state "+filepath.Join(dir, timesFile)+" is not usable: ")
			require.ErrorContains(t, found.Errs[0], text)
			require.ErrorContains(t, found.Errs[1], text)
			_, err := statelog.ReadFile(dir)
			require.EqualError(t, err, found.Errs[0].Error())

			requireWritten(t, l.Append(entries(shutdown(2))))
			requireWritten(t, l.SaveTimes(statelog.Times{StartTime: at(1)}))
			closeLog(t, l)
			require.Equal(t, statelog.Contents{Entries: entries(shutdown(2)), SameBoot: true, Times: statelog.Times{StartTime: at(1)}}, nextAgentReads(t, dir))
			require.Equal(t, whole, logText(t, target), "the target of the link is not changed")
		})
	}
}

// Only the agent's user and root can read the log, because preStop hooks may have secrets. This also holds for the first write over a
// log that everybody could read.
func TestOnlyTheOwnerCanReadTheLog(t *testing.T) {
	dir := t.TempDir()
	writeLog(t, dir, entries(shutdown(1)))
	require.NoError(t, os.Chmod(logPath(dir), 0o644))
	writeLog(t, dir, entriesOfPods(pod("web")))
	info, err := os.Stat(logPath(dir))
	require.NoError(t, err)
	require.Equal(t, fs.FileMode(0o600), info.Mode())
}

// An agent keeps the folder locked for another 3 s. The next agent can read the log before; its Lock and its writes wait
// until the folder is free.
func TestOnlyOneAgentLocksTheFolder(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		first, second := openLog(t, options(dir)), statelog.New(options(dir))
		requireWritten(t, first.Append(entries(shutdown(1), signalled("a"))))
		written := second.Append(entriesOfPods(signalled("b")))
		require.Equal(t, entries(shutdown(1), signalled("a")), contentsOf(t, second).Entries, "it reads the log without the lock")

		begun := time.Now()
		time.AfterFunc(3*time.Second, func() {
			first.Append(entriesOfPods(ended("a")))
			_ = first.Close(time.Now())
		})
		warning, err := second.Lock(t.Context())
		require.NoError(t, errors.Join(warning, err))
		require.InDelta(t, 3*time.Second, time.Since(begun), float64(100*time.Millisecond))
		requireWritten(t, written)
		require.Equal(t, entries(shutdown(1), ended("a")), contentsOf(t, second).Entries, "as the first agent has left it")
		closeLog(t, second)
		require.Equal(t, entries(shutdown(1), ended("a"), signalled("b")), nextAgentReads(t, dir).Entries)
	})
}

// Another agent keeps the folder locked, so Lock fails when its context ends, after 10 s. What was to be written before and
// after that failure is dropped. Those calls return no error, because Lock has returned it.
func TestNothingIsStoredWithoutTheLock(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		first, second := openLog(t, options(dir)), statelog.New(options(dir))
		before, times := second.Append(entries(shutdown(2))), second.SaveTimes(statelog.Times{StartTime: at(2)})
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		begun := time.Now()
		_, err := second.Lock(ctx)
		require.EqualError(t, err, "failed to use the state folder, nothing is stored: failed to lock folder "+dir+": another agent uses it")
		require.Equal(t, 10*time.Second, time.Since(begun))
		for _, future := range []*call.Future[struct{}]{before, times, second.Begin(entries(shutdown(3))), second.Sync()} {
			requireWritten(t, future)
		}
		require.Equal(t, statelog.Contents{}, contentsOf(t, second))

		closeLog(t, first)
		closeLog(t, second)
		require.NoFileExists(t, logPath(dir))
		require.NoFileExists(t, filepath.Join(dir, timesFile))
	})
}

// Lock waits for another agent when Close is called. Close does not wait: Lock fails, and the closed log cannot lock the
// folder any more. When the other agent ends, a third one can lock it.
func TestCloseEndsTheWaitForTheLock(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		first, second := openLog(t, options(dir)), statelog.New(options(dir))
		written := second.Append(entries(shutdown(1)))
		lockErr := make(chan error, 1)
		go func() {
			_, err := second.Lock(t.Context())
			lockErr <- err
		}()
		synctest.Wait()
		begun := time.Now()
		require.NoError(t, second.Close(begun.Add(time.Minute)))
		require.Zero(t, time.Since(begun))
		require.ErrorContains(t, <-lockErr, "another agent uses it")
		requireWritten(t, written)

		closeLog(t, first)
		_, err := second.Lock(t.Context())
		require.ErrorContains(t, err, "the state log is closed")
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		third := statelog.New(options(dir))
		_, err = third.Lock(ctx)
		require.NoError(t, err, "the second log holds no lock")
		require.NoError(t, third.Close(time.Now()))
		require.NoFileExists(t, logPath(dir))
	})
}

// Lock removes the temporary files that interrupted writes have left, and no other files.
func TestLockRemovesTemporaryFiles(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{".tmp-graceful_node_shutdown_123", ".tmp-" + timesFile + "9", ".tmp-other1", "tmp-" + logFile} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), nil, 0o600))
	}
	closeLog(t, openLog(t, options(dir)))
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	var left []string
	for _, entry := range entries {
		left = append(left, entry.Name())
	}
	require.Equal(t, []string{".graceful_node_shutdown_lock", ".tmp-other1", "tmp-" + logFile}, left)
}

// Other users may write to the folder, and could replace its files. Lock warns of that, but uses the folder.
func TestAWorldWritableFolderIsAWarning(t *testing.T) {
	for mode, text := range map[fs.FileMode]string{
		0o755:                 "",
		0o777:                 "others may write to it: its mode is -rwxrwxrwx; they could replace its files, but the folder is used",
		0o777 | fs.ModeSticky: "", // like /tmp: others cannot replace files
		0o775:                 "others may write to it: its mode is -rwxrwxr-x",
	} {
		dir := t.TempDir()
		require.NoError(t, os.Chmod(dir, mode))
		l := statelog.New(options(dir))
		warning, err := l.Lock(t.Context())
		require.NoError(t, err)
		if text == "" {
			require.NoError(t, warning)
		} else {
			require.ErrorContains(t, warning, text)
		}
		requireWritten(t, l.Append(entries(shutdown(1))))
		closeLog(t, l)
	}
}

// The lock file may have been planted by another user: a symbolic link, a pipe, a directory, or a file of that user. Lock
// fails, and nothing is stored. The target of the link is not created.
func TestAForeignLockFileIsRefused(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, ".graceful_node_shutdown_lock")
	for text, plant := range map[string]func() error{
		"too many levels of symbolic links":        func() error { return os.Symlink(filepath.Join(dir, "elsewhere"), path) },
		"it is not a regular file but p---------":  func() error { return syscall.Mkfifo(path, 0o600) },
		"is a directory":                           func() error { return os.Mkdir(path, 0o700) },
		"it belongs to neither this user nor root": func() error { return errors.Join(os.WriteFile(path, nil, 0o600), os.Chown(path, 12345, -1)) },
	} {
		err := plant()
		if errors.Is(err, fs.ErrPermission) {
			continue // only root can give files away
		}
		require.NoError(t, err)
		l := statelog.New(options(dir))
		_, err = l.Lock(t.Context())
		require.ErrorContains(t, err, text)
		requireWritten(t, l.Append(entries(shutdown(1))))
		require.NoFileExists(t, logPath(dir))
		require.NoError(t, os.Remove(path))
	}
	require.NoFileExists(t, filepath.Join(dir, "elsewhere"))
}
