package output_test

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/kubegrace/kubegrace/examples/internal/golden"
	"github.com/kubegrace/kubegrace/examples/kubegrace-node/internal/api"
	"github.com/kubegrace/kubegrace/examples/kubegrace-node/internal/output"
)

// began is when the shutdown of [drained] began.
var began = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// written returns a report in a format, for a screen of this width.
func written(t *testing.T, format string, width int, r api.Report) string {
	t.Helper()
	var out strings.Builder
	require.NoError(t, output.WriteReport(format, &out, output.Screen{Width: width}, r))
	return out.String()
}

// A report is written as a table that fits the screen, and as JSON; both are in golden files. The last
// sentence says whether the shutdown ended, was called off, has no known end, or is under way.
func TestReport(t *testing.T) {
	report := drained()
	for _, width := range []int{120, 80} {
		for line := range strings.Lines(written(t, output.Table, width, report)) {
			require.LessOrEqual(t, utf8.RuneCountInString(strings.TrimSuffix(line, "\n")), width, line)
		}
	}
	golden.Require(t, "report.txt", written(t, output.Table, 80, report))
	golden.Require(t, "report.json", written(t, output.JSON, 0, report))

	require.Contains(t, written(t, output.Table, 200, report), "A shutdown (reboot), announced by logind, began at 2026-01-01T12:00:00Z and took 28s.")
	report.Shutdown.Cancelled = true
	require.Contains(t, written(t, output.Table, 200, report), "and was called off after 28s.")
	report.Shutdown.Ended = time.Time{}
	require.Contains(t, written(t, output.Table, 200, report), "; its end is not on record.")
	report.UnderWay = true
	require.Contains(t, written(t, output.Table, 200, report), " and is under way.")
}
