package deptest_test

import (
	"io/fs"
	"path/filepath"
	"slices"
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
	signals = module + "/lifecycle/stopsignal"
	parts   = module + "/shutdown/internal" // the folder of the manager's parts
)

// allowedImports returns the allowed direct imports of each package, besides the standard library. A package
// that is not listed fails the test.
func allowedImports() map[string][]string {
	return map[string][]string{
		"graceperiod":                 {api, machine},
		"metrics":                     {prom, module + "/internal/nilcheck"},
		"lifecycle":                   {api, machine, klog, gates, module + "/graceperiod", module + "/metrics", module + "/internal/call", module + "/internal/nilcheck", module + "/internal/podkey", module + "/internal/features", module + "/lifecycle/internal/hookhttp", module + "/internal/times"},
		"lifecycle/internal/hookhttp": {api, machine, klog},
		"lifecycle/stopsignal":        {api},
		"lifecycle/lifecycletest":     {api, machine, module + "/lifecycle", module + "/graceperiod", module + "/internal/podkey", module + "/internal/times"},
		"shutdown":                    {api, machine, klog, gates, module + "/graceperiod", module + "/metrics", module + "/internal/features", module + "/internal/nilcheck", module + "/internal/podcondition", module + "/internal/podkey", module + "/internal/staticpod", module + "/internal/times", module + "/shutdown/plan", module + "/shutdown/source", module + "/internal/call", parts + "/host", parts + "/node", parts + "/statelog"},
		"shutdown/plan":               {api, machine, module + "/graceperiod", module + "/internal/times"},
		// The manager's parts do not import the manager. node imports nothing that blocks or logs.
		"shutdown/internal/host":       {klog, module + "/shutdown/source", module + "/internal/call", module + "/internal/times"},
		"shutdown/internal/node":       {api, machine, module + "/graceperiod", module + "/internal/times", module + "/shutdown/plan", module + "/shutdown/source", parts + "/timetable"},
		"shutdown/internal/noderecord": {api, module + "/internal/judge", parts + "/node"}, // for tests
		"shutdown/internal/statelog":   {"golang.org/x/sys/unix", api, machine, module + "/graceperiod", module + "/internal/atomicfile", module + "/internal/call", module + "/internal/podkey", module + "/internal/staticpod", parts + "/node"},
		"shutdown/internal/timetable":  {api, module + "/shutdown/plan"},

		"shutdown/shutdowntest":      {api, machine, module + "/shutdown", module + "/shutdown/source", module + "/internal/times"},
		"shutdown/podkiller":         {api, machine, module + "/lifecycle", module + "/shutdown", module + "/internal/call", module + "/shutdown/plan", module + "/graceperiod", module + "/internal/podcondition", module + "/internal/staticpod"},
		"shutdown/source":            {},
		"shutdown/inhibitor":         {klog, module + "/shutdown/source", module + "/internal/call", module + "/internal/nilcheck", parts + "/host"},
		"shutdown/logind":            {klog, dbus, module + "/shutdown/source", module + "/internal/atomicfile", module + "/internal/logindconf"},
		"shutdown/logind/logindtest": {module + "/internal/logindfake"},
		"shutdown/notice":            {module + "/shutdown/source"},
		"shutdown/unixsocket":        {klog, module + "/shutdown/source"},
		"shutdown/apistatus":         {api, machine, klog, gates, client, module + "/shutdown", module + "/internal/features", module + "/internal/nilcheck", module + "/internal/podcondition", module + "/internal/staticpod", module + "/internal/times"},

		"internal/readme":     {},
		"validation":          {api, machine, module + "/graceperiod", module + "/shutdown/plan"},
		"internal/features":   {gates, module + "/internal/nilcheck"},
		"internal/nilcheck":   {},
		"internal/atomicfile": {},
		"internal/logindconf": {},
		"internal/call":       {klog, module + "/internal/times"},
		"internal/podkey":     {api, machine},
		"internal/judge":      {api, machine, "github.com/go-logr/logr", module + "/lifecycle", module + "/graceperiod", module + "/internal/times"},
		"internal/deptest":    {},
		"internal/docprogram": {},
		"internal/need":       {},
		"internal/seeds":      {module + "/internal/need"},
		"internal/logindhost": {"golang.org/x/sys/unix", dbus, module + "/internal/need", module + "/internal/logindfake"},
		"internal/logindfake": {dbus},

		"validation/featuregates":   {gates, module + "/validation", module + "/internal/features"},
		"internal/apiserverprocess": {"golang.org/x/sys/unix", "golang.org/x/sys/windows", module + "/internal/need"},
		"internal/apiserverproxy":   {machine, "golang.org/x/time/rate"},

		"internal/podcondition": {api, machine, module + "/internal/staticpod"},
		"internal/staticpod":    {api},
		"internal/times":        {},
	}
}

