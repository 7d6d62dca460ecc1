//go:build go1.25

package apiserverproxy_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kubegrace/kubegrace/internal/apiserverproxy"
)

// From the method and path of each request the proxy finds its verb, resource and object, by which a Rule
// selects requests. A path without a resource stays as it is.
func TestRequestsAreParsed(t *testing.T) {
	for _, test := range []struct{ method, path, want string }{
		{http.MethodGet, "/api/v1/namespaces/default/pods/web", "get pods default/web"},
		{http.MethodGet, "/api/v1/namespaces/default/pods/web/status", "get pods/status default/web"},
		{http.MethodGet, "/api/v1/namespaces/default/pods", "list pods default"},
		{http.MethodGet, "/api/v1/pods?watch=true", "watch pods"},
		{http.MethodGet, "/api/v1/pods?watch=0", "list pods"},
		{http.MethodPost, "/api/v1/namespaces/default/events", "create events default"},
		{http.MethodPut, "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/node-1", "update leases kube-node-lease/node-1"},
		{http.MethodPatch, "/api/v1/nodes/node-1/status", "patch nodes/status node-1"},
		{http.MethodPatch, "/api/v1/namespaces/default/status", "patch namespaces/status default"},
		{http.MethodPost, "/api/v1/namespaces/default/pods/web/eviction", "create pods/eviction default/web"},
		{http.MethodDelete, "/api/v1/namespaces/default/pods", "deletecollection pods default"},
		{http.MethodDelete, "/api/v1/namespaces/default/pods/web", "delete pods default/web"},
		{http.MethodGet, "/api/v1/namespaces/default", "get namespaces default"},
		{http.MethodGet, "/api/v1/namespaces", "list namespaces"},
		{http.MethodGet, "/apis/coordination.k8s.io/v1", "get /apis/coordination.k8s.io/v1"},
		{http.MethodGet, "/readyz", "get /readyz"},
		{http.MethodGet, "/", "get /"},
	} {
		t.Run(test.want, func(t *testing.T) {
			transport := apiserverproxy.NewTransport(&backend{})
			_, err := send(t.Context(), t, transport, test.method, "http://server"+test.path, "")
			require.NoError(t, err)
			require.Equal(t, test.want, transport.Requests()[0].String())
		})
	}
}

// A recorded request also has the User-Agent, the Content-Type, the query and the path, so that a test can check them.
func TestRequestsHaveHeadersAndQuery(t *testing.T) {
	transport := apiserverproxy.NewTransport(&backend{})
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPatch, pod+"?fieldManager=kubelet", http.NoBody)
	require.NoError(t, err)
	r.Header.Set("User-Agent", "kubelet/v1.34")
	r.Header.Set("Content-Type", "application/strategic-merge-patch+json")
	_, err = transport.RoundTrip(r)
	require.NoError(t, err)
	received := transport.Requests()[0]
	require.Equal(t, "kubelet/v1.34", received.UserAgent)
	require.Equal(t, "application/strategic-merge-patch+json", received.ContentType)
	require.Equal(t, "kubelet", received.Query.Get("fieldManager"))
	require.Equal(t, "/api/v1/namespaces/default/pods/web", received.Path)
}
