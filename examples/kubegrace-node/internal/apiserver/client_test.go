package apiserver_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-base/featuregate"

	"github.com/kubegrace/kubegrace/examples/kubegrace-node/internal/apiserver"
	"github.com/kubegrace/kubegrace/shutdown"
)

// An update counts as failed if there is no kubeconfig yet, or if the API server refuses it. It does not count as
// failed if its context was cancelled, or if the API server has accepted it.
func TestFailedUpdatesAreCounted(t *testing.T) {
	gates := featuregate.NewFeatureGate()
	require.NoError(t, shutdown.AddFeatureGates(gates))
	status, answer := http.StatusForbidden, `{"kind":"Status","apiVersion":"v1","status":"Failure","code":403,"reason":"Forbidden","message":"no such rights"}`
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_, _ = w.Write([]byte(answer)) // if this fails, the client's request fails
	}))
	defer server.Close()
	file := filepath.Join(t.TempDir(), "kubeconfig")
	client := apiserver.New(file, "node", gates)
	pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "uid"}, Status: v1.PodStatus{Phase: v1.PodFailed}}
	type failures struct{ node, pod int } // the values of the counter, by object
	requireFailures := func(want failures) {
		t.Helper()
		require.NoError(t, testutil.CollectAndCompare(client.Failures(), strings.NewReader(fmt.Sprintf(`
# HELP kubegrace_node_api_updates_failed_total Updates of the node's conditions and of pods' statuses that the API server has not accepted. Each is tried again.
# TYPE kubegrace_node_api_updates_failed_total counter
kubegrace_node_api_updates_failed_total{object="node"} %d
kubegrace_node_api_updates_failed_total{object="pod"} %d
`, want.node, want.pod))))
	}

	// There is no kubeconfig yet.
	requireFailures(failures{})
	require.ErrorContains(t, client.FlushPod(t.Context(), pod), "could not be used yet")
	requireFailures(failures{pod: 1})

	// The API server refuses the updates.
	require.NoError(t, os.WriteFile(file, []byte(`apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "`+server.URL+`"}}]
contexts: [{name: c, context: {cluster: c, user: u}}]
users: [{name: u, user: {}}]
current-context: c
`), 0o600))
	_, err := client.LoadKubeconfig()
	require.NoError(t, err)
	require.ErrorContains(t, client.PublishNode(t.Context(), shutdown.NodeState{ShuttingDown: true}), "no such rights")
	requireFailures(failures{node: 1, pod: 1})
	require.ErrorContains(t, client.FlushPod(t.Context(), pod), "no such rights")
	requireFailures(failures{node: 1, pod: 2})

	// The context is cancelled, and then the API server accepts the update.
	cutOff, cancel := context.WithCancel(t.Context())
	cancel()
	require.Error(t, client.FlushPod(cutOff, pod))
	requireFailures(failures{node: 1, pod: 2})
	status, answer = http.StatusOK, `{"kind":"Pod","apiVersion":"v1","metadata":{"namespace":"shop","name":"web","uid":"uid"}}`
	require.NoError(t, client.FlushPod(t.Context(), pod))
	requireFailures(failures{node: 1, pod: 2})
}

// The API server no longer accepts the token in the kubeconfig. An update with it must fail. When the kubeconfig has another
// token, the next update must use that.
func TestRotatedCredentialsAreUsed(t *testing.T) {
	gates := featuregate.NewFeatureGate()
	require.NoError(t, shutdown.AddFeatureGates(gates))
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.Header.Get("Authorization") != "Bearer new" {
			w.WriteHeader(http.StatusUnauthorized)
			_, _ = w.Write([]byte(`{"kind":"Status","apiVersion":"v1","status":"Failure","code":401,"reason":"Unauthorized","message":"Unauthorized"}`)) // if this fails, the client's request fails
			return
		}
		_, _ = w.Write([]byte(`{"kind":"Pod","apiVersion":"v1","metadata":{"namespace":"shop","name":"web","uid":"uid"}}`))
	}))
	defer server.Close()
	file := filepath.Join(t.TempDir(), "kubeconfig")
	// writeKubeconfig writes a kubeconfig with a token.
	writeKubeconfig := func(token string) {
		require.NoError(t, os.WriteFile(file, []byte(`apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "`+server.URL+`", insecure-skip-tls-verify: true}}]
contexts: [{name: c, context: {cluster: c, user: u}}]
users: [{name: u, user: {token: `+token+`}}]
current-context: c
`), 0o600))
	}
	client := apiserver.New(file, "node", gates)
	pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "uid"}, Status: v1.PodStatus{Phase: v1.PodFailed}}

	writeKubeconfig("old")
	_, err := client.LoadKubeconfig()
	require.NoError(t, err)
	require.ErrorContains(t, client.FlushPod(t.Context(), pod), "Unauthorized")
	writeKubeconfig("new")
	require.NoError(t, client.FlushPod(t.Context(), pod))
}
