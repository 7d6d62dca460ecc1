package command_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kubegrace/kubegrace/shutdown/logind"
	"github.com/kubegrace/kubegrace/shutdown/logind/logindtest"
)

// runUninstall runs kubegrace-node uninstall with the system bus at an address, and returns its output.
func runUninstall(t *testing.T, address string, args ...string) (output string, err error) {
	t.Helper()
	c := exec.CommandContext(t.Context(), program, append([]string{"uninstall", "--state-dir="}, args...)...)
	c.Env = append(os.Environ(), "DBUS_SYSTEM_BUS_ADDRESS="+address)
	text, err := c.CombinedOutput()
	return string(text), err
}

// writeDropIn writes text as the agent's drop-in of logind, below a new folder that stands for the host's
// root.
func writeDropIn(t *testing.T, text string) (hostRoot, file string) {
	t.Helper()
	hostRoot = t.TempDir()
	file = filepath.Join(hostRoot, "etc/systemd/logind.conf.d", logind.DropInName)
	require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o755))
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	return hostRoot, file
}

// dropInText is a drop-in as the agent writes it: the first line tells that it is the agent's.
const dropInText = "# Written by kubegrace: how long a node shutdown may be delayed.\n[Login]\nInhibitDelayMaxSec=60\n"

// uninstall removes the agent's drop-in with its folder, and has logind read its files again (SIGHUP). A second
// uninstall finds nothing to remove, which is no error.
func TestUninstallRemovesTheDropIn(t *testing.T) {
	t.Parallel()
	broker := logindtest.StartBroker(t)
	hungUp := make(chan struct{}, 1)
	broker.OnHangUp(func() { hungUp <- struct{}{} })
	root, file := writeDropIn(t, dropInText)
	for range 2 {
		output, err := runUninstall(t, broker.Address, "--host-root="+root)
		require.NoError(t, err, output)
		require.Equal(t, "systemd-logind has no settings of this agent.\n", output)
		require.NoDirExists(t, filepath.Dir(file), "the agent has made the folder")
	}
	<-hungUp // logind reads its files again
}

// There is no bus, as while a machine is being installed. A file of the same name that the agent did not write
// is left alone. The agent's own is removed, and the error says only that logind was not reloaded.
func TestUninstallWithoutLogind(t *testing.T) {
	t.Parallel()
	root, file := writeDropIn(t, "[Login]\nInhibitDelayMaxSec=60\n")
	output, err := runUninstall(t, "unix:path=/nonexistent", "--host-root="+root)
	require.Error(t, err)
	require.Contains(t, output, file+" was not written by kubegrace; it was not changed")
	require.FileExists(t, file)
	root, file = writeDropIn(t, dropInText)
	output, err = runUninstall(t, "unix:path=/nonexistent", "--host-root="+root)
	require.Error(t, err)
	require.NoFileExists(t, file)
	require.Contains(t, output, "kubegrace-node: the drop-in was removed, but systemd-logind was not reloaded: ")
}

// While an agent runs, uninstall is refused. After that the state folder stays without --remove-state. With it
// only the file of somebody else, notes, stays; and the folder goes when that is gone, and need not exist.
func TestUninstallRemovesStateOnRequest(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	p := n.run()
	n.awaitHealth("ok")
	stateDir := filepath.Join(n.dir, "state")
	uninstall := func(want string, args ...string) {
		t.Helper()
		output, err := runUninstall(t, n.address, append(args, "--host-root="+t.TempDir(), "--state-dir="+stateDir)...)
		require.Equal(t, strings.HasPrefix(want, "kubegrace-node: "), err != nil, output)
		require.Contains(t, output, want)
	}
	uninstall("kubegrace-node: an agent uses " + stateDir + ", stop it first")
	require.Zero(t, p.terminate())
	uninstall(stateDir + " is kept, with the state of shutdowns; --remove-state removes it.\n")
	for _, name := range []string{"graceful_node_shutdown_state", ".tmp-graceful_node_shutdown_state1", "kubegrace-node_pods.json", ".tmp-kubegrace-node_plan.json7", "notes"} {
		require.NoError(t, os.WriteFile(filepath.Join(stateDir, name), nil, 0o600))
	}
	require.NoError(t, os.MkdirAll(filepath.Join(stateDir, "kubegrace-node_hooks/id"), 0o700))
	uninstall("The folder is kept", "--remove-state")
	left, err := os.ReadDir(stateDir)
	require.NoError(t, err)
	require.Len(t, left, 1)
	require.NoError(t, os.WriteFile(filepath.Join(stateDir, ".graceful_node_shutdown_lock"), nil, 0o600))
	require.NoError(t, os.Remove(filepath.Join(stateDir, "notes")))
	uninstall("Removed "+stateDir+", with the state of shutdowns.\n", "--remove-state")
	require.NoDirExists(t, stateDir)
	uninstall("systemd-logind has no settings of this agent.\n", "--remove-state")
}
