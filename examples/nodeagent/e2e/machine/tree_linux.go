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

// treeTimeout bounds the making of a tree, which fetches about 60 MB.
const treeTimeout = 10 * time.Minute

// Debian is a release of Debian, by the name that its archive has for it.
type Debian string

// The releases that a machine can be made of.
const (
	Bookworm Debian = "bookworm" // Debian 12, systemd 252
	Trixie   Debian = "trixie"   // Debian 13, systemd 257
)

// recipe is what debootstrap is asked for, without the folder.
func (d Debian) recipe() []string {
	return []string{"--variant=minbase", "--include=systemd,systemd-sysv,dbus,libpam-systemd", string(d)}
}

// tree gives the root of a Debian with systemd, which nobody may change. It is made
// when the cache does not have it, under a name that goes with its recipe.
func (d Debian) tree(t testing.TB) string {
	t.Helper()
	debootstrap := need.Program(t, "debootstrap", "debootstrap")
	cache := filepath.Join(moduleRoot(t), ".cache", "machine")
	require.NoError(t, os.MkdirAll(cache, 0o755))
	tree := filepath.Join(cache, fmt.Sprintf("%x", sha256.Sum256([]byte(strings.Join(d.recipe(), " "))))[:12])
	defer lock(t, filepath.Join(cache, "lock"))()
	if _, err := os.Stat(tree); err == nil {
		return tree
	}
	t.Logf("making a Debian %s in %s; it is fetched from Debian's archive, which takes some minutes", d, tree)
	require.NoError(t, d.make(t.Context(), debootstrap, tree))
	return tree
}

// lock keeps other tests, of this process and of others, from making the same tree.
// The kernel unlocks it for a process that is killed.
func lock(t testing.TB, path string) (unlock func()) {
	t.Helper()
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	require.NoError(t, err)
	raw, err := file.SyscallConn()
	require.NoError(t, err)
	var failed error
	require.NoError(t, raw.Control(func(fd uintptr) { failed = syscall.Flock(int(fd), syscall.LOCK_EX) }))
	require.NoError(t, failed)
	return func() { require.NoError(t, file.Close()) }
}

// make makes a tree beside its place and moves it there when it is complete: a
// run that is interrupted leaves no half of one, and what it leaves is removed by
// the next. debootstrap mounts what it needs in a namespace of its own.
func (d Debian) make(ctx context.Context, debootstrap, tree string) error {
	ctx, cancel := context.WithTimeout(ctx, treeTimeout)
	defer cancel()
	making := tree + ".making"
	if err := os.RemoveAll(making); err != nil {
		return fmt.Errorf("failed to remove half a tree: %w", err)
	}
	const script = `mount --make-rprivate / && exec "$0" "$@"`
	command := exec.CommandContext(ctx, "/bin/sh", append([]string{"-c", script, debootstrap}, append(d.recipe(), making)...)...)
	command.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS, Pdeathsig: syscall.SIGKILL}
	if out, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("failed to make a tree with debootstrap: %w\n%s", err, out)
	}
	if err := os.Rename(making, tree); err != nil {
		return fmt.Errorf("failed to move the tree to its place: %w", err)
	}
	return nil
}

// moduleRoot is the folder of the library, wherever the checkout is.
func moduleRoot(t testing.TB) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "github.com/kubegrace/kubegrace").Output()
	require.NoError(t, err)
	return strings.TrimSpace(string(out))
}
