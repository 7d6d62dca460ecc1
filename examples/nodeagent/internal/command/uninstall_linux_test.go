package command_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kubegrace/kubegrace/shutdown/logind"
)

// uninstall runs the command against a bus and a host of its own, and gives what it says.
func uninstall(t *testing.T, address string, args ...string) (said string, err error) {
	t.Helper()
	c := exec.CommandContext(t.Context(), program, append([]string{"uninstall"}, args...)...)
	c.Env = append(os.Environ(), "DBUS_SYSTEM_BUS_ADDRESS="+address)
	text, err := c.CombinedOutput()
	return string(text), err
}

// ownDropIn writes the file by which the agent raises logind's limit.
func ownDropIn(t *testing.T, text string) (root, file string) {
	t.Helper()
	root = t.TempDir()
	file = filepath.Join(root, "etc/systemd/logind.conf.d", logind.DropInName)
	require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o755))
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	return root, file
}

const dropInText = "# Written by kubegrace: how long a node shutdown may be delayed.\n[Login]\nInhibitDelayMaxSec=60\n"

func TestUninstallRemovesTheDropIn(t *testing.T) {
	t.Parallel()
	host := startLogin1(t)
	signals := host.reloadable(t)
	root, file := ownDropIn(t, dropInText)
	said, err := uninstall(t, host.address, "--host-root="+root)
	require.NoError(t, err, said)
	require.NoFileExists(t, file)
	require.EqualValues(t, syscall.SIGHUP, <-signals, "logind reads its files again")
	require.Equal(t, "Removed "+file+".\nsystemd-logind goes by its other settings again.\n", said)
	said, err = uninstall(t, host.address, "--host-root="+root)
	require.NoError(t, err, said)
	require.Equal(t, "systemd-logind has no settings of this agent.\n", said)
}

func TestUninstallLeavesTheFilesOfOthers(t *testing.T) {
	t.Parallel()
	root, file := ownDropIn(t, "[Login]\nInhibitDelayMaxSec=60\n")
	said, err := uninstall(t, "unix:path=/nonexistent", "--host-root="+root)
	require.Error(t, err)
	require.Contains(t, said, file+" was not written by kubegrace; it is left alone")
	require.FileExists(t, file)
}

// The machine may be in the middle of an installation, without a bus.
func TestUninstallWithoutLogind(t *testing.T) {
	t.Parallel()
	root, file := ownDropIn(t, dropInText)
	said, err := uninstall(t, "unix:path=/nonexistent", "--host-root="+root)
	require.Error(t, err)
	require.NoFileExists(t, file)
	require.Contains(t, said, "Removed "+file+".\nnodeagent: the drop-in is removed, but systemd-logind has not heard of it: ")
}

func TestUninstallRemovesStateOnRequest(t *testing.T) {
	t.Parallel()
	host := startLogin1(t)
	read, write := pipe(t)
	defer closeFile(t, read)
	p, stateDir := drained(t, host, write)
	require.NoError(t, p.command.Start())
	closeFile(t, write)
	reads(t, read, "2 of 2 pods run.")
	host.announce(t)
	reads(t, read, "2 of 2 pods stopped in time.")
	remove := []string{"--host-root=" + t.TempDir(), "--state-dir=" + stateDir, "--remove-state"}

	said, err := uninstall(t, host.address, remove...)
	require.Error(t, err)
	require.Contains(t, said, "nodeagent: an agent uses "+stateDir+", stop it first")
	allStopped(t, stateDir)

	p.signal(syscall.SIGTERM)
	require.Zero(t, p.exit())
	said, err = uninstall(t, host.address, remove[:2]...)
	require.NoError(t, err, said)
	require.Contains(t, said, stateDir+" is kept, with the state of shutdowns; --remove-state removes it.\n")
	allStopped(t, stateDir)

	said, err = uninstall(t, host.address, remove...)
	require.NoError(t, err, said)
	require.Contains(t, said, "Removed "+stateDir+", with the state of shutdowns.\n")
	require.NoDirExists(t, stateDir)

	said, err = uninstall(t, host.address, remove...)
	require.NoError(t, err, said)
	require.Contains(t, said, stateDir+" has no state of shutdowns.\n")
}

func TestUninstallKeepsTheFilesOfOthersInTheStateFolder(t *testing.T) {
	t.Parallel()
	stateDir := folder(t, map[string]string{".graceful_node_shutdown_lock": "", "graceful_node_shutdown_state": "{}", ".tmp-graceful_node_shutdown_state1": "", "notes": "mine"})
	said, err := uninstall(t, "unix:path=/nonexistent", "--host-root="+t.TempDir(), "--state-dir="+stateDir, "--remove-state")
	require.NoError(t, err, said)
	require.Contains(t, said, "The folder is kept")
	left, err := os.ReadDir(stateDir)
	require.NoError(t, err)
	require.Len(t, left, 1)
	require.Equal(t, "notes", left[0].Name())
}

func TestUninstallSaysWhatItNeeds(t *testing.T) {
	t.Parallel()
	said, err := uninstall(t, "unix:path=/nonexistent", "--remove-state")
	require.Error(t, err)
	require.Equal(t, "nodeagent: --state-dir: Required value: with --remove-state\n", said)
}
