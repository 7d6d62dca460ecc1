package command_test

import (
	"os"
	"os/exec"
	"path/filepath"
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

// uninstall removes the agent's drop-in with its folder, and has logind read its files again (SIGHUP). A
// second uninstall finds nothing to remove, which is no error.
func TestUninstallRemovesTheDropIn(t *testing.T) {
	t.Parallel()
	broker := logindtest.StartBroker(t)
	hungUp := make(chan struct{}, 1)
	broker.OnHangUp(func() { hungUp <- struct{}{} })
	root, file := writeDropIn(t, dropInText)
	output, err := runUninstall(t, broker.Address, "--host-root="+root)
	require.NoError(t, err, output)
	require.NoDirExists(t, filepath.Dir(file), "the agent has made the folder")
	<-hungUp // logind reads its files again
	require.Contains(t, output, "Removed "+file+".\nsystemd-logind goes by its other settings again.\n")
	output, err = runUninstall(t, broker.Address, "--host-root="+root)
	require.NoError(t, err, output)
	require.Contains(t, output, "systemd-logind has no settings of this agent.\n")
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
	require.Contains(t, output, "Removed "+file+".\nkubegrace-node: the drop-in was removed, but systemd-logind was not reloaded: ")
}

// While an agent runs, --remove-state is refused. After that the state folder stays without --remove-state,
// goes with it, and need not exist.
func TestUninstallRemovesStateOnRequest(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	p := n.run()
	n.awaitHealth("ok")
	stateDir := filepath.Join(n.dir, "state")
	remove := []string{"--host-root=" + t.TempDir(), "--state-dir=" + stateDir, "--remove-state"}
	output, err := runUninstall(t, n.address, remove...)
	require.Error(t, err)
	require.Contains(t, output, "kubegrace-node: an agent uses "+stateDir+", stop it first")
	require.Zero(t, p.terminate())
	output, err = runUninstall(t, n.address, remove[:2]...)
	require.NoError(t, err, output)
	require.Contains(t, output, stateDir+" is kept, with the state of shutdowns; --remove-state removes it.\n")
	output, err = runUninstall(t, n.address, remove...)
	require.NoError(t, err, output)
	require.Contains(t, output, "Removed "+stateDir+", with the state of shutdowns.\n")
	require.NoDirExists(t, stateDir)
	output, err = runUninstall(t, n.address, remove...)
	require.NoError(t, err, output)
	require.Contains(t, output, stateDir+" has no state of shutdowns.\n")
}

// The state folder has all kinds of the agent's files, and the file notes of somebody else. Only notes must
// stay.
func TestUninstallKeepsTheFilesOfOthersInTheStateFolder(t *testing.T) {
	t.Parallel()
	stateDir := folder(t, map[string]string{".graceful_node_shutdown_lock": "", "graceful_node_shutdown_state": "{}", ".tmp-graceful_node_shutdown_state1": "", "kubegrace-node_pods.json": "{}", ".tmp-kubegrace-node_plan.json7": "", "kubegrace-node_hooks/id": "", "notes": "mine"})
	output, err := runUninstall(t, "unix:path=/nonexistent", "--host-root="+t.TempDir(), "--state-dir="+stateDir, "--remove-state")
	require.NoError(t, err, output)
	require.Contains(t, output, "The folder is kept")
	left, err := os.ReadDir(stateDir)
	require.NoError(t, err)
	require.Len(t, left, 1)
	require.Equal(t, "notes", left[0].Name())
}
