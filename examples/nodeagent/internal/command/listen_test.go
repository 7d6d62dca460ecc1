package command_test

import (
	"io"
	"net/http"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kubegrace/kubegrace/examples/nodeagent/internal/api"
)

func TestMetricsAndHealth(t *testing.T) {
	t.Parallel()
	dir := folder(t, map[string]string{"pod.yaml": scripted("web", "ignores TERM")})
	p := start(t, "--manifests="+dir)
	p.waitFor("1 of 1 pods run.")
	address := p.address()

	require.Equal(t, "ok\n", get(t, address+"/healthz"))
	metrics := get(t, address+"/metrics")
	for _, series := range []string{
		"kubelet_graceful_shutdown_start_time_seconds 0", "kubelet_graceful_shutdown_end_time_seconds 0",
		"kubelet_lifecycle_handler_http_fallbacks_total 0", "kubelet_sleep_action_terminated_early_total 0", "go_goroutines",
	} {
		require.Contains(t, metrics, series)
	}

	p.signal(syscall.SIGTERM)
	p.waitFor("got SIGTERM, is ending")
	require.Equal(t, "ok: node is shutting down\n", get(t, address+"/healthz"))
	require.NotContains(t, get(t, address+"/metrics"), "kubelet_graceful_shutdown_start_time_seconds 0\n")
}

// As in a kubelet, the metrics of the shutdown exist only with both gates.
func TestShutdownMetricsNeedBothGates(t *testing.T) {
	t.Parallel()
	dir := folder(t, map[string]string{"pod.yaml": scripted("web", "")})
	p := start(t, "--manifests="+dir, "--feature-gates=GracefulNodeShutdownBasedOnPodPriority=false")
	p.waitFor("1 of 1 pods run.")
	require.NotContains(t, get(t, p.address()+"/metrics"), "graceful_shutdown")
}

func TestReadOnlyRequests(t *testing.T) {
	t.Parallel()
	p, _, _ := startWithSocket(t, map[string]string{"web.yaml": scripted("web", "ignores TERM")})
	address := p.address()
	pods := decode[api.PodList](t, get(t, address+"/pods"))
	require.Equal(t, api.Pod{Namespace: "default", Name: "web", UID: pods.Items[0].UID, State: "Running", Doing: "runs"}, pods.Items[0])
	require.Equal(t, api.Meta{APIVersion: "nodeagent.kubegrace.dev/v1", Kind: "PodList"}, pods.Meta)
	plan := decode[api.Plan](t, get(t, address+"/plan"))
	require.EqualValues(t, 60, plan.Buckets[0].Pods[0].GrantedSeconds)

	p.signal(syscall.SIGTERM)
	p.waitFor("got SIGTERM, is ending")
	pods = decode[api.PodList](t, get(t, address+"/pods"))
	require.True(t, pods.ShuttingDown)
	require.Equal(t, "Ending", pods.Items[0].State)
	require.EqualValues(t, 60, pods.Items[0].Granted)
	require.Equal(t, []api.Container{{Name: "app", Phase: "Stopping"}}, pods.Items[0].Containers)
	require.True(t, decode[api.Report](t, get(t, address+"/report")).UnderWay)
}

// get returns the body of a successful answer.
func get(t *testing.T, url string) string {
	t.Helper()
	status, text := fetch(t, http.DefaultClient, url)
	require.Equal(t, http.StatusOK, status)
	return text
}

// fetch returns the status and the body of an answer.
func fetch(t *testing.T, client *http.Client, url string) (status int, text string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
	require.NoError(t, err)
	answer, err := client.Do(request)
	require.NoError(t, err)
	defer func() { require.NoError(t, answer.Body.Close()) }()
	body, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	return answer.StatusCode, string(body)
}
