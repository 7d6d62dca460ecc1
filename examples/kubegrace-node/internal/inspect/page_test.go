package inspect_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kubegrace/kubegrace/examples/kubegrace-node/internal/inspect"
)

// PLAN.md shows a plan of the demo's pods as kubegrace-node prints it, up to the warnings, indented by four
// spaces. It also shows the output of status in the state limit-too-low, up to the reasons, with other line breaks.
func TestThePageShowsWhatIsPrinted(t *testing.T) {
	page, err := os.ReadFile("../../PLAN.md")
	require.NoError(t, err)
	const folder = "../../../kubegrace-node/demo/"
	r := run(t, "", "--agent", "kubegrace", "--config", folder+"kubelet.yaml", "--limit", "16s", folder+"pods")
	require.ErrorIs(t, r.err, inspect.ErrCutShort)
	plan, _, found := strings.Cut(r.out, "\nWarnings:\n")
	require.True(t, found, r.out)
	require.Contains(t, string(page), regexp.MustCompile(`(?m)^.`).ReplaceAllString(plan, "    $0"))
	status, err := os.ReadFile("testdata/node-limit-too-low.golden")
	require.NoError(t, err)
	text, _, _ := strings.Cut(string(status), "\nWhy,")
	require.Contains(t, strings.Join(strings.Fields(string(page)), " "), strings.Join(strings.Fields(text), " "))
}
