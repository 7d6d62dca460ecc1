package output_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kubegrace/kubegrace/examples/internal/golden"
	"github.com/kubegrace/kubegrace/examples/kubegrace-node/internal/api"
	"github.com/kubegrace/kubegrace/examples/kubegrace-node/internal/output"
)

// began is when the shutdown of [drained] began.
var began = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// written returns a report in a format.
func written(t *testing.T, format string, r api.Report) string {
	t.Helper()
	var out strings.Builder
	require.NoError(t, output.WriteReport(format, &out, r))
	return out.String()
}

// A report is written as a table and as JSON; both are in golden files. The last sentence says whether the
// shutdown ended, was called off, has no known end, or is under way.
func TestReport(t *testing.T) {
	report := drained()
	golden.Require(t, "report.txt", written(t, output.Table, report))
	golden.Require(t, "report.json", written(t, output.JSON, report))
	t.Setenv("COLUMNS", "200")
	report.Shutdown.Cancelled = true
	require.Contains(t, written(t, output.Table, report), "and was called off after 28s.")
	report.Shutdown.Ended = time.Time{}
	require.Contains(t, written(t, output.Table, report), "; its end is not known.")
	report.UnderWay = true
	require.Contains(t, written(t, output.Table, report), " and is under way.")
}
