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
	v1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/kubegrace/kubegrace/internal/apiserverprocess"
	"github.com/kubegrace/kubegrace/lifecycle/virtualkubelet"
)

// e2eNode is the name of the node that the suite tests.
const e2eNode = "virtual-node"

// sleepRuntime runs "sleep" for containers without a command, such as those of the suite.
type sleepRuntime struct{ *processes }

// StartContainer starts the container's command, or "sleep 3600" if it has none.
func (r sleepRuntime) StartContainer(ctx context.Context, pod *v1.Pod, c *v1.Container) (string, error) {
	c = c.DeepCopy()
	if len(c.Command) == 0 {
		c.Command = []string{"sleep", "3600"}
	}
	return r.processes.StartContainer(ctx, pod, c)
}

// The provider passes virtual-kubelet's end-to-end suite at a real API server, with processes as containers. Left out are
// the suite's tests of stats and metrics, which this node does not serve.
func TestProviderPassesVirtualKubeletsSuite(t *testing.T) {
	mux := http.NewServeMux()
	kubelet := httptest.NewServer(mux)
	t.Cleanup(kubelet.Close)
	cluster := httptest.NewServer(withKubelet(t, apiserverprocess.Start(t), kubelet.URL))
	t.Cleanup(cluster.Close)
	runNode(t, cluster.URL, mux)
	e2e.NewEndToEndTestSuite(e2e.EndToEndTestSuiteConfig{
		Kubeconfig: kubeconfig(t, cluster.URL), Namespace: "default", NodeName: e2eNode, WatchTimeout: time.Minute,
		ShouldSkipTest: func(test string) bool { return test == "TestGetStatsSummary" || test == "TestGetMetricsResource" },
	}).Run(t)
}

// withKubelet adds two paths to an API server that does not proxy requests to nodes: /proxy of the node, and /proxy
// of the pod in which virtual-kubelet would run. Both forward to the server at kubelet.
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

// forward returns a reverse proxy to a server. It adds prefix to the paths of the server's redirects, because clients
// reach the server under prefix.
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

// runNode runs a virtual-kubelet node until the end of the test. The node serves its kubelet endpoints on mux.
func runNode(t *testing.T, apiServer string, mux *http.ServeMux) {
	t.Helper()
	client, err := kubernetes.NewForConfig(&rest.Config{Host: apiServer, QPS: -1})
	require.NoError(t, err)
	containers := &processes{}
	provider, err := virtualkubelet.New(virtualkubelet.Options{
		Runtime: sleepRuntime{containers},
		Status:  func(pod *v1.Pod) { pod.Status.HostIP, pod.Status.PodIP = "127.0.0.1", "127.0.0.1" }, // the suite waits until each pod has an address
	})
	require.NoError(t, err)
	running, err := nodeutil.NewNode(e2eNode, func(nodeutil.ProviderConfig) (nodeutil.Provider, node.NodeProvider, error) {
		return withoutStreams{provider}, nil, nil
	}, nodeutil.WithClient(client), nodeutil.AttachProviderRoutes(mux))
	require.NoError(t, err)

	ctx, cancel := context.WithCancel(t.Context())
	var run sync.WaitGroup
	run.Go(func() { _ = running.Run(ctx) }) // WaitReady returns the error, too
	t.Cleanup(func() {
		cancel()
		run.Wait()
		containers.byID.Range(func(id, _ any) bool {
			const killAtOnce = 0
			require.NoError(t, containers.StopContainer(context.WithoutCancel(t.Context()), id.(string), killAtOnce))
			return true
		})
		require.NoError(t, provider.Close(context.WithoutCancel(t.Context())))
	})
	require.NoError(t, running.WaitReady(t.Context(), time.Minute))
}
