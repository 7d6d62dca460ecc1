package inspect_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/godbus/dbus/v5"
	"github.com/stretchr/testify/require"

	"github.com/kubegrace/kubegrace/examples/kubegrace-node/internal/inspect"
	"github.com/kubegrace/kubegrace/examples/kubegrace-node/internal/nobodytest"
	"github.com/kubegrace/kubegrace/internal/logindhost"
	"github.com/kubegrace/kubegrace/shutdown/logind/logindtest"
)

const (
	kubeletWhy   = "Kubelet needs time to handle node shutdown"
	kubegraceWhy = "Pods need time to end before the node shuts down"
	kubeletFile  = "/etc/systemd/logind.conf.d/99-kubelet.conf"
	configHeader = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"
)

// fakeMachine is a machine of a folder, and a bus with a scripted logind.
type fakeMachine struct {
	t      *testing.T
	root   string
	bus    *logindhost.Bus
	login1 *logindtest.Login1 // nil: none runs
}

// newMachine returns a machine on which nothing but logind runs.
func newMachine(t *testing.T) *fakeMachine {
	t.Helper()
	m := newMachineWithoutLogind(t)
	m.login1 = logindtest.StartLogin1(t, m.bus.Address)
	return m
}

// newMachineWithoutLogind returns a machine with a bus on which nobody is. All users may read it.
func newMachineWithoutLogind(t *testing.T) *fakeMachine {
	t.Helper()
	root, err := os.MkdirTemp("", "machine") // the folders of t.TempDir are closed to other users
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(root)) })
	require.NoError(t, os.Chmod(root, 0o755)) //nolint:gosec // it is to be read
	m := &fakeMachine{t: t, root: root, bus: logindhost.StartBus(t, filepath.Join(root, "bus"))}
	m.write("/proc/1/cmdline", "/sbin/init\x00")
	m.write("/etc/hostname", "worker-1\n")
	return m
}

func (m *fakeMachine) write(path, text string) {
	m.t.Helper()
	full := filepath.Join(m.root, path)
	require.NoError(m.t, os.MkdirAll(filepath.Dir(full), 0o755))  //nolint:gosec // it is to be read
	require.NoError(m.t, os.WriteFile(full, []byte(text), 0o644)) //nolint:gosec // it is to be read
}

// dropIn writes a file of logind that sets the limit.
func (m *fakeMachine) dropIn(path string, limit time.Duration) {
	m.t.Helper()
	m.write(path, fmt.Sprintf("# some words\n[Login]\nInhibitDelayMaxSec=%.0f\n", limit.Seconds()))
}

// kubelet starts a kubelet with a configuration file, and more flags. It has the PID of this process,
// as the locks have.
func (m *fakeMachine) kubelet(config string, flags ...string) {
	m.t.Helper()
	m.write("/var/lib/kubelet/config.yaml", configHeader+config)
	words := append([]string{"/usr/bin/kubelet", "--config=/var/lib/kubelet/config.yaml"}, flags...)
	m.write(fmt.Sprintf("/proc/%d/cmdline", os.Getpid()), strings.Join(words, "\x00")+"\x00")
}

// stock makes what a stock kubelet makes: a drop-in for its 30 s, by which logind goes, and its configuration. It takes no lock.
func (m *fakeMachine) stock() {
	m.t.Helper()
	m.dropIn(kubeletFile, 30*time.Second)
	m.login1.SetLimit(30 * time.Second)
	m.kubelet(grace30)
}

// pods writes the pods of the machine to a file, with more of them, and returns the arguments for it.
func (m *fakeMachine) pods(more string) []string {
	m.t.Helper()
	m.write("/pods.yaml", nodePods+more)
	return []string{"--pods", filepath.Join(m.root, "pods.yaml")}
}

// lock takes a lock.
func (m *fakeMachine) lock(who, why, mode string) {
	m.t.Helper()
	var lock dbus.UnixFD
	err := m.bus.Connect().Object("org.freedesktop.login1", "/org/freedesktop/login1").
		CallWithContext(m.t.Context(), "org.freedesktop.login1.Manager.Inhibit", 0, "shutdown", who, why, mode).Store(&lock)
	require.NoError(m.t, err)
	m.t.Cleanup(func() { require.NoError(m.t, syscall.Close(int(lock))) })
}

// args returns the arguments for a look at the machine.
func (m *fakeMachine) args(more ...string) []string {
	return append([]string{"status", "--root", m.root, "--bus", m.bus.Address}, more...)
}

// wide is a number of columns at which no line breaks, so that it does not matter how long a PID is.
const wide = "2000"

// look runs kubegrace-node status, and replaces what is another one each time.
func (m *fakeMachine) look(more ...string) result {
	m.t.Helper()
	var out, log bytes.Buffer
	streams := inspect.Streams{Out: &out, Err: &log, Getenv: func(name string) string { return map[string]string{"COLUMNS": wide}[name] }}
	err := execute(m.t, streams, m.args(more...))
	return result{m.stable(out.String()), log.String(), err}
}

// stable replaces the PID, the user and the folder, which are others each time.
func (m *fakeMachine) stable(text string) string {
	text = regexp.MustCompile(`\b`+strconv.Itoa(os.Getpid())+`\b`).ReplaceAllString(text, "812")
	text = regexp.MustCompile(`user \d+`).ReplaceAllString(text, "user 0")
	return strings.ReplaceAll(text, m.root, "ROOT")
}

// nodeArgs is an environment variable with the arguments of [TestLookAsNobody]'s process.
const nodeArgs = "KUBEGRACE_NODE_ARGS"

// lookAsNobody is look in a process of the user nobody. Without root it is a process of this user.
func (m *fakeMachine) lookAsNobody(program string, more ...string) result {
	m.t.Helper()
	c := nobodytest.Command(m.t, program, "TestProcessOfNobody")
	c.Env = append(os.Environ(), nodeArgs+"="+strings.Join(m.args(more...), "\n"), "COLUMNS="+wide)
	c.Dir = m.root
	var out, log bytes.Buffer
	c.Stdout, c.Stderr = &out, &log
	err := c.Run()
	text, _, _ := strings.Cut(out.String(), "PASS\n")
	if code := c.ProcessState.ExitCode(); code > 0 {
		err = inspect.ExitStatus(code)
	}
	return result{m.stable(text), log.String(), err}
}

// TestProcessOfNobody is the process of lookAsNobody.
func TestProcessOfNobody(t *testing.T) {
	args := os.Getenv(nodeArgs)
	if args == "" {
		return // it is not that process
	}
	err := execute(t, inspect.OpenStreams(), strings.Split(args, "\n"))
	var status inspect.ExitStatus
	switch {
	case errors.As(err, &status):
		os.Exit(int(status)) //nolint:forbidigo // as main does
	case err != nil:
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1) //nolint:forbidigo // as main does
	}
}
