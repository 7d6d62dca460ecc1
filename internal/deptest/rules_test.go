package deptest_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kubegrace/kubegrace/internal/deptest"
)

const (
	module  = "github.com/kubegrace/kubegrace"
	api     = "k8s.io/api"
	machine = "k8s.io/apimachinery"
	klog    = "k8s.io/klog/v2"
	gates   = "k8s.io/component-base/featuregate"
	prom    = "github.com/prometheus"
	dbus    = "github.com/godbus/dbus/v5"
	systemd = "github.com/coreos/go-systemd/v22"
	client  = "k8s.io/client-go"
)

// allowed says, for every package of the library, what it may import directly
// besides the standard library. A package that is not listed fails the test.
func allowed() map[string][]string {
	return map[string][]string{
		"graceperiod":             {api, machine},
		"metrics":                 {prom},
		"lifecycle":               {api, machine, klog, gates, module + "/graceperiod", module + "/metrics", module + "/internal/features"},
		"lifecycle/lifecycletest": {api, machine, module + "/lifecycle"},
		"shutdown":                {"golang.org/x/sys/unix", api, machine, klog, gates, module + "/graceperiod", module + "/metrics", module + "/internal/features", module + "/internal/atomicfile", module + "/internal/podcondition", module + "/internal/staticpod"},
		"shutdown/shutdowntest":   {api, machine, module + "/shutdown"},
		"shutdown/logind":         {klog, dbus, systemd, "golang.org/x/sys/unix", module + "/shutdown", module + "/internal/atomicfile"},
		"shutdown/unixsocket":     {module + "/shutdown"},
		"shutdown/apistatus":      {api, machine, klog, client, module + "/shutdown", module + "/internal/podcondition", module + "/internal/staticpod"},

		"shutdown/apistatus/apistatustest": {api, machine, module + "/graceperiod"},

		"internal/readme":     {},
		"validation":          {api, machine, gates, module + "/graceperiod", module + "/shutdown", module + "/internal/features"},
		"internal/features":   {gates},
		"internal/atomicfile": {},
		"internal/deptest":    {},
		"internal/need":       {},

		"internal/apiserverprocess": {"golang.org/x/sys/unix", "golang.org/x/sys/windows", module + "/internal/need"},
		"internal/apiserverproxy":   {machine, "golang.org/x/time/rate"},

		"internal/podcondition": {api, machine},
		"internal/staticpod":    {api},
	}
}

// fixture tells whether a package only serves the tests of its neighbours.
func fixture(path string) bool {
	return strings.Contains(path, "/internal/") && !strings.HasPrefix(path, module+"/internal/")
}

func load(t *testing.T, goos string) deptest.Graph {
	t.Helper()
	graph, err := deptest.Load(t.Context(), goos, module+"/...")
	require.NoError(t, err)
	return graph
}

func TestDirectImports(t *testing.T) {
	for _, goos := range []string{"linux", "darwin", "windows"} {
		graph, rules := load(t, goos), allowed()
		for path := range graph {
			if !strings.HasPrefix(path, module+"/") || fixture(path) {
				continue
			}
			may, listed := rules[strings.TrimPrefix(path, module+"/")]
			require.True(t, listed, "%s: no import rule", path)
			require.Empty(t, graph.Stray(path, may...), "%s imports what it may not (%s)", path, goos)
		}
	}
}

func TestNobodyReaches(t *testing.T) {
	graph := load(t, "linux")
	for path := range graph {
		if !strings.HasPrefix(path, module+"/") {
			continue
		}
		require.Empty(t, graph.Reaches(path, "k8s.io/kubernetes"), path)
		if !strings.HasPrefix(path, module+"/shutdown/apistatus") {
			require.Empty(t, graph.Reaches(path, client), path)
		}
	}
	for _, core := range []string{"graceperiod", "lifecycle", "shutdown", "validation", "metrics"} {
		require.Empty(t, graph.Reaches(module+"/"+core, dbus, systemd), "%s speaks no D-Bus", core)
	}
	require.Empty(t, graph.Reaches(module+"/lifecycle", module+"/shutdown"))
	require.Empty(t, graph.Reaches(module+"/shutdown", module+"/lifecycle"))
}

// TestInherited holds the number of packages that an embedder of the drain
// inherits; the kubelet's own needs 1,312.
func TestInherited(t *testing.T) {
	inherited := load(t, "linux").Inherited(module+"/lifecycle", module+"/shutdown", module+"/shutdown/logind")
	require.LessOrEqual(t, len(inherited), 150, "%s", strings.Join(inherited, "\n"))
}
