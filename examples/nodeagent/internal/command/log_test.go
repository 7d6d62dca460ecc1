package command_test

import (
	"bufio"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestLogsInJSON(t *testing.T) {
	t.Parallel()
	dir := folder(t, map[string]string{"web.yaml": strings.Replace(scripted("web", "exec fails"), "image: local/busybox", "image: local/busybox, lifecycle: {preStop: {exec: {command: [drain, s3cret]}}}", 1)})
	p := start(t, "--manifests="+dir, "--log-format=json", "-v=1", "--shutdown-after=1ms")
	require.Zero(t, p.waitExit())
	seen := map[string]bool{}
	for lines := bufio.NewScanner(strings.NewReader(p.stderr.String())); lines.Scan(); {
		var line map[string]any
		require.NoError(t, json.Unmarshal(lines.Bytes(), &line), lines.Text())
		require.Contains(t, line, "time")
		reason, _ := line["reason"].(string)
		seen[reason] = true
	}
	require.True(t, seen["Killing"] && seen["FailedPreStopHook"], p.stderr.String())
	require.NotContains(t, p.out.String()+p.stderr.String(), "s3cret")
}
