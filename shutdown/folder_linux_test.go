//go:build go1.25

package shutdown_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/kubegrace/kubegrace/internal/need"
	"github.com/kubegrace/kubegrace/shutdown"
	"github.com/kubegrace/kubegrace/shutdown/shutdowntest"
)

// withMounts is the environment variable of a process that inOwnMounts has started.
const withMounts = "KUBEGRACE_TEST_MOUNTS"

// inOwnMounts runs the test again in a new process with a mount namespace of its own. It
// returns true in that process, and false in the first one when the new process has succeeded.
func inOwnMounts(t *testing.T) bool {
	t.Helper()
	if os.Getenv(withMounts) != "" {
		require.NoError(t, unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""))
		return true
	}
	need.Root(t)
	self, err := os.Executable()
	require.NoError(t, err)
	again := exec.CommandContext(t.Context(), self, "-test.v", "-test.count=1", "-test.run=^"+t.Name()+"$")
	again.Env = append(os.Environ(), withMounts+"=1")
	runtime.LockOSThread() // the kernel kills it when this thread ends
	defer runtime.UnlockOSThread()
	again.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS, Pdeathsig: syscall.SIGKILL}
	out, err := again.CombinedOutput()
	if err != nil || testing.Verbose() {
		t.Logf("with its own mounts:\n%s", out)
	}
	require.NoError(t, err)
	return false
}

// smallFileSystem mounts a file system of 64 KiB and returns its folder.
func smallFileSystem(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, unix.Mount("tmpfs", dir, "tmpfs", 0, "size=64k,mode=0700"))
	t.Cleanup(func() { require.NoError(t, unix.Unmount(dir, unix.MNT_DETACH)) })
	return dir
}

// fillUp writes a file "other" until the folder's file system is full.
func fillUp(t *testing.T, dir string) {
	t.Helper()
	f, err := os.Create(filepath.Join(dir, "other"))
	require.NoError(t, err)
	for err == nil {
		_, err = f.Write(make([]byte, 4096))
	}
	require.ErrorIs(t, err, unix.ENOSPC)
	require.NoError(t, f.Close())
}

func makeReadOnly(t *testing.T, dir string) {
	t.Helper()
	require.NoError(t, unix.Mount("", dir, "", unix.MS_REMOUNT|unix.MS_RDONLY, ""))
}

func requireNoLeftovers(t *testing.T, dir string) {
	t.Helper()
	left, err := filepath.Glob(filepath.Join(dir, ".tmp-*"))
	require.NoError(t, err)
	require.Empty(t, left)
}

// A full or read-only folder does not change what happens to pods. They are admitted, shutdowns
// drain, and each shutdown reports once what it could not store.
func TestFolderThatTakesNothing(t *testing.T) {
	if !inOwnMounts(t) {
		return
	}
	t.Run("full", func(t *testing.T) {
		dir := smallFileSystem(t)
		fillUp(t, dir)
		a := newHostAgent(t, dir)
		require.True(t, a.m.Admit(nil).Admit)
		a.run()
		for n := range int64(2) {
			report := a.shutDownAndCancel()
			require.Len(t, report.Errors, 1)
			require.Contains(t, report.Errors[0], "no space left on device")
			a.log.requireErrors(t, n+1, report.Errors)
		}
		require.NoError(t, a.end())
		requireNoLeftovers(t, dir)
	})
	t.Run("fills up", func(t *testing.T) {
		dir := smallFileSystem(t)
		a := newHostAgent(t, dir)
		a.run()
		require.Empty(t, a.shutDownAndCancel().Errors)
		fillUp(t, dir)
		require.Len(t, a.shutDownAndCancel().Errors, 1)
		require.NoError(t, a.end(), "the file of the cancelled shutdown was removed, which has made space")
		a.log.requireErrors(t, 1, "")
		requireNoLeftovers(t, dir)
		next := newHostAgent(t, dir)
		require.True(t, next.m.Admit(nil).Admit)
		next.run()
		require.Empty(t, next.killer.Kills())
		require.True(t, next.m.Admit(nil).Admit)
		require.NoError(t, os.Remove(filepath.Join(dir, "other")))
		require.Empty(t, next.shutDownAndCancel().Errors, "it is as before")
	})
	t.Run("read-only", func(t *testing.T) {
		dir := smallFileSystem(t)
		makeReadOnly(t, dir)
		a := newHostAgent(t, dir)
		require.True(t, a.m.Admit(nil).Admit)
		a.run()
		report := a.shutDownAndCancel()
		require.Len(t, report.Errors, 1)
		require.Contains(t, report.Errors[0], "nothing is stored")
		require.Contains(t, report.Errors[0], "read-only file system")
		require.Empty(t, a.shutDownAndCancel().Errors, "reported once")
		a.log.requireErrors(t, 1, report.Errors)
		require.NoError(t, a.end())
	})
}

