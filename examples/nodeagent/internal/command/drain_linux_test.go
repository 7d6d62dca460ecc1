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

// prepareTwoPods returns an agent with two pods in two buckets, which uses logind and a new
// state folder. Each pod ends 500 ms after SIGTERM. Output and log go to out.
func prepareTwoPods(t *testing.T, host login1, out *os.File, more ...string) (p *process, stateDir string) {
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

// startTwoPods starts the agent of prepareTwoPods and waits until its pods run. read is the
// end of a pipe with its output.
func startTwoPods(t *testing.T, host login1, more ...string) (p *process, read *os.File, stateDir string) {
	t.Helper()
	read, write := pipe(t)
	p, stateDir = prepareTwoPods(t, host, write, more...)
	require.NoError(t, p.command.Start())
	closeFile(t, write)
	readUntil(t, read, "2 of 2 pods run.")
	return p, read, stateDir
}

// storedReport is the report in the state folder.
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

func readStoredReport(t *testing.T, stateDir string) storedReport {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(stateDir, "graceful_node_shutdown_progress"))
	require.NoError(t, err)
	var s storedReport
	require.NoError(t, json.Unmarshal(text, &s))
	return s
}

// requireAllStopped checks that both pods of prepareTwoPods were stopped in time, one bucket
// after the other.
func requireAllStopped(t *testing.T, stateDir string) {
	t.Helper()
	r := readStoredReport(t, stateDir).Report
	require.False(t, r.Ended.IsZero(), "the drain has ended")
	require.Empty(t, r.Errors)
	require.Len(t, r.Pods, 2)
	for i, name := range []string{"web", "db"} {
		require.Equal(t, name, r.Pods[i].Name)
		require.Equal(t, "Graceful", r.Pods[i].Outcome, r.Pods[i].Error)
		require.GreaterOrEqual(t, r.Pods[i].Ended.Sub(r.Pods[i].Started), 500*time.Millisecond, "the pod had the time that it needs")
	}
}

// requireDrained waits until the agent has released its lock, checks that its pods were
// stopped, and ends the agent.
func requireDrained(t *testing.T, p *process, host login1, stateDir string) {
	t.Helper()
	host.waitReleased(t)
	requireAllStopped(t, stateDir)
	require.Zero(t, p.terminate())
}

