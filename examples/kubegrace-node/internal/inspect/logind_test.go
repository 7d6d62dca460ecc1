package inspect_test

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kubegrace/kubegrace/examples/kubegrace-node/internal/inspect"
	"github.com/kubegrace/kubegrace/internal/need"
)

// A D-Bus daemon starts a service that is not running as soon as somebody calls it. Looking must change
// nothing, so status must not start logind that way. Here the service of logind is a program that creates the
// file "started": that file must not appear, and the status is 4, because logind cannot be asked.
func TestNothingIsStarted(t *testing.T) {
	data, root := t.TempDir(), t.TempDir()
	started := filepath.Join(data, "started")
	require.NoError(t, os.MkdirAll(filepath.Join(data, "dbus-1/services"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(data, "dbus-1/services/org.freedesktop.login1.service"),
		[]byte("[D-BUS Service]\nName=org.freedesktop.login1\nExec=/usr/bin/touch "+started+"\n"), 0o600))
	t.Setenv("XDG_DATA_HOME", data)
	daemon := exec.CommandContext(t.Context(), need.Program(t, "dbus-daemon", "dbus"), "--session", "--nofork", "--print-address=1")
	out, err := daemon.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, daemon.Start())
	t.Cleanup(func() { _ = daemon.Wait() }) // the end of the context has killed it, which is an error
	address, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	r := run(t, "", "status", "--root", root, "--bus", strings.TrimSpace(address))
	require.ErrorIs(t, r.err, inspect.ExitStatus(4))
	require.Contains(t, r.out, "systemd-logind does not run")
	require.NoFileExists(t, started)
}
