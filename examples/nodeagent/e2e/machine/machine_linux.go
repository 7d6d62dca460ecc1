package machine

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kubegrace/kubegrace/internal/need"
)

// powerOffTimeout is how long a machine may take to power off: longer than any limit
// that a test gives to logind.
const powerOffTimeout = 2 * time.Minute

// killTimeout is how long the processes of a machine that was killed may be seen.
const killTimeout = 20 * time.Second

// rebooting is the status with which nspawn ends when its machine reboots, as it
// does not boot it again by itself where --keep-unit is given.
const rebooting = 133

// Machine is one machine, with a disk of its own. After it has rebooted it may be
// booted again.
type Machine struct {
	name   string
	base   string // the tree below, shared with other machines
	folder string
	binds  []string // of nspawn's command line
	shares bool     // the network of the host
	boots  int
	nspawn *exec.Cmd
	ended  chan struct{} // closed when nspawn has ended, after exit was set
	exit   error
}

// New makes a machine that is not yet booted. Its disk is removed with the test.
func New(t testing.TB, debian Debian) *Machine {
	t.Helper()
	need.Root(t)
	need.Program(t, "systemd-nspawn", "systemd-container")
	need.Program(t, "nsenter", "util-linux")
	need.Program(t, "journalctl", "systemd")
	m := &Machine{base: debian.tree(t), folder: t.TempDir()}
	m.name = fmt.Sprintf("kubegrace-%.12x", sha256.Sum256([]byte(m.folder))) // a name has 64 characters at most
	for _, dir := range []string{m.upper(), m.work(), m.root(), m.journal()} {
		require.NoError(t, os.MkdirAll(dir, 0o755))
	}
	return m
}

// upper is what differs from the base, and stays readable when the machine is off;
// root is where both are seen as one, in the machine's namespace only.
func (m *Machine) upper() string   { return filepath.Join(m.folder, "upper") }
func (m *Machine) work() string    { return filepath.Join(m.folder, "work") }
func (m *Machine) root() string    { return filepath.Join(m.folder, "root") }
func (m *Machine) console() string { return filepath.Join(m.folder, "console") }

// journal has to be there, else journald keeps its journal in memory.
func (m *Machine) journal() string { return filepath.Join(m.upper(), "var", "log", "journal") }

// WriteFile puts a file on the disk, by its path in the machine, before Boot.
func (m *Machine) WriteFile(t testing.TB, path string, mode os.FileMode, content []byte) {
	t.Helper()
	place := filepath.Join(m.upper(), path)
	require.NoError(t, os.MkdirAll(filepath.Dir(place), 0o755))
	require.NoError(t, os.WriteFile(place, content, mode))
}

// ReadFile gives what the machine has written to a file, by its path in the machine.
func (m *Machine) ReadFile(t testing.TB, path string) []byte {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(m.upper(), path))
	require.NoError(t, err)
	return content
}

// Enable installs a unit that multi-user.target wants.
func (m *Machine) Enable(t testing.TB, unit string, content []byte) {
	t.Helper()
	const units = "/etc/systemd/system"
	m.WriteFile(t, filepath.Join(units, unit), 0o644, content)
	wants := filepath.Join(m.upper(), units, "multi-user.target.wants")
	require.NoError(t, os.MkdirAll(wants, 0o755))
	require.NoError(t, os.Symlink(filepath.Join(units, unit), filepath.Join(wants, unit)))
}

// Bind shows a file or folder of the host, a socket for instance, in the machine.
func (m *Machine) Bind(host, inside string) { m.binds = append(m.binds, "--bind="+host+":"+inside) }

