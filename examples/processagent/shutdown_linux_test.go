package main_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kubegrace/kubegrace/internal/logindhost"
)

// A real systemd-logind shuts down: the processes end in order, and logind has systemd power off
// when the agent has let it go, long before the end of the delay.
func TestPodsEndInOrderWhenTheMachineShutsDown(t *testing.T) {
	if !logindhost.InNamespace(t) {
		return
	}
	host := logindhost.StartHost(t)
	folder := t.TempDir()
	binary, output := filepath.Join(folder, "processagent"), filepath.Join(folder, "output")
	out, err := exec.CommandContext(t.Context(), "go", "build", "-o", binary, ".").CombinedOutput()
	require.NoError(t, err, "%s", out)
	file, err := os.Create(output)
	require.NoError(t, err)
	agent := exec.Command(binary, "pods")
	agent.Env = append(os.Environ(), "TMPDIR="+folder)
	agent.Stdout, agent.Stderr = file, file
	require.NoError(t, agent.Start())
	require.NoError(t, file.Close())
	t.Cleanup(func() {
		if agent.ProcessState == nil { // a failed test has left it
			_ = agent.Process.Kill()
			_ = agent.Wait()
		}
	})
	printed := func() string {
		text, err := os.ReadFile(output)
		require.NoError(t, err)
		return string(text)
	}
	const patience = 30 * time.Second
	require.Eventually(t, func() bool {
		return strings.Count(printed(), " runs\n") == 5 && len(host.Inhibitors()) == 1
	}, patience, 10*time.Millisecond, "five containers run, and logind lists the lock")
	require.Equal(t, "processagent", host.Inhibitors()[0].Who)

	host.PowerOff()
	select {
	case unit := <-host.Systemd1.Started:
		require.Equal(t, "poweroff.target", unit)
	case <-time.After(patience):
		require.Fail(t, "logind still waits", printed())
	}
	require.Empty(t, host.Inhibitors(), "the lock is let go")
	ended := printed()
	require.NoError(t, agent.Process.Signal(syscall.SIGTERM)) // as systemd does then
	require.NoError(t, agent.Wait(), printed())

	require.Equal(t, 5, strings.Count(ended, " has ended: "), "all have ended before the power off: %s", ended)
	const stubborn = "container batch/stubborn/main has ended: signal: killed\n"
	for _, order := range [][2]string{
		{"container data/postgres/db has ended: exit status 0\n", stubborn},
		{stubborn, "container shop/cart/app has ended: exit status 0\n"},
		{"container shop/cart/app has ended: exit status 0\n", "container shop/cart/proxy has ended: exit status 0\n"},
		{stubborn, "container shop/web/nginx has ended: exit status 0\n"},
	} {
		first := strings.Index(ended, order[0])
		require.NotEqual(t, -1, first, "%q in %s", order[0], ended)
		require.Greater(t, strings.Index(ended, order[1]), first, "%q after %q in %s", order[1], order[0], ended)
	}
	require.Contains(t, printed(), "pod shop/web had 5 s to end: Graceful")
}
