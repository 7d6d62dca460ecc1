package agent_test

import (
	"net"
	"net/http"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kubegrace/kubegrace/examples/kubegrace-node/internal/api"
	"github.com/kubegrace/kubegrace/examples/kubegrace-node/internal/socket"
	"github.com/kubegrace/kubegrace/examples/kubegrace-node/internal/units"
)

// POST /drain stops the pod and answers with the report; a second one answers with the same report. The node
// stays drained when the agent is restarted with the same /run, until POST /undrain. While it is drained the
// agent holds no lock.
func TestDrainAndUndrain(t *testing.T) {
	b, path, run := newTestbed(t, podOf("web", 0, "{exitAfterTerm: 10ms}")), filepath.Join(t.TempDir(), "s"), t.TempDir()
	// ask sends a request on the agent's socket.
	ask := func(method, resource string, answer any) error {
		return api.Request(t.Context(), path, method, resource, answer)
	}
	awaitStatus := func(drained bool) {
		t.Helper()
		require.Eventually(t, func() bool {
			var status api.Status
			return ask(http.MethodGet, "/status", &status) == nil && status.Drained == drained && status.ShuttingDown == drained && status.Held == !drained
		}, 20*time.Second, 10*time.Millisecond)
	}
	// start starts an agent that finds in run what the previous one has stored.
	start := func() {
		var err error
		b.opts.Units, err = units.New(run, nil)
		require.NoError(t, err)
		b.opts.Control = func() (net.Listener, error) { return socket.Listen(path) }
		b.start()
	}
	start()
	awaitStatus(false)
	require.ErrorContains(t, ask(http.MethodPost, "/undrain", &api.Meta{}), "this node is not drained")
	for range 2 {
		var report api.Report
		require.NoError(t, ask(http.MethodPost, "/drain", &report))
		require.Len(t, report.Shutdown.Pods, 1)
		require.Equal(t, "Graceful", report.Shutdown.Pods[0].Outcome)
	}
	awaitStatus(true)
	b.signals <- syscall.SIGTERM
	require.NoError(t, <-b.result)
	start()
	awaitStatus(true)
	require.NoError(t, ask(http.MethodPost, "/undrain", &api.Meta{}))
	awaitStatus(false)
	b.signals <- syscall.SIGTERM
	require.NoError(t, <-b.result)
}
