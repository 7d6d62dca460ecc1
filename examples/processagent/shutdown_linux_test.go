package main

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kubegrace/kubegrace/internal/logindhost"
)

// A real systemd-logind is asked to power off. It starts the power off only when the agent has drained its pods and released
// its inhibitor lock. TestSIGTERMDrainsThePodsInOrder has the order.
func TestAShutdownDrainsThePods(t *testing.T) {
	if !logindhost.InNamespace(t) {
		return
	}
	host := logindhost.StartHost(t)
	folder := t.TempDir()
	output := filepath.Join(folder, "output")
	file, err := os.Create(output)
	require.NoError(t, err)
	agent := command(t, "pods")
	agent.Env = append(agent.Env, "TMPDIR="+folder)
	agent.Stdout, agent.Stderr = file, file
	require.NoError(t, agent.Start())
	require.NoError(t, file.Close())
	t.Cleanup(func() {
		if agent.ProcessState == nil { // the test failed
			_ = agent.Process.Kill()
			_ = agent.Wait()
		}
	})
	printed := func() string {
		text, err := os.ReadFile(output)
		require.NoError(t, err)
		return string(text)
	}
	const timeout = 30 * time.Second
	require.Eventually(t, func() bool {
		return strings.Count(printed(), " runs\n") == 5 && len(host.Inhibitors()) == 1
	}, timeout, 10*time.Millisecond, "five running containers and one inhibitor lock")
	require.Equal(t, "processagent", host.Inhibitors()[0].Who)

	host.PowerOff()
	select {
	case unit := <-host.Systemd1.Started:
		require.Equal(t, "poweroff.target", unit)
	case <-time.After(timeout):
		require.Fail(t, "logind still waits", printed())
	}
	require.Empty(t, host.Inhibitors(), "the lock is released")
	ended := printed()
	require.NoError(t, agent.Process.Signal(syscall.SIGTERM)) // as systemd does next
	require.NoError(t, agent.Wait(), printed())

	require.Equal(t, 5, strings.Count(ended, " has ended: "), "containers that exited before the power off: %s", ended)
	require.Contains(t, printed(), "pod shop/web had 5 s to end: Graceful") // its terminationGracePeriodSeconds
}
