package command_test

import (
	"os"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestThePageShowsThePlanThatIsPrinted(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../README.md")
	require.NoError(t, err)
	out, stderr, status := runTool(t, "plan", "--config=../../demo/kubelet.yaml", "--manifests=../../demo/pods")
	require.Zero(t, status, stderr)
	require.Contains(t, string(page), regexp.MustCompile(`(?m)^.`).ReplaceAllString(out, "    $0"))
}
