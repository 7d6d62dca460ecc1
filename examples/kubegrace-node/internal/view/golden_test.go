package view

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/jedib0t/go-pretty/v6/text"
	"github.com/stretchr/testify/require"

	"github.com/kubegrace/kubegrace/examples/internal/golden"
	"github.com/kubegrace/kubegrace/examples/kubegrace-node/internal/api"
)

// daemonSetPod is the long name of a DaemonSet's pod.
const daemonSetPod = "kube-system/node-exporter-prometheus-4x7fq-worker-17.example.internal"

func TestTablesFitEveryTerminal(t *testing.T) {
	report := api.ReportOf(sampleReport())
	for _, width := range []int{120, 80} {
		for line := range strings.Lines(Report(report, width)) {
			require.Less(t, text.StringWidthWithoutEscSequences(strings.TrimSuffix(line, "\n")), width, line)
		}
	}
	golden.Require(t, "report.txt", Report(report, 80))
	content, err := json.MarshalIndent(report, "", "  ")
	require.NoError(t, err)
	golden.Require(t, "report.json", string(content)+"\n")
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