// readUntil reads the output of an agent until it has a text.
func readUntil(t *testing.T, from *os.File, text string) {
	t.Helper()
	require.NoError(t, from.SetReadDeadline(time.Now().Add(20*time.Second)))
	output, next := "", make([]byte, 1) // a longer buffer would take what the next call needs
	for !strings.Contains(output, text) {
		_, err := from.Read(next)
		require.NoError(t, err, "%q is not in the output: %s", text, output)
		output += string(next)
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

// In nodeagent 2>&1 | tee, the end of a session ends tee first.
func TestDrainSurvivesTheEndOfItsReader(t *testing.T) {
	t.Parallel()
	host := startLogin1(t)
	p, read, stateDir := startTwoPods(t, host)
	host.Prepare(true)
	readUntil(t, read, "got SIGTERM, is ending")
	closeFile(t, read)
	requireDrained(t, p, host, stateDir)
}

// The pipe of the output is full before the drain begins, as after Ctrl-S or if the reader
// was stopped.
func TestDrainDoesNotWaitForItsReader(t *testing.T) {
	t.Parallel()
	host := startLogin1(t)
	read, write := pipe(t)
	defer closeFile(t, read)
	p, stateDir := prepareTwoPods(t, host, write)
	require.NoError(t, p.command.Start())
	readUntil(t, read, "2 of 2 pods run.")
	fillPipe(t, write)
	closeFile(t, write)
	host.Prepare(true)
	requireDrained(t, p, host, stateDir)
}

// fillPipe fills a pipe. The agent has the same end of the pipe, which is blocking again
// when fillPipe returns.
func fillPipe(t *testing.T, write *os.File) {
	t.Helper()
	fd := int(write.Fd())
	require.NoError(t, unix.SetNonblock(fd, true))
	var err error
	for err == nil {
		_, err = unix.Write(fd, []byte("filler\n"))
	}
	require.ErrorIs(t, err, unix.EAGAIN)
	require.NoError(t, unix.SetNonblock(fd, false))
}

func TestDrainSurvivesHangups(t *testing.T) {
	t.Parallel()
	host := startLogin1(t)
	p, read, stateDir := startTwoPods(t, host)
	defer closeFile(t, read)
	p.signal(syscall.SIGHUP)
	host.Prepare(true)
	readUntil(t, read, "got SIGTERM, is ending")
	p.signal(syscall.SIGHUP)
	p.signal(syscall.SIGPIPE)
	requireDrained(t, p, host, stateDir)
}

// The end of an ssh session closes the terminal: the kernel sends SIGHUP, and writing fails.
func TestDrainSurvivesTheEndOfItsTerminal(t *testing.T) {
	t.Parallel()
	host := startLogin1(t)
	master, terminal := pseudoterminal(t)
	p, stateDir := prepareTwoPods(t, host, terminal)
	p.command.Stdin = terminal
	p.command.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	require.NoError(t, p.command.Start())
	closeFile(t, terminal)
	readUntil(t, master, "2 of 2 pods run.")
	host.Prepare(true)
	readUntil(t, master, "got SIGTERM, is ending")
	closeFile(t, master)
	requireDrained(t, p, host, stateDir)
}

// pseudoterminal opens a pseudoterminal with 80 columns.
func pseudoterminal(t *testing.T) (master, terminal *os.File) {
	t.Helper()
	master, terminal, err := pty.Open()
	require.NoError(t, err)
	require.NoError(t, pty.Setsize(master, &pty.Winsize{Rows: 24, Cols: 80}))
	return master, terminal
}

// The disk of the state and of the log is full when the drain begins. All pods are stopped,
// the machine waits for that, and the output says that the report could not be stored.
func TestDrainSurvivesAFullDisk(t *testing.T) {
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

	p, _ := prepareTwoPods(t, host, write, "--state-dir="+disk)
	p.command.Stderr = log
	require.NoError(t, p.command.Start())
	closeFile(t, write)
	closeFile(t, log)
	readUntil(t, read, "2 of 2 pods run.")
	fillDisk(t, filepath.Join(disk, "filler"))
	host.Prepare(true)
	readUntil(t, read, "2 of 2 pods stopped in time.")
	host.waitReleased(t)
	readUntil(t, read, "no space left on device")
	require.Zero(t, p.terminate(), "leaving after the shutdown of a host is no failure")
}

// fillDisk writes a file until the disk is full.
func fillDisk(t *testing.T, file string) {
	t.Helper()
	f, err := os.Create(file)
	require.NoError(t, err)
	for err == nil {
		_, err = f.Write(make([]byte, 4096))
	}
	require.ErrorIs(t, err, syscall.ENOSPC)
	closeFile(t, f)
}

// nodeagent drain works with logind, too. The agent keeps running, and a second drain
// returns the same report.
func TestDrainWithLogind(t *testing.T) {
	t.Parallel()
	host := startLogin1(t)
	socketFlag := "--socket=" + filepath.Join(t.TempDir(), "s")
	p, read, stateDir := startTwoPods(t, host, socketFlag)
	defer closeFile(t, read)
	for range 2 {
		out, stderr, status := runTool(t, "drain", socketFlag)
		require.Zero(t, status, stderr)
		require.Contains(t, out, "announced by nodeagent drain")
		require.Equal(t, 2, strings.Count(out, "stopped in time"))
	}
	require.Zero(t, p.terminate())
	requireAllStopped(t, stateDir)
	out, stderr, status := runTool(t, "report", "--socket=/nonexistent", "--state-dir="+stateDir)
	require.Zero(t, status, stderr)
	require.Equal(t, 2, strings.Count(out, "stopped in time"))
}