// A shutdown that is cancelled while its folder is full is not stored as one that goes on.
func TestCancelledWhereTheFolderIsFull(t *testing.T) {
	if !inOwnMounts(t) {
		return
	}
	dir := smallFileSystem(t)
	path := filepath.Join(dir, progressFile)
	a := newHostAgent(t, dir)
	a.killer.Default = shutdowntest.Behaviour{Hangs: true, Deaf: true}
	a.run()
	a.host.Announce(shutdown.Event{})
	written := func() bool { return fileContains(path, `"signalled":true`) } // a write under way would free room afterwards
	require.Eventually(t, written, 10*time.Second, time.Millisecond)
	fillUp(t, dir)
	a.host.Cancel()
	require.Eventually(t, func() bool { return !fileContains(path, "") }, 10*time.Second, time.Millisecond, "the file goes while the pod is still being killed")
	a.killer.Release()
	report := a.nextReport()
	require.True(t, report.Cancelled)
	require.Len(t, report.Errors, 1)
	a.log.requireErrors(t, 1, report.Errors)
}

// A shutdown is resumed even if its folder has become read-only meanwhile.
func TestFolderThatBecomesReadOnly(t *testing.T) {
	if !inOwnMounts(t) {
		return
	}
	dir := smallFileSystem(t)
	a := newHostAgent(t, dir)
	a.killer.Default = shutdowntest.Behaviour{Hangs: true}
	a.run()
	a.host.Announce(shutdown.Event{Origin: "former"})
	require.Eventually(t, func() bool { return fileContains(filepath.Join(dir, progressFile), "uid-web") }, 10*time.Second, time.Millisecond)
	require.NoError(t, a.end())
	makeReadOnly(t, dir)

	next := newHostAgent(t, dir)
	require.False(t, next.m.Admit(nil).Admit)
	next.host.SetPending(&shutdown.Event{})
	next.run()
	report := next.nextReport()
	require.Equal(t, "former", report.Origin)
	require.Len(t, report.Pods, 2)
	require.Contains(t, strings.Join(report.Errors, "\n"), "read-only file system")
}

// A planted state file is named once. It is not waited for, no pod is killed or refused because
// of it, and the next shutdown replaces it.
func TestFilesOfSomebodyElse(t *testing.T) {
	need.Root(t)
	bootID, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	require.NoError(t, err)
	shut := func(boot string, t0, h int64, started string) []byte {
		return fmt.Appendf(nil, `{"version":3,"bootID":%q,"t0MonotonicNanoseconds":%d,"hMonotonicNanoseconds":%d,"report":{"origin":"planted","started":%q}}`,
			boot, t0, h, started)
	}
	const far = 9_000_000_000_000_000_000
	here, now := strings.TrimSpace(string(bootID)), "2026-01-01T00:00:00Z"
	for name, test := range map[string]struct {
		plant func(path string) error
		says  string // "": nothing, as it is a file of ours
		stays bool
	}{
		"a FIFO":    {func(path string) error { return unix.Mkfifo(path, 0o600) }, "no regular file", false},
		"a device":  {func(path string) error { return unix.Mknod(path, unix.S_IFCHR|0o666, int(unix.Mkdev(1, 5))) }, "no regular file", false},
		"/dev/zero": {func(path string) error { return os.Symlink("/dev/zero", path) }, "too many levels", false},
		"a link": {func(path string) error {
			return errors.Join(os.WriteFile(path+"2", shut(here, 1, far, now), 0o600), os.Symlink(path+"2", path))
		}, "too many levels", false},
		"a folder": {func(path string) error { return os.Mkdir(path, 0o700) }, "no regular file", true},
		"of nobody": {func(path string) error {
			return errors.Join(os.WriteFile(path, shut(here, 1, far, now), 0o600), os.Chown(path, 65534, 65534))
		}, "neither this user nor root", false},
		"endless": {func(path string) error { return errors.Join(os.WriteFile(path, nil, 0o600), os.Truncate(path, 1<<40)) }, "are the most", false},
		"torn": {func(path string) error {
			return os.WriteFile(path, shut(here, 1, far, now)[:70], 0o600)
		}, "not usable", false},
		"another boot": {func(path string) error {
			return os.WriteFile(path, shut("another", far-1, far, now), 0o600)
		}, "", false},
		"a wall clock of the future": {func(path string) error {
			return os.WriteFile(path, shut(here, 1, 2, "2126-01-01T00:00:00Z"), 0o600)
		}, "", false},
		"the future": {func(path string) error { return os.WriteFile(path, shut(here, far-1, far, now), 0o600) }, "its shutdown begins in", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			path := filepath.Join(dir, progressFile)
			require.NoError(t, test.plant(path))
			a := newHostAgent(t, dir)
			require.True(t, a.m.Admit(nil).Admit)
			a.run()
			require.True(t, a.m.Admit(nil).Admit)
			require.Empty(t, a.killer.Kills())
			require.Equal(t, 1, a.host.Held())
			report := a.shutDownAndCancel()
			said := strings.Join(report.Errors, "\n")
			if test.says == "" {
				require.Empty(t, said)
			} else {
				require.Contains(t, report.Errors[0], test.says)
				require.Contains(t, report.Errors[0], path)
			}
			a.log.requireErrors(t, int64(len(report.Errors)), said)
			require.NoError(t, a.end())
			requireNoLeftovers(t, dir)
			if test.stays {
				require.Len(t, report.Errors, 2, "nor can it be replaced")
				return
			}
			next := newHostAgent(t, dir)
			next.run()
			stored, ok := next.m.LastReport()
			require.True(t, ok)
			require.Equal(t, report.Origin, stored.Origin)
			require.Len(t, stored.Pods, 2)
		})
	}
}
