package api_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kubegrace/kubegrace/examples/kubegrace-node/internal/api"
	"github.com/kubegrace/kubegrace/shutdown"
)

// A drain that could not list the pods has stopped none, which is an error, and so is one that was called off. Without pods,
// or if something else than a kill has failed, there is none.
func TestADrainThatStoppedNotAllPodsIsAnError(t *testing.T) {
	failed := []string{"the list of the pods failed: the runtime is down"}
	require.EqualError(t, api.ReportOf(shutdown.Report{Errors: failed}).PodErrors(), "no pod was stopped: "+failed[0])
	require.ErrorContains(t, api.ReportOf(shutdown.Report{Cancelled: true}).PodErrors(), "the drain was called off")
	require.NoError(t, api.ReportOf(shutdown.Report{}).PodErrors())
	require.NoError(t, api.ReportOf(shutdown.Report{Errors: failed, Pods: []shutdown.PodReport{{Name: "web"}}}).PodErrors())
}
