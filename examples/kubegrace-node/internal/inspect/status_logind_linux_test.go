package inspect_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kubegrace/kubegrace/examples/kubegrace-node/internal/inspect"
	"github.com/kubegrace/kubegrace/internal/logindhost"
)

// The other tests use a fake logind. This one uses a real systemd-logind: it must list its locks as the fake
// one does, and use the limit of the file of which kubegrace-node status says that it sets the limit. Files that sort before
// 99-kubelet.conf, or have its name in /run, do not change the limit of 30 s; a.conf sorts after it and
// lowers the limit to 12 s.
func TestNodeOnARealLogind(t *testing.T) {
	if !logindhost.InNamespace(t) {
		return
	}
	host := logindhost.StartHost(t)
	m := &fakeMachine{t: t, root: "/", bus: host.Bus}
	config, pods := filepath.Join(t.TempDir(), "config.yaml"), filepath.Join(t.TempDir(), "pods.yaml")
	require.NoError(t, os.WriteFile(config, []byte(configHeader+grace30), 0o600))
	require.NoError(t, os.WriteFile(pods, []byte(nodePods), 0o600))
	look := func() (string, error) {
		r := run(t, "", "status", "--bus", host.Bus.Address, "--config", config, "--pods", pods)
		return strings.Join(strings.Fields(r.out+r.log), " "), r.err
	}
	host.Configure(kubeletFile, "[Login]\nInhibitDelayMaxSec=30\n", 30*time.Second)
	m.lock("kubelet", kubeletWhy)
	text, err := look()
	require.NoError(t, err, text)
	require.Contains(t, text, "the kubelet holds the inhibitor lock for up to 30s.")
	require.Contains(t, text, "files "+kubeletFile+": 30s, sets the limit")

	for _, file := range []struct {
		path string
		want time.Duration
	}{
		{"/run/systemd/logind.conf.d/98-site.conf", 30 * time.Second},
		{"/run/systemd/logind.conf.d/99-kubelet.conf", 30 * time.Second}, // the file of the same name in /etc hides it
		{"/run/systemd/logind.conf.d/a.conf", 12 * time.Second},
		{"/etc/systemd/logind.conf", 12 * time.Second},
	} {
		host.Configure(file.path, "[Login]\nInhibitDelayMaxSec=12s\n", file.want)
		text, err = look()
		require.NotContains(t, text, "has not read them", file.path)
	}
	require.ErrorIs(t, err, inspect.ExitStatus(2))
	require.Contains(t, text, "goes down after 12s in the middle of it, by /run/systemd/logind.conf.d/a.conf")
}
