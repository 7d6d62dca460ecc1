package machine

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
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

// powerOffTimeout bounds the wait for a power off or reboot. It is longer than any limit that a test sets in
// logind.
const powerOffTimeout = 2 * time.Minute

// killTimeout bounds the removal of a machine's cgroups, which waits until its last processes have ended.
const killTimeout = 20 * time.Second

// rebootStatus is nspawn's exit status if the machine reboots. With --keep-unit nspawn does not boot the
// machine again itself.
const rebootStatus = 133

// Machine is a machine with its own disk. After a power off or a reboot it can be booted again, with the same
// disk.
type Machine struct {
	name        string
	base        string   // the Debian under the overlay, shared with other machines
	folder      string   // has its disk and the output of its console
	flags       []string // more flags of nspawn
	hostNetwork bool     // see ShareNetwork
	boots       int      // how often it was booted; each boot has its own cgroups
	nspawn      *exec.Cmd
	nspawnEnded chan struct{} // closed when nspawn has exited, after nspawnErr was set
	nspawnErr   error
}

// New makes a machine that is not booted. Its disk is removed at the end of the test.
func New(t testing.TB, debian Debian) *Machine {
	t.Helper()
	need.Root(t)
	need.Program(t, "systemd-nspawn", "systemd-container")
	need.Program(t, "nsenter", "util-linux")
	need.Program(t, "journalctl", "systemd")
	m := &Machine{base: debian.tree(t), folder: t.TempDir()}
	m.name = fmt.Sprintf("kubegrace-%.12x", sha256.Sum256([]byte(m.folder))) // a hash, because a name has at most 64 characters
	for _, dir := range []string{m.upper(), m.work(), m.root(), m.writable(), m.journal()} {
		require.NoError(t, os.MkdirAll(dir, 0o755))
	}
	return m
}

// upper is the folder of the files that differ from the base: the disk of a machine is an overlay. It can be read
// when the machine is off. work is the overlay's own folder. root is its mount point, where it is mounted only in the
// machine's mount namespace. writable is a second mount point, which stays writable if nspawn makes root read-only.
func (m *Machine) upper() string    { return filepath.Join(m.folder, "upper") }
func (m *Machine) work() string     { return filepath.Join(m.folder, "work") }
func (m *Machine) root() string     { return filepath.Join(m.folder, "root") }
func (m *Machine) writable() string { return filepath.Join(m.folder, "writable") }

// console is the file with the output of the machine's console.
func (m *Machine) console() string { return filepath.Join(m.folder, "console") }

// journal is the folder of the journal. New creates it: without it journald keeps the journal in memory, where
// it is lost at the power off.
func (m *Machine) journal() string { return filepath.Join(m.upper(), "var", "log", "journal") }

// WriteFile writes a file on the disk of a machine that is not booted. path is the path
// in the machine.
func (m *Machine) WriteFile(t testing.TB, path string, mode os.FileMode, content []byte) {
	t.Helper()
	hostPath := filepath.Join(m.upper(), path)
	require.NoError(t, os.MkdirAll(filepath.Dir(hostPath), 0o755))
	require.NoError(t, os.WriteFile(hostPath, content, mode))
}

// ReadFile returns the content of a file that the machine has written. path is the path
// in the machine.
func (m *Machine) ReadFile(t testing.TB, path string) []byte {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(m.upper(), path))
	require.NoError(t, err)
	return content
}

// Enable installs a unit that starts at boot, with multi-user.target, on a machine that is not booted.
func (m *Machine) Enable(t testing.TB, unit string, content []byte) {
	t.Helper()
	const units = "/etc/systemd/system"
	m.WriteFile(t, filepath.Join(units, unit), 0o644, content)
	wants := filepath.Join(m.upper(), units, "multi-user.target.wants")
	require.NoError(t, os.MkdirAll(wants, 0o755))
	require.NoError(t, os.Symlink(filepath.Join(units, unit), filepath.Join(wants, unit)))
}

// Bind mounts a file, socket or folder of the host into a machine that is not booted.
func (m *Machine) Bind(host, inside string) { m.flags = append(m.flags, "--bind="+host+":"+inside) }

// ReadOnly makes the disk of a machine that is not booted read-only, except for these folders, which are
// mounted from a second, writable mount of the same disk. /run and /tmp are in memory and stay writable.
func (m *Machine) ReadOnly(except ...string) {
	m.flags = append(m.flags, "--read-only")
	for _, folder := range except {
		m.Bind(filepath.Join(m.writable(), folder), folder)
	}
}

// Boot starts the machine and returns at once; [Machine.AwaitActive] waits for it.
func (m *Machine) Boot(t testing.TB) {
	t.Helper()
	// nspawn is the first process of a new PID namespace: if it is killed, the kernel kills the whole machine.
	// The shell first moves into the machine's cgroups, so that all of its processes are in them. /run is a new tmpfs, so
	// that nspawn leaves nothing in the host's /run. $0 has the options of the overlay, $1 is its mount point, and $2 a
	// second mount of it, for ReadOnly; the rest is the command line of nspawn.
	const script = `for group in $CGROUPS; do echo 0 > "$group/cgroup.procs" || exit; done
mount --make-rprivate / && mount -t proc proc /proc && mount -t tmpfs tmpfs /run && mount -t overlay overlay -o "$0" "$1" && mount --bind "$1" "$2" && shift 2 && exec "$@"`
	m.boots++
	groups, err := makeCgroups(fmt.Sprintf("%s-%d", m.name, m.boots))
	t.Cleanup(func() { requireCgroupsRemoved(t, groups) })
	require.NoError(t, err)
	overlay := fmt.Sprintf("lowerdir=%s,upperdir=%s,workdir=%s", m.base, m.upper(), m.work())
	args := append([]string{"-c", script, overlay, m.root(), m.writable()}, m.command()...)
	m.nspawnEnded, m.nspawnErr = make(chan struct{}), nil
	m.nspawn = exec.Command("/bin/sh", args...)
	m.nspawn.Env = append(os.Environ(), "CGROUPS="+strings.Join(groups, " "))
	m.nspawn.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID | syscall.CLONE_NEWNS, Pdeathsig: syscall.SIGKILL}
	console, err := os.Create(m.console())
	require.NoError(t, err)
	m.nspawn.Stdout, m.nspawn.Stderr = console, console
	require.NoError(t, m.nspawn.Start())
	require.NoError(t, console.Close())
	m.watchNspawn(t)
}

