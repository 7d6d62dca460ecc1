package view

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jedib0t/go-pretty/v6/text"
	"github.com/stretchr/testify/require"

	"github.com/kubegrace/kubegrace/examples/internal/golden"
	"github.com/kubegrace/kubegrace/examples/kubegrace-node/internal/api"
)

// requireGolden compares a text with a file of testdata. Lines must be narrower than width,
// unless it is 0.
func requireGolden(t *testing.T, name, content string, width int) {
	t.Helper()
	for line := range strings.Lines(content) {
		if width > 0 {
			require.Less(t, text.StringWidthWithoutEscSequences(strings.TrimSuffix(line, "\n")), width, line)
		}
	}
	golden.Require(t, name, content)
}

// daemonSetPod is the long name of a DaemonSet's pod.
const daemonSetPod = "kube-system/node-exporter-prometheus-4x7fq-worker-17.example.internal"

func TestTablesFitEveryTerminal(t *testing.T) {
	report := api.ReportOf(sampleReport())
	for _, width := range []int{0, 120, 80} {
		t.Run(strconv.Itoa(width), func(t *testing.T) {
			requireGolden(t, fmt.Sprintf("plan-%d.txt", width), Plan(samplePlan(), width), width)
			requireGolden(t, fmt.Sprintf("report-%d.txt", width), Report(report, width), width)
		})
	}
	for name, value := range map[string]any{"plan.json": samplePlan(), "report.json": report} {
		content, err := json.MarshalIndent(value, "", "  ")
		require.NoError(t, err)
		requireGolden(t, name, string(content)+"\n", 0)
	}
}

func TestReportSaysWhetherTheShutdownHasEnded(t *testing.T) {
	r := api.ReportOf(sampleReport())
	require.Contains(t, Report(r, 0), "A shutdown (reboot), announced by logind, began at 2026-01-01T12:00:00Z and took 6.5 s.")
	r.Shutdown.Cancelled = true
	require.Contains(t, Report(r, 0), "and was called off after 6.5 s.")
	r.Shutdown.Ended = time.Time{}
	require.Contains(t, Report(r, 0), "; its end is not on record.")
	r.UnderWay = true
	require.Contains(t, Report(r, 0), " and is under way.")
}
