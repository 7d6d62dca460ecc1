package command_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The agent follows manifests that are added, changed and removed while it runs.
func TestManifestsAreWatched(t *testing.T) {
	t.Parallel()
	p, dir, _ := startWithSocket(t, map[string]string{"web.yaml": scripted("web", "exits 10ms after TERM")})
	write := func(name, text string) {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	write("db.yaml", scripted("db", "exits 10ms after TERM"))
	p.waitFor("default/db               runs")
	write("web.yaml", strings.Replace(scripted("web", "exits 10ms after TERM"), "60", "61", 1))
	p.waitFor("default/web: its manifest has changed, it is stopped and then started again.")
	require.NoError(t, os.Remove(filepath.Join(dir, "db.yaml")))
	p.waitFor("default/db: its manifest is gone, it is stopped.")
	write("web.yaml", "kind: [")
	require.Eventually(t, func() bool {
		return strings.Contains(p.stderr.String(), "Failed to read the manifests again, the pods stay as they are")
	}, 20*time.Second, 5*time.Millisecond)
	require.Zero(t, p.terminate())
	require.Contains(t, p.out.String(), "1 of 1 pod stopped in time.")
}
