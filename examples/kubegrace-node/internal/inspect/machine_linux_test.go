package inspect_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/godbus/dbus/v5"
	"github.com/stretchr/testify/require"

	"github.com/kubegrace/kubegrace/examples/kubegrace-node/internal/inspect"
	"github.com/kubegrace/kubegrace/internal/logindfake"
	"github.com/kubegrace/kubegrace/internal/logindhost"
)

// The reasons that the kubelet and kubegrace-node give for their locks, the drop-in that a kubelet writes for
// logind, and the beginning of a kubelet's configuration file.
const (
	kubeletWhy   = "Kubelet needs time to handle node shutdown"
	kubegraceWhy = "Pods need time to end before the node shuts down"
	kubeletFile  = "/etc/systemd/logind.conf.d/99-kubelet.conf"
	configHeader = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"
)

// fakeMachine is what kubegrace-node status looks at in these tests: a folder in the place of the file system,
// and a bus with a fake logind.
type fakeMachine struct {
	t      *testing.T
	root   string // the folder
	bus    *logindhost.Bus
	login1 *logindfake.Login1
	extra  []string // more arguments of status
}

// newMachine returns a machine on which only logind runs: no kubelet, no lock, no configuration. All users may read
// the machine's folder, for [fakeMachine.lookAsNobody].
func newMachine(t *testing.T) *fakeMachine {
	t.Helper()
	root, err := os.MkdirTemp("", "machine") // the folders of t.TempDir are closed to other users
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(root)) })
	require.NoError(t, os.Chmod(root, 0o755)) //nolint:gosec // it is to be read
	m := &fakeMachine{t: t, root: root, bus: logindhost.StartBus(t, filepath.Join(root, "bus"))}
	m.login1 = logindfake.StartLogin1(t, m.bus.Address)
	m.write("/proc/1/cmdline", "/sbin/init\x00")
	m.write("/etc/hostname", "worker-1\n")
	return m
}

// write writes a file of the machine that all users may read.
func (m *fakeMachine) write(path, text string) {
	m.t.Helper()
	full := filepath.Join(m.root, path)
	require.NoError(m.t, os.MkdirAll(filepath.Dir(full), 0o755))  //nolint:gosec // it is to be read
	require.NoError(m.t, os.WriteFile(full, []byte(text), 0o644)) //nolint:gosec // it is to be read
}

// dropIn writes a configuration file of logind that sets InhibitDelayMaxSec. The fake logind does not read it:
// the caller also sets the limit of m.login1.
func (m *fakeMachine) dropIn(path string, limit time.Duration) {
	m.t.Helper()
	m.write(path, fmt.Sprintf("# some words\n[Login]\nInhibitDelayMaxSec=%.0f\n", limit.Seconds()))
}

// kubelet makes a kubelet appear among the processes of the machine, with this configuration and these
// additional flags. It gets the PID of the test process, because the locks that the test takes have that PID
// too.
func (m *fakeMachine) kubelet(config string, flags ...string) {
	m.t.Helper()
	m.write("/var/lib/kubelet/config.yaml", configHeader+config)
	words := append([]string{"/usr/bin/kubelet", "--config=/var/lib/kubelet/config.yaml"}, flags...)
	m.write(fmt.Sprintf("/proc/%d/cmdline", os.Getpid()), strings.Join(words, "\x00")+"\x00")
}

// stock makes a stock kubelet with 30 s appear: its configuration, its process, and its drop-in, whose limit
// logind uses. The kubelet has no lock; a test that needs one calls lock.
func (m *fakeMachine) stock() {
	m.t.Helper()
	m.dropIn(kubeletFile, 30*time.Second)
	m.login1.SetLimit(30 * time.Second)
	m.kubelet(grace30)
}

// pods writes nodePods to a file and appends more to it. It returns the arguments that make status read the
// file.
func (m *fakeMachine) pods(more string) []string {
	m.t.Helper()
	m.write("/pods.yaml", nodePods+more)
	return []string{"--pods", filepath.Join(m.root, "pods.yaml")}
}

