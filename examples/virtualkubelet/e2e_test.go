//go:build linux

package main

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/virtual-kubelet/virtual-kubelet/node"
	"github.com/virtual-kubelet/virtual-kubelet/node/nodeutil"
	"github.com/virtual-kubelet/virtual-kubelet/test/e2e"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/kubegrace/kubegrace/internal/apiserverprocess"
)

const e2eNode = "virtual-node"

// TestVirtualKubeletSuite runs virtual-kubelet's own end-to-end suite against the provider,
// with processes as containers and with whole pods of processes, at a real API server.
func TestVirtualKubeletSuite(t *testing.T) {
	for name, whole := range map[string]bool{"containers": false, "whole pods": true} {
		t.Run(name, func(t *testing.T) {
			mux := http.NewServeMux()
			kubelet := httptest.NewServer(mux)
			t.Cleanup(kubelet.Close)
			cluster := httptest.NewServer(withKubelet(t, apiserverprocess.Start(t), kubelet.URL))
			t.Cleanup(cluster.Close)
			runNode(t, cluster.URL, mux, whole)
			e2e.NewEndToEndTestSuite(e2e.EndToEndTestSuiteConfig{
				Kubeconfig: kubeconfig(t, cluster.URL), Namespace: "default", NodeName: e2eNode, WatchTimeout: time.Minute,
			}).Run(t)
		})
	}
}

// withKubelet returns a handler that adds two paths to an API server that does not proxy
// requests to its nodes: /proxy of the node, and /proxy of the pod in which virtual-kubelet
// would run in a cluster. Both lead to the server at kubelet.
func withKubelet(t *testing.T, apiServer, kubelet string) http.Handler {
	t.Helper()
	cluster := http.NewServeMux()
	cluster.Handle("/", forward(t, apiServer, ""))
	for _, prefix := range []string{
		"/api/v1/nodes/" + e2eNode + "/proxy",
		"/api/v1/namespaces/default/pods/https:" + e2eNode + ":10250/proxy",
	} {
		cluster.Handle(prefix+"/", http.StripPrefix(prefix, forward(t, kubelet, prefix)))
	}
	return cluster
}

// forward returns a reverse proxy to a server. It adds prefix, under which clients see the
// server, to the paths that the server redirects to.
func forward(t *testing.T, server, prefix string) http.Handler {
	t.Helper()
	target, err := url.Parse(server)
	require.NoError(t, err)
	proxy := httputil.NewSingleHostReverseProxy(target)
	proxy.ModifyResponse = func(response *http.Response) error {
		if location := response.Header.Get("Location"); strings.HasPrefix(location, "/") {
			response.Header.Set("Location", prefix+location)
		}
		return nil
	}
	return proxy
}

// runNode runs a node of virtual-kubelet until the end of the test. The node serves its
// kubelet endpoints on mux.
func runNode(t *testing.T, apiServer string, mux *http.ServeMux, whole bool) {
	t.Helper()
	client, err := kubernetes.NewForConfig(&rest.Config{Host: apiServer, QPS: -1})
	require.NoError(t, err)
	provider := newMeasuredProvider(t, whole)
	running, err := nodeutil.NewNode(e2eNode, func(nodeutil.ProviderConfig) (nodeutil.Provider, node.NodeProvider, error) {
		return provider, nil, nil
	}, nodeutil.WithClient(client), nodeutil.AttachProviderRoutes(mux))
	require.NoError(t, err)

	ctx, cancel := context.WithCancel(t.Context())
	var run sync.WaitGroup
	run.Go(func() { _ = running.Run(ctx) }) // an error before the node is ready is returned by WaitReady, too
	t.Cleanup(func() {
		cancel()
		run.Wait()
		provider.killAll(t)
		require.NoError(t, provider.Close(context.WithoutCancel(t.Context())))
	})
	require.NoError(t, running.WaitReady(t.Context(), time.Minute))
}
