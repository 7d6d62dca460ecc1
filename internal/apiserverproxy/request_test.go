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
		{method: http.MethodGet, path: "/api/v1/namespaces/default/pods/web", want: "get pods default/web"},
		{method: http.MethodGet, path: "/api/v1/namespaces/default/pods/web/status", want: "get pods/status default/web"},
		{method: http.MethodGet, path: "/api/v1/namespaces/default/pods", want: "list pods default"},
		{method: http.MethodGet, path: "/api/v1/pods?watch=true", want: "watch pods"},
		{method: http.MethodGet, path: "/api/v1/pods?watch=0", want: "list pods"},
		{method: http.MethodPost, path: "/api/v1/namespaces/default/events", want: "create events default"},
		{method: http.MethodPut, path: "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/node-1", want: "update leases kube-node-lease/node-1"},
		{method: http.MethodPatch, path: "/api/v1/nodes/node-1/status", want: "patch nodes/status node-1"},
		{method: http.MethodPatch, path: "/api/v1/namespaces/default/status", want: "patch namespaces/status default"},
		{method: http.MethodPost, path: "/api/v1/namespaces/default/pods/web/eviction", want: "create pods/eviction default/web"},
		{method: http.MethodDelete, path: "/api/v1/namespaces/default/pods", want: "deletecollection pods default"},
		{method: http.MethodDelete, path: "/api/v1/namespaces/default/pods/web", want: "delete pods default/web"},
		{method: http.MethodGet, path: "/api/v1/namespaces/default", want: "get namespaces default"},
		{method: http.MethodGet, path: "/api/v1/namespaces", want: "list namespaces"},
		{method: http.MethodGet, path: "/apis/coordination.k8s.io/v1", want: "get /apis/coordination.k8s.io/v1"},
		{method: http.MethodGet, path: "/readyz", want: "get /readyz"},
		{method: http.MethodGet, path: "/", want: "get /"},
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
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPatch, podURL+"?fieldManager=kubelet", http.NoBody)
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
