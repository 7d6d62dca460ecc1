package machine

import (
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kubegrace/kubegrace/internal/need"
)

// treeTimeout bounds debootstrap, which downloads about 60 MB.
const treeTimeout = 10 * time.Minute

// Debian is a release of Debian, by its name in the archive.
type Debian string

// The releases that a machine can be made of.
const (
	Bookworm Debian = "bookworm" // Debian 12, systemd 252
	Trixie   Debian = "trixie"   // Debian 13, systemd 257
)

// recipe returns the arguments of debootstrap, except the folder.
func (d Debian) recipe() []string {
	return []string{"--variant=minbase", "--include=systemd,systemd-sysv,dbus,libpam-systemd", string(d)}
}

// tree returns the folder with the root file system of a release. All machines share it, so nothing may change
// it. If it is not in the cache, tree makes it with debootstrap. The folder's name is a hash of the recipe, so
// that another recipe gets another folder.
func (d Debian) tree(t testing.TB) string {
	t.Helper()
	debootstrap := need.Program(t, "debootstrap", "debootstrap")
	cache := filepath.Join(moduleRoot(t), ".cache", "machine")
	require.NoError(t, os.MkdirAll(cache, 0o755))
	hash := fmt.Sprintf("%x", sha256.Sum256([]byte(strings.Join(d.recipe(), " "))))
	tree := filepath.Join(cache, hash[:12])
	unlock := lock(t, filepath.Join(cache, "lock"))
	defer unlock()
	if _, err := os.Stat(tree); err == nil {
		return tree
	}
	t.Logf("making a Debian %s in %s; it is fetched from Debian's archive, which takes some minutes", d, tree)
	require.NoError(t, d.make(t.Context(), debootstrap, tree))
	return tree
}

// lock waits until no other test, in this or another process, holds the lock at path, and takes it. So only
// one test makes a tree. The kernel releases the lock if the process is killed.
func lock(t testing.TB, path string) (unlock func()) {
	t.Helper()
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	require.NoError(t, err)
	raw, err := file.SyscallConn()
	require.NoError(t, err)
	var flockErr error
	require.NoError(t, raw.Control(func(fd uintptr) { flockErr = syscall.Flock(int(fd), syscall.LOCK_EX) }))
	require.NoError(t, flockErr)
	return func() { require.NoError(t, file.Close()) }
}

// make makes a tree under another name and renames it when it is complete, so that the cache never has half a
// tree. It first removes what an interrupted run has left. debootstrap runs in its own mount namespace, so
// that its mounts vanish with it.
func (d Debian) make(ctx context.Context, debootstrap, tree string) error {
	ctx, cancel := context.WithTimeout(ctx, treeTimeout)
	defer cancel()
	unfinished := tree + ".unfinished"
	if err := os.RemoveAll(unfinished); err != nil {
		return fmt.Errorf("failed to remove half a tree: %w", err)
	}
	const script = `mount --make-rprivate / && exec "$0" "$@"`
	command := exec.CommandContext(ctx, "/bin/sh", append([]string{"-c", script, debootstrap}, append(d.recipe(), unfinished)...)...)
	command.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS, Pdeathsig: syscall.SIGKILL}
	if out, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("failed to make a tree with debootstrap: %w\n%s", err, out)
	}
	if err := os.Rename(unfinished, tree); err != nil {
		return fmt.Errorf("failed to move the tree to its place: %w", err)
	}
	return nil
}

// moduleRoot returns the folder of the library's module, which is the root of the checkout.
func moduleRoot(t testing.TB) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "github.com/kubegrace/kubegrace").Output()
	require.NoError(t, err)
	return strings.TrimSpace(string(out))
}
