package view

import (
	"bytes"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kubegrace/kubegrace/lifecycle"
)

func TestSummaryWarnsOfWhatTheAPIServerDoesNotKnow(t *testing.T) {
	s := snapshotAt(time.Second, gonePod("a/web", endedContainer(lifecycle.Graceful)))
	require.NotContains(t, summaryOf(s), "API server")
	s.Unacknowledged = []string{"a/web", "b/db"}
	require.Contains(t, summaryOf(s), "\nWarning: the API server has not accepted the final status of 2 pods: a/web, b/db\n")
	require.NotContains(t, summaryOf(s), "does not know")
	s.NodeStateError = "no route to host"
	require.Contains(t, summaryOf(s), "\nWarning: the API server does not know that this node shut down: no route to host\n")
}

// summaryOf returns what is shown at the end of a shutdown.
func summaryOf(s Snapshot) string {
	var out bytes.Buffer
	New(&out, nil).Finish(s)
	return out.String()
}
