package deptest_test

import (
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kubegrace/kubegrace/internal/deptest"
)

// TestPartsOfADrainDoNotKnowIt checks that the parts of package shutdown (the keeper of the
// lock, the kills, the statuses, the record and others) do not use the types that call them:
// the manager, its event loop and the drain. The compiler refuses cycles between packages, but
// not within one.
func TestPartsOfADrainDoNotKnowIt(t *testing.T) {
	mayUse := map[string][]string{
		"Manager": {"NewManager", "drain", "loop", "newManager"},
		"drain":   {"Manager", "loop"},
		"loop": {
			"Manager", "drain",
			"inbox", "message", // a message is a function that the loop calls with itself
			"keeper", // posts messages
		},
	}
	references, err := deptest.References("../../shutdown")
	require.NoError(t, err)
	for above, users := range mayUse {
		require.Contains(t, references, above, "package shutdown")
		var found []string
		for from, to := range references {
			if slices.Contains(to, above) {
				found = append(found, from)
			}
		}
		require.ElementsMatch(t, users, found, "what uses %s in package shutdown", above)
	}
}

// TestPartsOfADrainDoNotUseEachOtherInTurn checks that two parts which use each other are
// either those that are known to, or one type and its constants.
func TestPartsOfADrainDoNotUseEachOtherInTurn(t *testing.T) {
	known := map[string][][]string{
		"../../shutdown": {
			{"Manager", "drain", "inbox", "keeper", "loop", "message"}, // see TestPartsOfADrainDoNotKnowIt
			{"PodPolicy", "PolicyDelete", "PolicyLeaveAsIs", "PolicySetTerminal"},
		},
		"../../shutdown/internal/call":      nil,
		"../../shutdown/internal/kills":     {{"Batch", "Killing"}},
		"../../shutdown/internal/statefile": nil,
		"../../shutdown/internal/outbox":    {{"debt", "flight"}},
		"../../shutdown/plan":               nil,
	}
	folders, err := filepath.Glob("../../shutdown/internal/*")
	require.NoError(t, err)
	require.Subset(t, slices.Collect(maps.Keys(known)), folders)
	for folder, cycles := range known {
		references, err := deptest.References(folder)
		require.NoError(t, err)
		require.Equal(t, cycles, deptest.Cycles(references), folder)
	}
}

// TestEveryRuleIsUsed finds rules that allow an import which the package does not have.
func TestEveryRuleIsUsed(t *testing.T) {
	graphs := []deptest.Graph{loadGraph(t, "linux"), loadGraph(t, "darwin"), loadGraph(t, "windows")}
	for path, may := range allowedImports() {
		for _, root := range may {
			used := slices.ContainsFunc(graphs, func(graph deptest.Graph) bool {
				return slices.ContainsFunc(graph[module+"/"+path].Imports, func(to string) bool {
					return to == root || strings.HasPrefix(to, root+"/")
				})
			})
			require.True(t, used, "%s imports nothing of %s, which it may", path, root)
		}
	}
}
