package command_test

import (
	"os"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSignalsWithoutAHost(t *testing.T) {
	t.Parallel()
	quick := folder(t, map[string]string{"pod.yaml": scripted("web", "exits 10ms after TERM")})
	t.Run("SIGTERM drains", func(t *testing.T) {
		t.Parallel()
		p := start(t, "--manifests="+quick)
		p.waitFor("1 of 1 pods run.")
		require.Zero(t, p.terminate())
		require.Contains(t, p.out.String(), "1 of 1 pod stopped in time.")
	})
	t.Run("SIGINT leaves", func(t *testing.T) {
		t.Parallel()
		p := start(t, "--manifests="+quick)
		p.waitFor("1 of 1 pods run.")
		p.signal(os.Interrupt)
		require.Zero(t, p.waitExit())
		require.NotContains(t, p.out.String(), "stopped in time")
	})
	t.Run("a second one ends the waiting", func(t *testing.T) {
		t.Parallel()
		p := start(t, "--manifests="+folder(t, map[string]string{"pod.yaml": scripted("web", "ignores TERM")}))
		p.waitFor("1 of 1 pods run.")
		p.signal(syscall.SIGTERM)
		p.waitFor("got SIGTERM, is ending")
		p.signal(syscall.SIGTERM)
		p.waitFor("SIGTERM: the pods are being stopped, and that goes on.")
		require.Equal(t, 1, p.terminate())
		require.Equal(t, "nodeagent: a second SIGTERM ended the waiting for default/web\n", p.stderr.String())
	})
}
