//go:build e2e

package e2e_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	corev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"

	"github.com/kubegrace/kubegrace/internal/apiserverprocess"
	"github.com/kubegrace/kubegrace/internal/apiserverproxy"
)

// The name of the machine's Node object, and the file with the agent's kubeconfig.
const (
	nodeName       = "machine"
	kubeconfigFile = "/etc/kubegrace/kubeconfig"
)

// Cluster is an API server behind a proxy that records all requests. Both end with their test.
type Cluster struct {
	*apiserverproxy.Proxy

	t    testing.TB
	node string
	core corev1.CoreV1Interface
}

// StartCluster starts an API server with a Node of that name, which is Ready. It returns when
// the server answers.
func StartCluster(t testing.TB, node string) *Cluster {
	t.Helper()
	url := apiserverprocess.Start(t)
	client, err := kubernetes.NewForConfig(&rest.Config{Host: url, QPS: -1})
	require.NoError(t, err)
	c := &Cluster{Proxy: apiserverproxy.Start(t, url), t: t, node: node, core: client.CoreV1()}
	_, err = c.core.Nodes().Create(t.Context(), &v1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: node},
		Status:     v1.NodeStatus{Conditions: []v1.NodeCondition{{Type: v1.NodeReady, Status: v1.ConditionTrue, Reason: "KubeletReady"}}},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	return c
}

// Kubeconfig returns the content of a kubeconfig file whose server is the proxy.
func (c *Cluster) Kubeconfig() string {
	return fmt.Sprintf(`apiVersion: v1
kind: Config
clusters: [{name: test, cluster: {server: %q}}]
contexts: [{name: test, context: {cluster: test, user: node}}]
users: [{name: node, user: {}}]
current-context: test
`, c.URL())
}

// Pods returns the pods of all namespaces, sorted by namespace and name.
func (c *Cluster) Pods() []v1.Pod {
	list, err := c.core.Pods("").List(c.t.Context(), metav1.ListOptions{})
	c.check(err)
	return list.Items
}

// CreatePod creates a pod and returns it as the server has it.
func (c *Cluster) CreatePod(pod *v1.Pod) *v1.Pod {
	created, err := c.core.Pods(pod.Namespace).Create(c.t.Context(), pod, metav1.CreateOptions{})
	c.check(err)
	return created
}

// UpdatePodStatus replaces the status of a pod.
func (c *Cluster) UpdatePodStatus(pod *v1.Pod) {
	_, err := c.core.Pods(pod.Namespace).UpdateStatus(c.t.Context(), pod, metav1.UpdateOptions{})
	c.check(err)
}

// check fails the test if err is not nil. An error after the end of the test does not count, because that end
// cancels all requests.
func (c *Cluster) check(err error) {
	c.t.Helper()
	if err != nil && c.t.Context().Err() == nil {
		c.t.Error(err)
	}
}