// Boot starts the machine and returns at once; see [Machine.AwaitActive].
func (m *Machine) Boot(t testing.TB) {
	t.Helper()
	// nspawn is the first process of a namespace of processes: when it is killed, the
	// kernel ends the machine too. /run is its own, so that it leaves nothing there.
	const script = `for group in $CGROUPS; do echo 0 > "$group/cgroup.procs" || exit; done
mount --make-rprivate / && mount -t proc proc /proc && mount -t tmpfs tmpfs /run && mount -t overlay overlay -o "$0" "$1" && shift && exec "$@"`
	m.boots++
	groups, err := makeCgroups(fmt.Sprintf("%s-%d", m.name, m.boots))
	t.Cleanup(func() { m.removeCgroups(t, groups) })
	require.NoError(t, err)
	overlay := fmt.Sprintf("lowerdir=%s,upperdir=%s,workdir=%s", m.base, m.upper(), m.work())
	args := append([]string{"-c", script, overlay, m.root()}, m.command()...)
	m.ended, m.exit = make(chan struct{}), nil
	m.nspawn = exec.Command("/bin/sh", args...)
	m.nspawn.Env = append(os.Environ(), "CGROUPS="+strings.Join(groups, " "))
	m.nspawn.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID | syscall.CLONE_NEWNS, Pdeathsig: syscall.SIGKILL}
	console, err := os.Create(m.console())
	require.NoError(t, err)
	m.nspawn.Stdout, m.nspawn.Stderr = console, console
	require.NoError(t, m.nspawn.Start())
	require.NoError(t, console.Close())
	m.wait(t)
}

// ShareNetwork lets a machine that is not yet booted see the network of the host,
// with what listens there, and listen in it itself; else it sees none.
func (m *Machine) ShareNetwork() { m.shares = true }

// command is that of nspawn. The machine is not registered with a systemd of the
// host, which need not have one.
func (m *Machine) command() []string {
	command := []string{
		"systemd-nspawn", "--quiet", "--boot", "--directory=" + m.root(), "--machine=" + m.name,
		"--register=no", "--keep-unit", "--console=read-only", "--setenv=SYSTEMD_COLORS=0",
	}
	if !m.shares {
		command = append(command, "--private-network")
	}
	return append(command, m.binds...)
}

// wait follows nspawn until its end, at the latest that of the test.
func (m *Machine) wait(t testing.TB) {
	t.Helper()
	var waiting sync.WaitGroup
	nspawn, ended := m.nspawn, m.ended
	waiting.Go(func() {
		m.exit = nspawn.Wait()
		close(ended)
	})
	t.Cleanup(func() {
		_ = nspawn.Process.Kill() // it has ended by itself, where all went well
		waiting.Wait()
		if t.Failed() {
			t.Logf("console of the machine:\n%s", m.printed())
		}
	})
}

// removeCgroups waits for the last processes of a machine that was killed.
func (m *Machine) removeCgroups(t testing.TB, groups []string) {
	var failed error
	if !assert.Eventually(t, func() bool {
		failed = removeCgroups(groups)
		return failed == nil
	}, killTimeout, askEvery) {
		t.Log(failed)
	}
}

// printed is what came out of the console, without what a terminal would need.
func (m *Machine) printed() []byte {
	content, err := os.ReadFile(m.console())
	if err != nil {
		return []byte(err.Error())
	}
	return bytes.ReplaceAll(content, []byte("\r"), nil)
}

// AwaitPowerOff waits until the machine has powered off by itself.
func (m *Machine) AwaitPowerOff(t testing.TB) {
	t.Helper()
	m.awaitEnd(t)
	require.NoError(t, m.exit, "nspawn ends with 0 when its machine has powered off")
}

// AwaitReboot waits until the machine has gone down to boot again, which [Machine.Boot]
// does, from the same disk.
func (m *Machine) AwaitReboot(t testing.TB) {
	t.Helper()
	m.awaitEnd(t)
	var status *exec.ExitError
	ok := errors.As(m.exit, &status)
	require.Truef(t, ok, "nspawn ended with %v", m.exit)
	require.Equal(t, rebooting, status.ExitCode())
}

// awaitEnd waits until the machine is off.
func (m *Machine) awaitEnd(t testing.TB) {
	t.Helper()
	select {
	case <-m.ended:
	case <-time.After(powerOffTimeout):
		require.Fail(t, "the machine does not go down")
	}
}