// lock takes an inhibitor lock for shutdowns, which is held until the test ends.
func (m *fakeMachine) lock(who, why string) {
	m.t.Helper()
	var lock dbus.UnixFD
	err := m.bus.Connect().Object("org.freedesktop.login1", "/org/freedesktop/login1").
		CallWithContext(m.t.Context(), "org.freedesktop.login1.Manager.Inhibit", 0, "shutdown", who, why, "delay").Store(&lock)
	require.NoError(m.t, err)
	m.t.Cleanup(func() { require.NoError(m.t, syscall.Close(int(lock))) })
}

// args returns the arguments of kubegrace-node for a look at the machine.
func (m *fakeMachine) args(more ...string) []string {
	return slices.Concat([]string{"status", "--root", m.root, "--bus", m.bus.Address}, m.extra, more)
}

// wide is a number of columns at which no line is wrapped. Otherwise the length of a PID would decide where a
// line breaks.
const wide = "2000"

// look runs kubegrace-node status on the machine, and makes its output the same in every run (see stable).
func (m *fakeMachine) look(more ...string) result {
	m.t.Helper()
	m.t.Setenv("COLUMNS", wide)
	r := run(m.t, "", m.args(more...)...)
	r.out = m.stable(r.out)
	return r
}

// stable replaces what differs from run to run: the PID becomes 812, the user 0, and the folder ROOT.
func (m *fakeMachine) stable(text string) string {
	text = regexp.MustCompile(`\b`+strconv.Itoa(os.Getpid())+`\b`).ReplaceAllString(text, "812")
	text = regexp.MustCompile(`user \d+`).ReplaceAllString(text, "user 0")
	return strings.ReplaceAll(text, m.root, "ROOT")
}

// nodeArgs is the environment variable with the arguments for [TestProcessOfNobody].
const nodeArgs = "KUBEGRACE_NODE_ARGS"

// testProgram copies the program of this test into a folder that the user nobody can read, and returns the path of
// the copy.
func testProgram(t *testing.T) string {
	t.Helper()
	folder, err := os.MkdirTemp("", "program") // not t.TempDir: other users cannot enter its folders
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(folder)) })
	program := filepath.Join(folder, "test")
	self, err := os.ReadFile("/proc/self/exe")
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(program, self, 0o600))
	for _, path := range []string{folder, program} {
		require.NoError(t, os.Chmod(path, 0o755)) //nolint:gosec // others run it
	}
	return program
}

// lookAsNobody is look as the user nobody (65534), in a process of its own. If the test is not run by root, the
// process has the test's user.
func (m *fakeMachine) lookAsNobody(program string, more ...string) result {
	m.t.Helper()
	c := exec.CommandContext(m.t.Context(), program, "-test.run=^TestProcessOfNobody$")
	if os.Getuid() == 0 {
		c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	}
	c.Env = append(os.Environ(), nodeArgs+"="+strings.Join(m.args(more...), "\n"), "COLUMNS="+wide)
	c.Dir = m.root
	var out, log bytes.Buffer
	c.Stdout, c.Stderr = &out, &log
	err := c.Run()
	text, _, _ := strings.Cut(out.String(), "PASS\n") // the test binary prints it after the command's output
	if code := c.ProcessState.ExitCode(); code > 0 {
		err = inspect.ExitStatus(code)
	}
	return result{m.stable(text), log.String(), err}
}

// TestProcessOfNobody is no test: it is the process that lookAsNobody starts, and does nothing otherwise.
func TestProcessOfNobody(t *testing.T) {
	args := os.Getenv(nodeArgs)
	if args == "" {
		return // it is not that process
	}
	err := newCommand(strings.Split(args, "\n")...).ExecuteContext(t.Context())
	var status inspect.ExitStatus
	switch {
	case errors.As(err, &status):
		os.Exit(int(status)) //nolint:forbidigo // as main does
	case err != nil:
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1) //nolint:forbidigo // as main does
	}
}
