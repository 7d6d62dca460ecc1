package inspect_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kubegrace/kubegrace/examples/kubegrace-node/internal/inspect"
	"github.com/kubegrace/kubegrace/internal/logindhost"
)

// A real systemd-logind goes by the file that kubegrace-node plan says wins, and lists the locks as the
// scripted one does.
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
		var out bytes.Buffer
		err := execute(t, inspect.Streams{Out: &out, Err: &out, Getenv: func(string) string { return "" }},
			[]string{"status", "--bus", host.Bus.Address, "--config", config, "--pods", pods})
		return strings.Join(strings.Fields(out.String()), " "), err
	}
	host.Configure(kubeletFile, "[Login]\nInhibitDelayMaxSec=30\n", 30*time.Second)
	m.lock("kubelet", kubeletWhy, "delay")
	text, err := look()
	require.NoError(t, err, text)
	require.Contains(t, text, "the kubelet holds the host back, for up to 30s.")
	require.Contains(t, text, "files "+kubeletFile+": 30s, wins")

	for _, file := range []struct {
		path string
		want time.Duration
	}{
		{"/run/systemd/logind.conf.d/98-site.conf", 30 * time.Second},
		{"/run/systemd/logind.conf.d/99-kubelet.conf", 30 * time.Second}, // that of /etc has its name
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
