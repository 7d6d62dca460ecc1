package criruntime_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kubegrace/kubegrace/internal/deptest"
	"github.com/kubegrace/kubegrace/internal/docprogram"
)

// The module imports little besides CRI and gRPC. Of kubegrace it imports only public packages, because the
// importer chooses kubegrace's version.
func TestImports(t *testing.T) {
	const (
		kubegrace = "github.com/kubegrace/kubegrace"
		here      = kubegrace + "/lifecycle/criruntime"
		api       = "k8s.io/cri-api/pkg/apis/runtime/v1"
	)
	graph, err := deptest.Load(t.Context(), "", "./...", kubegrace+"/lifecycle", api)
	require.NoError(t, err)
	require.Contains(t, graph, here)
	require.Empty(t, graph.Disallowed(here,
		api, "google.golang.org/grpc", "k8s.io/api", "k8s.io/apimachinery", "k8s.io/klog/v2", kubegrace+"/graceperiod", kubegrace+"/lifecycle"))
	require.Empty(t, graph.DepsWithin(here, "k8s.io/kubernetes", "k8s.io/client-go", "github.com/godbus/dbus/v5", kubegrace+"/shutdown"))
	added := len(graph.Inherited(kubegrace, here)) - len(graph.Inherited(kubegrace, kubegrace+"/lifecycle"))
	require.LessOrEqual(t, added, 110, "packages of other modules that lifecycle does not have: gRPC and CRI")
}

// The program in the package documentation must compile, because users copy it.
func TestTheProgramInTheDocumentationCompiles(t *testing.T) {
	t.Parallel()
	require.Equal(t, []string{"."}, docprogram.Compile(t, "."))
}
