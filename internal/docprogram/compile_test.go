package docprogram_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kubegrace/kubegrace/internal/docprogram"
)

// These packages, which agents import, have a program in their documentation. All programs compile: otherwise Compile fails
// the test.
func TestDocProgramsCompile(t *testing.T) {
	require.Equal(t, []string{
		"graceperiod", "lifecycle", "lifecycle/stopsignal", "metrics", "shutdown", "shutdown/apistatus", "shutdown/inhibitor", "shutdown/logind",
		"shutdown/notice", "shutdown/plan", "shutdown/podkiller", "shutdown/unixsocket", "validation", "validation/featuregates",
	}, docprogram.Compile(t, "../.."))
}