// ShareNetwork lets a machine that is not booted use the network of the host. Without it the machine has only
// a loopback interface.
func (m *Machine) ShareNetwork() { m.hostNetwork = true }

// command returns the command line of nspawn. --register=no, because the host may run without systemd, and so
// without machined.
func (m *Machine) command() []string {
	command := []string{
		"systemd-nspawn", "--quiet", "--boot", "--directory=" + m.root(), "--machine=" + m.name,
		"--register=no", "--keep-unit", "--console=read-only", "--setenv=SYSTEMD_COLORS=0",
	}
	if !m.hostNetwork {
		command = append(command, "--private-network")
	}
	return append(command, m.flags...)
}

// watchNspawn starts a goroutine that waits for the end of nspawn and then closes nspawnEnded. At the end of the
// test nspawn is killed if it still runs, and the console is printed if the test has failed.
func (m *Machine) watchNspawn(t testing.TB) {
	t.Helper()
	var waiting sync.WaitGroup
	nspawn, ended := m.nspawn, m.nspawnEnded
	waiting.Go(func() {
		m.nspawnErr = nspawn.Wait()
		close(ended)
	})
	t.Cleanup(func() {
		_ = nspawn.Process.Kill() // fails if it has exited
		waiting.Wait()
		if t.Failed() {
			t.Logf("console of the machine:\n%s", m.consoleText())
		}
	})
}

// requireCgroupsRemoved removes the cgroups of a machine. It tries again until the last processes of the machine have
// ended. The test fails if they still run after killTimeout.
func requireCgroupsRemoved(t testing.TB, groups []string) {
	var err error
	areRemoved := assert.Eventually(t, func() bool {
		err = removeCgroups(groups)
		return err == nil
	}, killTimeout, pollInterval)
	if !areRemoved {
		t.Log(err)
	}
}

// consoleText returns the output on the console, without carriage returns, or the error of reading it.
func (m *Machine) consoleText() []byte {
	content, err := os.ReadFile(m.console())
	if err != nil {
		return []byte(err.Error())
	}
	return bytes.ReplaceAll(content, []byte("\r"), nil)
}

// AwaitPowerOff waits until the machine has powered off.
func (m *Machine) AwaitPowerOff(t testing.TB) {
	t.Helper()
	m.awaitEnd(t)
	require.NoError(t, m.nspawnErr, "nspawn exits with 0 after a power off")
}

// AwaitReboot waits until the machine has gone down for a reboot, which nspawn reports with its exit status.
// [Machine.Boot] then boots the machine again, from the same disk.
func (m *Machine) AwaitReboot(t testing.TB) {
	t.Helper()
	m.awaitEnd(t)
	var exit *exec.ExitError
	require.ErrorAs(t, m.nspawnErr, &exit)
	require.Equal(t, rebootStatus, exit.ExitCode())
}

// Ended returns a channel that is closed when the machine is off. [Machine.Boot] replaces it.
func (m *Machine) Ended() <-chan struct{} { return m.nspawnEnded }

// awaitEnd waits until the machine is off.
func (m *Machine) awaitEnd(t testing.TB) {
	t.Helper()
	select {
	case <-m.nspawnEnded:
	case <-time.After(powerOffTimeout):
		require.Fail(t, "the machine did not power off")
	}
}

// ShuttingDown is the MESSAGE_ID (SD_MESSAGE_SHUTDOWN) of the entry that logind logs when it proceeds with a
// shutdown: when all delay locks are released, or when logind's limit for them has passed.
const ShuttingDown = "98268866d1d54a499c4e98921d93bc40"

// Entry is one entry of a journal.
type Entry struct {
	Time      time.Time // by the clock that host and machine share
	Unit      string    // the unit of the process
	MessageID string    // "" if the entry has none
	Message   string    // "" if it is not UTF-8
}

// Journal returns the entries of the journal of all boots, in order. Call it when the machine is off: while it
// runs, its last entries may not be on the disk.
func (m *Machine) Journal(t testing.TB) []Entry {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "journalctl", "--directory", m.journal(), "--output=json", "--no-pager").Output()
	require.NoError(t, err)
	var entries []Entry
	for decoder := json.NewDecoder(bytes.NewReader(out)); decoder.More(); {
		var raw struct {
			Microseconds int64           `json:"__REALTIME_TIMESTAMP,string"`
			Unit         string          `json:"_SYSTEMD_UNIT"`
			MessageID    string          `json:"MESSAGE_ID"`
			Message      json.RawMessage `json:"MESSAGE"` // a string, or a list of bytes if it is not UTF-8
		}
		require.NoError(t, decoder.Decode(&raw))
		entry := Entry{Time: time.UnixMicro(raw.Microseconds), Unit: raw.Unit, MessageID: raw.MessageID}
		_ = json.Unmarshal(raw.Message, &entry.Message) // fails for a list of bytes: the message then stays ""
		entries = append(entries, entry)
	}
	return entries
}
