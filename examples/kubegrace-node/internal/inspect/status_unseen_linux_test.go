package inspect_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// In each case something cannot be seen that decides on the shutdown. status must name it, say how to make it
// visible, and end with 4, although all else is well. It must not call a lock or a drop-in left over either,
// which an operator might then remove.
func TestWhatCannotBeSeen(t *testing.T) {
	kubeletsCommandLine := fmt.Sprintf("/proc/%d/cmdline", os.Getpid())
	remove := func(path string) func(*fakeMachine) {
		return func(m *fakeMachine) { require.NoError(m.t, os.RemoveAll(filepath.Join(m.root, path))) }
	}
	for name, test := range map[string]struct {
		hide func(m *fakeMachine)
		args []string // nil: --pods with the pods
		want []string
	}{
		"the pods":          {func(*fakeMachine) {}, []string{}, []string{"the pods: the API server: no kubeconfig is known (give --kubeconfig, or with --pods a file"}},
		"no cluster":        {func(*fakeMachine) {}, []string{"--kubeconfig", "in-cluster"}, []string{"the API server: unable to load in-cluster configuration"}},
		"the processes":     {remove("proc/1"), nil, []string{"the processes: the processes of others are hidden from this user (run it as root"}},
		"a file of logind":  {func(m *fakeMachine) { m.write("/usr/lib/systemd/logind.conf.d", "a file in the place of a folder") }, nil, []string{"/usr/lib/systemd/logind.conf.d: not a directory"}},
		"the kubelet":       {remove(kubeletsCommandLine), nil, []string{"the kubelet: its lock is held, and no process is known as one (give --config"}},
		"its configuration": {remove("var/lib/kubelet/config.yaml"), nil, []string{"whether that covers its configuration could not be seen", "config.yaml: failed to read: no such file"}},
		"no bus":            {func(m *fakeMachine) { m.bus.Stop() }, nil, []string{"cannot be told: systemd-logind could not be asked", "failed to reach the system bus"}},
		"no logind":         {func(m *fakeMachine) { m.login1.Close() }, nil, []string{"cannot be told", "systemd-logind does not run (systemctl status systemd-logind)"}},
		"a kubelet in k3s": {func(m *fakeMachine) {
			m.write(kubeletsCommandLine, "/usr/local/bin/k3s\x00server\x00--config\x00/etc/rancher/k3s/config.yaml\x00")
		}, nil, []string{"the configuration of the kubelet in k3s (PID 812): its command line does not have it", "proxy/configz"}},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMachineWithLock(t, "")
			test.hide(m)
			if test.args == nil {
				test.args = m.pods("")
			}
			r := m.look(test.args...)
			requireStatus(t, 4, r)
			require.Contains(t, r.out, "Not seen:")
			require.NotContains(t, r.out, "left over", "a kubelet or its lock is there")
			for _, want := range test.want {
				require.Contains(t, r.out, want)
			}
		})
	}
}

// The user nobody first may read everything: status 0. Then the kubelet's configuration and its drop-in are
// closed to other users: status 4 with both files named. A file of --pods that may not be read is an error,
// because the user named it.
func TestNobodyIsToldWhatHeMayNotSee(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("needs root, to be nobody")
	}
	m, program := newMachineWithLock(t, ""), testProgram(t)
	pods := m.pods("")
	requireStatus(t, 0, m.lookAsNobody(program, pods...))
	require.NoError(t, os.Chmod(filepath.Join(m.root, "var/lib/kubelet/config.yaml"), 0o600))
	require.NoError(t, os.Chmod(filepath.Join(m.root, kubeletFile), 0o600))
	r := m.lookAsNobody(program, pods...)
	requireStatus(t, 4, r)
	text := strings.Join(strings.Fields(r.out), " ")
	require.Contains(t, text, "config.yaml: failed to read: permission denied (run it as root)")
	require.Contains(t, text, " - /etc/systemd/logind.conf.d/99-kubelet.conf: permission denied (run it as root)")
	require.NotContains(t, text, "has not read them since they changed")

	require.NoError(t, os.Chmod(filepath.Join(m.root, "var/lib/kubelet/config.yaml"), 0o644)) //nolint:gosec // it is to be read
	require.NoError(t, os.Chmod(pods[1], 0o600))
	r = m.lookAsNobody(program, pods...)
	requireStatus(t, 1, r)
	require.Contains(t, r.log, "pods.yaml: permission denied")
}
