package command_test

import (
	"io"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/examples/nodeagent/internal/clustertest"
)

const nodeName = "node-1"

// cluster is an API server with one node, and an HTTP server for the preStop hooks of its
// pods.
type cluster struct {
	*clustertest.Cluster

	t          *testing.T
	kubeconfig string
	hookPort   int
	dir        string // of kubeconfig and kubelet.yaml

	mu        sync.Mutex        // guards the fields below
	onRequest map[string]func() // what a hook's request calls, by path
	hookPaths []string          // of all requests, in order
}

// startCluster starts both servers, and writes a configuration with one bucket.
func startCluster(t *testing.T, bucketSeconds int) *cluster {
	t.Helper()
	c := &cluster{Cluster: clustertest.Start(t, nodeName), t: t, onRequest: map[string]func(){}}
	c.dir = folder(t, map[string]string{
		"kubeconfig":   c.Kubeconfig(),
		"kubelet.yaml": kubelet + "shutdownGracePeriodByPodPriority: [{priority: 0, shutdownGracePeriodSeconds: " + strconv.Itoa(bucketSeconds) + "}]\n",
	})
	c.kubeconfig = c.dir + "/kubeconfig"
	c.serveHooks()
	return c
}

// serveHooks answers the requests of preStop hooks until the end of the test.
func (c *cluster) serveHooks() {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(c.t, err)
	c.hookPort = listener.Addr().(*net.TCPAddr).Port
	server := &http.Server{Handler: c, ReadHeaderTimeout: time.Minute}
	var serving sync.WaitGroup
	serving.Go(func() { _ = server.Serve(listener) }) // it was closed
	c.t.Cleanup(func() {
		require.NoError(c.t, server.Close())
		serving.Wait()
	})
}

// ServeHTTP records the request of a hook and calls the function of onHook.
func (c *cluster) ServeHTTP(_ http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	c.mu.Lock()
	c.hookPaths = append(c.hookPaths, r.URL.Path)
	call := c.onRequest[r.URL.Path]
	c.mu.Unlock()
	if call != nil {
		call()
	}
}

// calledHooks returns the paths of all hooks that have run, sorted.
func (c *cluster) calledHooks() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Sorted(slices.Values(c.hookPaths))
}

// onHook makes the preStop hook of a pod call a function before the hook ends.
func (c *cluster) onHook(pod string, call func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.onRequest["/"+pod] = call
}

// scriptedWithHook is scripted with a preStop hook that sends a request to this cluster.
func (c *cluster) scriptedWithHook(name, script string) string {
	hook := "lifecycle: {preStop: {httpGet: {port: " + strconv.Itoa(c.hookPort) + ", path: /" + name + "}}}"
	return strings.Replace(scripted(name, script), "image: local/busybox", "image: local/busybox, "+hook, 1)
}

// run starts an agent of this cluster with pods, by file name.
func (c *cluster) run(pods map[string]string, args ...string) *process {
	c.t.Helper()
	return start(c.t, append([]string{
		"--manifests=" + folder(c.t, pods), "--config=" + c.dir + "/kubelet.yaml",
		"--kubeconfig=" + c.kubeconfig, "--node-name=" + nodeName,
	}, args...)...)
}

// pod returns the mirror pod of a pod, or nil if there is none.
func (c *cluster) pod(name string) *v1.Pod { return c.Pod("default", name+"-"+nodeName) }

// eventually waits until a condition holds.
func (c *cluster) eventually(what string, condition func() bool) {
	c.t.Helper()
	require.Eventually(c.t, condition, 20*time.Second, 5*time.Millisecond, what)
}

// waitReady waits until the mirror pods of pods are ready.
func (c *cluster) waitReady(names ...string) {
	c.t.Helper()
	for _, name := range names {
		c.eventually(name+" is ready", func() bool { return conditionOf(c.pod(name), v1.PodReady).Status == v1.ConditionTrue })
	}
}

// waitReplaced waits until there is another pod with the name of an old one.
func (c *cluster) waitReplaced(old *v1.Pod) {
	c.t.Helper()
	c.eventually("another pod "+old.Name, func() bool {
		now := c.Pod(old.Namespace, old.Name)
		return now != nil && now.UID != old.UID
	})
}

// conditionOf returns a condition of a pod, or the zero value if the pod does not have it.
func conditionOf(pod *v1.Pod, conditionType v1.PodConditionType) v1.PodCondition {
	if pod != nil {
		for _, condition := range pod.Status.Conditions {
			if condition.Type == conditionType {
				return condition
			}
		}
	}
	return v1.PodCondition{}
}

// nodeCondition returns a condition of the node without its times, or the zero value if the
// node does not have it.
func (c *cluster) nodeCondition(conditionType v1.NodeConditionType) v1.NodeCondition {
	for _, condition := range c.Node().Status.Conditions {
		if condition.Type == conditionType {
			return v1.NodeCondition{Type: conditionType, Status: condition.Status, Reason: condition.Reason, Message: condition.Message}
		}
	}
	return v1.NodeCondition{}
}
