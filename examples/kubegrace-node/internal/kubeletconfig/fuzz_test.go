package kubeletconfig_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kubegrace/kubegrace/examples/kubegrace-node/internal/kubeletconfig"
)

// Whatever a file has, Load either returns an error that names the file, or a configuration from which
// schedules can be made without a panic, both with and without buckets by priority. The configuration need not
// be valid.
func FuzzLoad(f *testing.F) {
	for _, text := range []string{
		"", header, header + "shutdownGracePeriod: 30s\nshutdownGracePeriodCriticalPods: 10s\n", header + "shutdownGracePeriod: 9223372036854775807ns\n",
		header + "shutdownGracePeriodByPodPriority:\n- {priority: 0, shutdownGracePeriodSeconds: 9223372036854775807}\n- {priority: -2147483648}\n",
		header + "featureGates: {GracefulNodeShutdown: false}\nshutdownGracePeriod: soon\n", "kind: Pod\n", "- a", header + "---\n" + header, "null", "5",
	} {
		f.Add([]byte(text))
	}
	file := filepath.Join(f.TempDir(), "kubelet.yaml") // one file is enough: a fuzzing process runs its inputs one after the other
	f.Fuzz(func(t *testing.T, text []byte) {
		require.NoError(t, os.WriteFile(file, text, 0o600))
		c, err := kubeletconfig.Load(file, "")
		if err != nil {
			require.ErrorContains(t, err, file)
			require.Zero(t, c)
			return
		}
		for _, byPriority := range []bool{false, true} {
			c.Shutdown.Schedule(byPriority)
		}
	})
}
