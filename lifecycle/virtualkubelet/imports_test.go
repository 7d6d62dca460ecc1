package virtualkubelet_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kubegrace/kubegrace/internal/deptest"
)

// The module adds at most 40 packages to those that virtual-kubelet's node package imports, and imports none of a few heavy
// ones.
func TestImports(t *testing.T) {
	const (
		kubegrace = "github.com/kubegrace/kubegrace"
		here      = kubegrace + "/lifecycle/virtualkubelet"
		virtual   = "github.com/virtual-kubelet/virtual-kubelet"
	)
	graph, err := deptest.Load(t.Context(), "", "./...", virtual+"/node")
	require.NoError(t, err)
	require.Contains(t, graph, here)
	require.Empty(t, graph.Disallowed(here,
		virtual+"/node", virtual+"/errdefs", "k8s.io/api", "k8s.io/apimachinery", "k8s.io/klog/v2", "k8s.io/utils/ptr",
		kubegrace+"/graceperiod", kubegrace+"/internal/call", kubegrace+"/internal/nilcheck", kubegrace+"/internal/podkey", kubegrace+"/internal/times", kubegrace+"/lifecycle", kubegrace+"/shutdown", kubegrace+"/shutdown/podkiller"))
	require.Empty(t, graph.DepsWithin(here, "k8s.io/kubernetes", virtual+"/node/api", "github.com/godbus/dbus/v5", kubegrace+"/shutdown/apistatus"))
	added := len(graph.Inherited(kubegrace, here)) - len(graph.Inherited(kubegrace, virtual+"/node"))
	require.LessOrEqual(t, added, 40, "besides virtual-kubelet's own")
}
