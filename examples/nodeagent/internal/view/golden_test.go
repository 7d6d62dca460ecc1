package view

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jedib0t/go-pretty/v6/text"
	"github.com/stretchr/testify/require"

	"github.com/kubegrace/kubegrace/examples/nodeagent/internal/api"
	"github.com/kubegrace/kubegrace/lifecycle"
)

// golden compares with a file, or writes it where KUBEGRACE_GOLDEN is set. What was
// written for a width must fit into it.
func golden(t *testing.T, name, said string, width int) {
	t.Helper()
	for line := range strings.Lines(said) {
		if width > 0 {
			require.Less(t, text.StringWidthWithoutEscSequences(strings.TrimSuffix(line, "\n")), width, line)
		}
	}
	file := filepath.Join("testdata", name)
	if os.Getenv("KUBEGRACE_GOLDEN") != "" {
		require.NoError(t, os.MkdirAll("testdata", 0o755))
		require.NoError(t, os.WriteFile(file, []byte(said), 0o600))
	}
	want, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, string(want), said)
}

// daemonSet is the name of a pod as a DaemonSet makes it.
const daemonSet = "kube-system/node-exporter-prometheus-4x7fq-worker-17.example.internal"

func TestTablesFitEveryTerminal(t *testing.T) {
	shown := at(2*time.Second, ending(daemonSet, in("app", lifecycle.PhaseHook)), gone("shop/web", with(lifecycle.Graceful)),
		Pod{Name: "data/postgres", Priority: 100000, Bucket: 100000, State: Running})
	report := api.ReportOf(sampleReport())
	for _, width := range []int{0, 120, 80, 40} {
		t.Run(strconv.Itoa(width), func(t *testing.T) {
			var summary bytes.Buffer
			writeSummary(&summary, shown, width)
			golden(t, fmt.Sprintf("summary-%d.txt", width), summary.String(), width)
			golden(t, fmt.Sprintf("plan-%d.txt", width), Plan(samplePlan(), width), width)
			golden(t, fmt.Sprintf("report-%d.txt", width), Report(report, width), width)
			if width > 0 {
				drawn := text.StripEscape(frame(shown, width, 24))
				golden(t, fmt.Sprintf("live-%d.txt", width), drawn, width)
				require.Contains(t, drawn, "DOING NOW")
				require.Contains(t, drawn, "preStop")
			}
		})
	}
	for name, value := range map[string]any{"plan.json": samplePlan(), "report.json": report} {
		said, err := json.MarshalIndent(value, "", "  ")
		require.NoError(t, err)
		golden(t, name, string(said)+"\n", 0)
	}
}

func TestReportSaysHowItIsWithTheShutdown(t *testing.T) {
	r := api.ReportOf(sampleReport())
	require.Contains(t, Report(r, 0), "A shutdown (reboot), announced by logind, began at 2026-01-01T12:00:00Z and took 6.5 s.")
	r.Cancelled = true
	require.Contains(t, Report(r, 0), "and was called off after 6.5 s.")
	r.Ended = time.Time{}
	require.Contains(t, Report(r, 0), "; its end is not on record.")
	r.UnderWay = true
	require.Contains(t, Report(r, 0), " and is under way.")
}

// A terminal that was made narrower has broken the lines of the frame: all of them are
// taken away.
func TestFrameIsWipedAfterAResize(t *testing.T) {
	width := 100
	l := &live{size: func() (int, int, error) { return width, 24, nil }}
	l.drawn = strings.Repeat("x", 99) + "\n" + strings.Repeat("y", 20) + "\n\n"
	var out bytes.Buffer
	l.wipe(&out)
	require.Equal(t, "\x1b[3A\r\x1b[J", out.String())
	width = 40
	out.Reset()
	l.wipe(&out)
	require.Equal(t, "\x1b[5A\r\x1b[J", out.String())
}

func TestNamesKeepTheirEnd(t *testing.T) {
	require.Equal(t, "kube-sy…y-4x7fq", snipMiddle("kube-system/proxy-4x7fq", 15))
	require.Equal(t, "shop/web", snipMiddle("shop/web", 15))
}
