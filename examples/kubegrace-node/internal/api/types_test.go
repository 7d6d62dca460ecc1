package api_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kubegrace/kubegrace/examples/kubegrace-node/internal/api"
	"github.com/kubegrace/kubegrace/shutdown"
)

// A drain that could not list the pods has stopped none, which is an error. So is a drain that was called off, and one that
// left a unit running. A drain of no pods is no error, nor is one that has stopped its pods after another failure.
func TestADrainThatStoppedNotAllPodsIsAnError(t *testing.T) {
	failed := []string{"the list of the pods failed: the runtime is down"}
	require.EqualError(t, api.ReportOf(shutdown.Report{Errors: failed}).Err(), "no pod was stopped: "+failed[0])
	require.ErrorContains(t, api.ReportOf(shutdown.Report{Cancelled: true}).Err(), "the drain was called off")
	require.EqualError(t, api.Report{UnitsError: "not stopped: kubelet.service"}.Err(), "the pods may be started again: not stopped: kubelet.service")
	require.NoError(t, api.ReportOf(shutdown.Report{}).Err())
	require.NoError(t, api.ReportOf(shutdown.Report{Errors: failed, Pods: []shutdown.PodReport{{Name: "web"}}}).Err())
}
