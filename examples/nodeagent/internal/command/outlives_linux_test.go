package command_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/kubegrace/kubegrace/internal/need"
)

// drained is an agent under a logind, with one pod that ends in 500 ms, or is killed, and a
// folder for its state. What it says goes to out.
func drained(t *testing.T, host *login1, out *os.File, more ...string) (p *process, stateDir string) {
	t.Helper()
	dir := folder(t, map[string]string{
		"pods/web.yaml": scripted("web", "exits 500ms after TERM"),
		"pods/db.yaml":  strings.Replace(scripted("db", "exits 500ms after TERM"), "priority: 0", "priority: 1000", 1),
		"kubelet.yaml":  kubelet + "shutdownGracePeriodByPodPriority: [{priority: 0, shutdownGracePeriodSeconds: 10}, {priority: 1000, shutdownGracePeriodSeconds: 10}]\n",
	})
	stateDir = t.TempDir()
	p = prepare(t, append([]string{"--source=logind", "--manifests=" + dir + "/pods", "--config=" + dir + "/kubelet.yaml", "--state-dir=" + stateDir, "-v=2"}, more...)...)
	p.command.Env = append(os.Environ(), "DBUS_SYSTEM_BUS_ADDRESS="+host.address)
	p.command.Stdout, p.command.Stderr = out, out
	return p, stateDir
}

// storedReport is what a restarted agent would read.
type storedReport struct {
	Report struct {
		Ended time.Time
		Pods  []struct {
			Name, Outcome, Error string
			Started, Ended       time.Time
		}
		Errors []string
	}
}

func stored(t *testing.T, stateDir string) storedReport {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(stateDir, "graceful_node_shutdown_progress"))
	require.NoError(t, err)
	var s storedReport
	require.NoError(t, json.Unmarshal(text, &s))
	return s
}

// allStopped checks that both pods were stopped in time, one bucket after the other.
func allStopped(t *testing.T, stateDir string) {
	t.Helper()
	r := stored(t, stateDir).Report
	require.False(t, r.Ended.IsZero(), "the drain has come to its end")
	require.Empty(t, r.Errors)
	require.Len(t, r.Pods, 2)
	for i, name := range []string{"web", "db"} {
		require.Equal(t, name, r.Pods[i].Name)
		require.Equal(t, "Graceful", r.Pods[i].Outcome, r.Pods[i].Error)
		require.GreaterOrEqual(t, r.Pods[i].Ended.Sub(r.Pods[i].Started), 500*time.Millisecond, "it had its time")
	}
}

// reads waits until the program says something.
func reads(t *testing.T, from *os.File, text string) {
	t.Helper()
	require.NoError(t, from.SetReadDeadline(time.Now().Add(20*time.Second)))
	said, next := "", make([]byte, 1) // one by one: what follows is for the next call
	for !strings.Contains(said, text) {
		_, err := from.Read(next)
		require.NoError(t, err, "never said %q, but %s", text, said)
		said += string(next)
	}
}

func pipe(t *testing.T) (read, write *os.File) {
	t.Helper()
	read, write, err := os.Pipe()
	require.NoError(t, err)
	return read, write
}

func closeFile(t *testing.T, f *os.File) {
	t.Helper()
	require.NoError(t, f.Close())
}

// As in nodeagent 2>&1 | tee: the reader is ended first when a session ends.
func TestDrainOutlivesTheReaderOfItsOutput(t *testing.T) {
	t.Parallel()
	host := startLogin1(t)
	read, write := pipe(t)
	p, stateDir := drained(t, host, write)
	require.NoError(t, p.command.Start())
	closeFile(t, write)
	reads(t, read, "2 of 2 pods run.")
	host.announce(t)
	reads(t, read, "got SIGTERM, is ending")
	closeFile(t, read)
	host.released(t)
	allStopped(t, stateDir)
	p.signal(syscall.SIGTERM)
	require.Zero(t, p.exit())
}

// As with Ctrl-S, or a reader that was stopped: the pipe is full before the drain begins.
func TestDrainDoesNotWaitForTheReaderOfItsOutput(t *testing.T) {
	t.Parallel()
	host := startLogin1(t)
	read, write := pipe(t)
	defer closeFile(t, read)
	p, stateDir := drained(t, host, write)
	require.NoError(t, p.command.Start())
	reads(t, read, "2 of 2 pods run.")
	stuff(t, write)
	closeFile(t, write)
	host.announce(t)
	host.released(t)
	allStopped(t, stateDir)
	p.signal(syscall.SIGTERM)
	require.Zero(t, p.exit())
}