// loadGraph returns all packages of the module and their dependencies, as built for goos.
func loadGraph(t *testing.T, goos string) deptest.Graph {
	t.Helper()
	readFolders(t)
	graph, err := deptest.Load(t.Context(), goos, module+"/...")
	require.NoError(t, err)
	return graph
}

// readFolders reads the folders of the module, so that go test does not use a cached result of this test after a
// package was added. go test runs a test again if a file or folder has changed that the test itself has read, but the
// packages are found by another process, the go command.
func readFolders(t *testing.T) {
	t.Helper()
	require.NoError(t, filepath.WalkDir(filepath.Join("..", ".."), func(_ string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() && (entry.Name() == ".git" || entry.Name() == ".cache") {
			return filepath.SkipDir
		}
		return err
	}))
}

// Each package imports only what allowedImports lists for it, on each operating system. A new package
// needs a rule.
func TestDirectImports(t *testing.T) {
	for _, goos := range []string{"linux", "darwin", "windows"} {
		graph, rules := loadGraph(t, goos), allowedImports()
		for path := range graph {
			if !strings.HasPrefix(path, module+"/") {
				continue
			}
			allowed, listed := rules[strings.TrimPrefix(path, module+"/")]
			require.True(t, listed, "%s: no import rule", path)
			require.Empty(t, graph.Disallowed(path, allowed...), "%s has disallowed imports (%s)", path, goos)
		}
	}
}

// Each import that allowedImports allows a package is really imported by that package, at least on Linux, macOS or Windows.
// Otherwise the list is out of date.
func TestEveryRuleIsUsed(t *testing.T) {
	graphs := []deptest.Graph{loadGraph(t, "linux"), loadGraph(t, "darwin"), loadGraph(t, "windows")}
	for path, allowed := range allowedImports() {
		for _, root := range allowed {
			isUsed := slices.ContainsFunc(graphs, func(graph deptest.Graph) bool {
				return slices.ContainsFunc(graph[module+"/"+path].Imports, func(to string) bool {
					return to == root || strings.HasPrefix(to, root+"/")
				})
			})
			require.True(t, isUsed, "%s does not import %s, which is allowed", path, root)
		}
	}
}

// A user of a package must not get large or unstable dependencies that the package does not need. An indirect import
// counts too.
func TestDeniedDependencies(t *testing.T) {
	graph := loadGraph(t, "linux")
	t.Run("no package imports Kubernetes itself, and only apistatus imports client-go", func(t *testing.T) {
		for path := range graph {
			if !strings.HasPrefix(path, module+"/") {
				continue
			}
			require.Empty(t, graph.DepsWithin(path, "k8s.io/kubernetes"), path)
			if !strings.HasPrefix(path, module+"/shutdown/apistatus") {
				require.Empty(t, graph.DepsWithin(path, client), path)
			}
		}
	})
	t.Run("the core does not use D-Bus", func(t *testing.T) {
		for _, core := range []string{"graceperiod", "lifecycle", "shutdown", "validation", "metrics"} {
			require.Empty(t, graph.DepsWithin(module+"/"+core, dbus, systemd), core)
		}
	})
	t.Run("pure packages register no metrics, neither kubegrace's nor Kubernetes'", func(t *testing.T) {
		for _, pure := range []string{"graceperiod", "shutdown/plan", "validation"} {
			require.NotEmpty(t, graph.DepsWithin(module+"/"+pure, machine), "%s is in the graph, and imports apimachinery", pure)
			require.Empty(t, graph.DepsWithin(module+"/"+pure, prom, "k8s.io/component-base", module+"/metrics"), pure)
		}
	})
	t.Run("a program that needs only the inhibitor lock does not get the manager", func(t *testing.T) {
		allowed := []string{module + "/shutdown/source", module + "/internal/atomicfile", module + "/internal/logindconf"}
		for _, source := range []string{"shutdown/source", "shutdown/logind", "shutdown/unixsocket", "shutdown/notice"} {
			ours := graph.DepsWithin(module+"/"+source, module)
			require.Subset(t, allowed, ours, source)
		}
	})
	t.Run("no other package, of any module, depends on lifecycle/stopsignal", func(t *testing.T) {
		for path := range graph {
			if path != signals {
				require.Empty(t, graph.DepsWithin(path, signals), "%s would not build with Kubernetes v0.32, which lacks the types of %s", path, signals)
			}
		}
	})
	t.Run("lifecycle and shutdown do not import each other", func(t *testing.T) {
		require.Empty(t, graph.DepsWithin(module+"/lifecycle", module+"/shutdown"))
		require.Empty(t, graph.DepsWithin(module+"/shutdown", module+"/lifecycle"))
	})
}
