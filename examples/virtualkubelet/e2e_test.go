//go:build linux

package main

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path/filepath"
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
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"

	"github.com/kubegrace/kubegrace/internal/apiserverprocess"
)

const e2eNode = "virtual-node"

// virtual-kubelet's own end-to-end tests, all of them: its node with the provider, on
// processes, at a real API server. They find the node by a kubeconfig, as they would in a
// cluster.
func TestEndToEnd(t *testing.T) {
	mux := http.NewServeMux()
	kubelet := httptest.NewServer(mux)
	t.Cleanup(kubelet.Close)
	cluster := httptest.NewServer(withKubelet(t, apiserverprocess.Start(t), kubelet.URL))
	t.Cleanup(cluster.Close)
	runNode(t, cluster.URL, mux)
	e2e.NewEndToEndTestSuite(e2e.EndToEndTestSuiteConfig{
		Kubeconfig: kubeconfig(t, cluster.URL), Namespace: "default", NodeName: e2eNode, WatchTimeout: time.Minute,
	}).Run(t)
}

// withKubelet is an API server that has a way to the node, which that of the tests has
// not: /proxy of the node, and of the pod that virtual-kubelet itself would be.
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

// forward asks a server, whose paths begin with a prefix for those who ask.
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

// runNode runs virtual-kubelet's node until the end of the test. It is served on mux.
func runNode(t *testing.T, apiServer string, mux *http.ServeMux) {
	t.Helper()
	client, err := kubernetes.NewForConfig(&rest.Config{Host: apiServer, QPS: -1})
	require.NoError(t, err)
	provider := newMeasured(t)
	running, err := nodeutil.NewNode(e2eNode, func(nodeutil.ProviderConfig) (nodeutil.Provider, node.NodeProvider, error) {
		return provider, nil, nil
	}, nodeutil.WithClient(client), nodeutil.AttachProviderRoutes(mux))
	require.NoError(t, err)

	ctx, cancel := context.WithCancel(t.Context())
	var run sync.WaitGroup
	run.Go(func() { _ = running.Run(ctx) }) // its error is that of ctx, or WaitReady tells it
	t.Cleanup(func() {
		cancel()
		run.Wait()
		provider.kill(t)
		require.NoError(t, provider.Close(context.WithoutCancel(t.Context())))
	})
	require.NoError(t, running.WaitReady(t.Context(), time.Minute))
}

// kubeconfig writes one that leads to a server, and gives its path.
func kubeconfig(t *testing.T, server string) string {
	t.Helper()
	config := api.NewConfig()
	config.Clusters["cluster"] = &api.Cluster{Server: server}
	config.Contexts["context"] = &api.Context{Cluster: "cluster"}
	config.CurrentContext = "context"
	path := filepath.Join(t.TempDir(), "kubeconfig")
	require.NoError(t, clientcmd.WriteToFile(*config, path))
	return path
}