// stuff fills a pipe. The program has the same end of it, and waits as before.
func stuff(t *testing.T, write *os.File) {
	t.Helper()
	fd := int(write.Fd())
	require.NoError(t, unix.SetNonblock(fd, true))
	var err error
	for err == nil {
		_, err = unix.Write(fd, []byte("stuffing\n"))
	}
	require.ErrorIs(t, err, unix.EAGAIN)
	require.NoError(t, unix.SetNonblock(fd, false))
}

func TestDrainOutlivesHangups(t *testing.T) {
	t.Parallel()
	host := startLogin1(t)
	read, write := pipe(t)
	defer closeFile(t, read)
	p, stateDir := drained(t, host, write)
	require.NoError(t, p.command.Start())
	closeFile(t, write)
	reads(t, read, "2 of 2 pods run.")
	p.signal(syscall.SIGHUP)
	host.announce(t)
	reads(t, read, "got SIGTERM, is ending")
	p.signal(syscall.SIGHUP)
	p.signal(syscall.SIGPIPE)
	host.released(t)
	allStopped(t, stateDir)
	p.signal(syscall.SIGTERM)
	require.Zero(t, p.exit())
}

// The terminal is closed, as by the end of an ssh session: the kernel hangs up, and
// what is written fails.
func TestDrainOutlivesItsTerminal(t *testing.T) {
	t.Parallel()
	host := startLogin1(t)
	master, terminal := pseudoterminal(t)
	p, stateDir := drained(t, host, terminal)
	p.command.Stdin = terminal
	p.command.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	require.NoError(t, p.command.Start())
	closeFile(t, terminal)
	reads(t, master, "2 of 2 pods run.")
	host.announce(t)
	reads(t, master, "got SIGTERM, is ending")
	closeFile(t, master)
	host.released(t)
	allStopped(t, stateDir)
	p.signal(syscall.SIGTERM)
	require.Zero(t, p.exit())
}

// pseudoterminal opens a new one, with 80 columns.
func pseudoterminal(t *testing.T) (master, terminal *os.File) {
	t.Helper()
	master, terminal, err := pty.Open()
	require.NoError(t, err)
	require.NoError(t, pty.Setsize(master, &pty.Winsize{Rows: 24, Cols: 80}))
	return master, terminal
}

// The disk of state and log is full from the middle of the drain on. All pods are stopped
// all the same, and the machine is held until then; that the report is lost is told.
func TestDrainOutlivesAFullDisk(t *testing.T) {
	need.Root(t)
	t.Parallel()
	host := startLogin1(t)
	disk := t.TempDir()
	require.NoError(t, syscall.Mount("tmpfs", disk, "tmpfs", 0, "size=256k"))
	t.Cleanup(func() { require.NoError(t, syscall.Unmount(disk, syscall.MNT_DETACH)) })
	log, err := os.Create(filepath.Join(disk, "log"))
	require.NoError(t, err)
	read, write := pipe(t)
	defer closeFile(t, read)

	p, _ := drained(t, host, write, "--state-dir="+disk)
	p.command.Stderr = log
	require.NoError(t, p.command.Start())
	closeFile(t, write)
	closeFile(t, log)
	reads(t, read, "2 of 2 pods run.")
	fill(t, filepath.Join(disk, "filler"))
	host.announce(t)
	reads(t, read, "2 of 2 pods stopped in time.")
	host.released(t)
	reads(t, read, "no space left on device")
	p.signal(syscall.SIGTERM)
	require.Zero(t, p.exit(), "leaving after the shutdown of a host is no failure")
}

// fill writes until nothing more fits.
func fill(t *testing.T, file string) {
	t.Helper()
	f, err := os.Create(file)
	require.NoError(t, err)
	for err == nil {
		_, err = f.Write(make([]byte, 4096))
	}
	require.ErrorIs(t, err, syscall.ENOSPC)
	closeFile(t, f)
}

// Of a host too all pods can be stopped by hand. The agent stays, and says later what it did.
func TestDrainByHandOfAHost(t *testing.T) {
	t.Parallel()
	host := startLogin1(t)
	read, write := pipe(t)
	defer closeFile(t, read)
	at := "--socket=" + filepath.Join(t.TempDir(), "s")
	p, stateDir := drained(t, host, write, at)
	require.NoError(t, p.command.Start())
	closeFile(t, write)
	reads(t, read, "2 of 2 pods run.")
	for range 2 {
		out, stderr, status := tell(t, "drain", at)
		require.Zero(t, status, stderr)
		require.Contains(t, out, "announced by nodeagent drain")
		require.Equal(t, 2, strings.Count(out, "stopped in time"))
	}
	p.signal(syscall.SIGTERM)
	require.Zero(t, p.exit())
	allStopped(t, stateDir)
	out, stderr, status := tell(t, "report", "--socket=/nonexistent", "--state-dir="+stateDir)
	require.Zero(t, status, stderr)
	require.Equal(t, 2, strings.Count(out, "stopped in time"))
}
