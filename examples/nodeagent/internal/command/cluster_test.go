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

// cluster is an API server that knows one node, and the place where preStop hooks of its
// pods call.
type cluster struct {
	*clustertest.Cluster

	t          *testing.T
	kubeconfig string
	hookPort   int
	dir        string // of manifests and configuration

	mu    sync.Mutex
	hooks map[string]func() // by the path that a hook asks for
	heard []string          // paths, in order
}

// startCluster starts both, with a configuration of so many seconds for all pods.
func startCluster(t *testing.T, seconds int) *cluster {
	t.Helper()
	c := &cluster{Cluster: clustertest.Start(t, nodeName), t: t, hooks: map[string]func(){}}
	c.dir = folder(t, map[string]string{
		"kubeconfig":   c.Kubeconfig(),
		"kubelet.yaml": kubelet + "shutdownGracePeriodByPodPriority: [{priority: 0, shutdownGracePeriodSeconds: " + strconv.Itoa(seconds) + "}]\n",
	})
	c.kubeconfig = c.dir + "/kubeconfig"
	c.serveHooks()
	return c
}

// serveHooks answers the preStop hooks.
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

// ServeHTTP lets the test look around while a hook runs.
func (c *cluster) ServeHTTP(_ http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	c.mu.Lock()
	c.heard = append(c.heard, r.URL.Path)
	do := c.hooks[r.URL.Path]
	c.mu.Unlock()
	if do != nil {
		do()
	}
}

// called are the hooks that have run, sorted.
func (c *cluster) called() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Sorted(slices.Values(c.heard))
}

// onHook has something done while the preStop hook of a pod runs.
func (c *cluster) onHook(pod string, do func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.hooks["/"+pod] = do
}

// hooked is a pod like scripted's with a preStop hook that calls here.
func (c *cluster) hooked(name, script string) string {
	hook := "lifecycle: {preStop: {httpGet: {port: " + strconv.Itoa(c.hookPort) + ", path: /" + name + "}}}"
	return strings.Replace(scripted(name, script), "image: local/busybox", "image: local/busybox, "+hook, 1)
}

// run starts an agent with pods.
func (c *cluster) run(pods map[string]string, args ...string) *process {
	c.t.Helper()
	return start(c.t, append([]string{
		"--manifests=" + folder(c.t, pods), "--config=" + c.dir + "/kubelet.yaml",
		"--kubeconfig=" + c.kubeconfig, "--node-name=" + nodeName,
	}, args...)...)
}

// pod is the mirror of a pod, nil if there is none.
func (c *cluster) pod(name string) *v1.Pod { return c.Pod("default", name+"-"+nodeName) }

// eventually waits for something on the server.
func (c *cluster) eventually(what string, holds func() bool) {
	c.t.Helper()
	require.Eventually(c.t, holds, 20*time.Second, 5*time.Millisecond, what)
}

// ready waits until pods are shown as ready.
func (c *cluster) ready(names ...string) {
	c.t.Helper()
	for _, name := range names {
		c.eventually(name+" is ready", func() bool { return conditionOf(c.pod(name), v1.PodReady).Status == v1.ConditionTrue })
	}
}

// replaced waits until there is another pod of the name of one.
func (c *cluster) replaced(old *v1.Pod) {
	c.t.Helper()
	c.eventually("another pod "+old.Name, func() bool {
		now := c.Pod(old.Namespace, old.Name)
		return now != nil && now.UID != old.UID
	})
}

// conditionOf is a condition of a pod; the zero one if it has none.
func conditionOf(pod *v1.Pod, of v1.PodConditionType) v1.PodCondition {
	if pod != nil {
		for _, condition := range pod.Status.Conditions {
			if condition.Type == of {
				return condition
			}
		}
	}
	return v1.PodCondition{}
}

// nodeCondition is a condition of the node, without its times.
func (c *cluster) nodeCondition(of v1.NodeConditionType) v1.NodeCondition {
	for _, condition := range c.Node().Status.Conditions {
		if condition.Type == of {
			return v1.NodeCondition{Type: of, Status: condition.Status, Reason: condition.Reason, Message: condition.Message}
		}
	}
	return v1.NodeCondition{}
}
