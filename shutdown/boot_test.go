//go:build go1.25

package shutdown_test

import (
	"os"
	"path/filepath"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/shutdown"
	"github.com/kubegrace/kubegrace/shutdown/shutdowntest"
)

// The state files of a manager: the kubelet's and kubegrace's own.
const (
	timesFile    = "graceful_node_shutdown_state"
	progressFile = "graceful_node_shutdown_progress"
)

// boot is a boot of the host, on which agents run one after the other.
type boot struct {
	id    string
	began time.Time
	err   error // of reading the ID and the clock
}

func (b *boot) sinceBoot() (string, time.Duration, error) {
	return b.id, time.Since(b.began) + time.Hour, b.err
}

// runOnBoot makes a manager on a boot, starts it, and waits until it is ready.
func (n *node) runOnBoot(b *boot) {
	n.t.Helper()
	m, err := shutdown.NewManagerOn(n.opts, b.sinceBoot)
	require.NoError(n.t, err)
	n.start(m)
	<-m.Ready()
	synctest.Wait()
}

// crash ends the agent like kill -9: the next agent finds the state files as they were before. It
// also replaces the killer, so that the kills of the next agent are counted from 0.
func (n *node) crash() {
	n.t.Helper()
	files := map[string][]byte{}
	for _, name := range []string{timesFile, progressFile} {
		data, err := os.ReadFile(filepath.Join(n.opts.StateDir, name))
		require.NoError(n.t, err)
		files[name] = data
	}
	n.end()
	for name, data := range files {
		require.NoError(n.t, os.WriteFile(filepath.Join(n.opts.StateDir, name), data, 0o644))
	}
	n.killer = &shutdowntest.Killer{Default: n.killer.Default}
	n.opts.Killer = n.killer
}

func twoPods() []*v1.Pod {
	return list(shutdowntest.Pod("web", 0, 60), shutdowntest.Pod("etcd", topPriority, 60))
}
