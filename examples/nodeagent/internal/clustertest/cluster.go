package clustertest

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	corev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"

	"github.com/kubegrace/kubegrace/internal/apiserverprocess"
	"github.com/kubegrace/kubegrace/internal/apiserverproxy"
)

// Cluster is an API server behind a proxy. It ends with its test.
type Cluster struct {
	*apiserverproxy.Proxy

	t    testing.TB
	node string
	core corev1.CoreV1Interface
}

// Start runs an API server that has a node of that name, which is Ready. It returns when
// the server answers.
func Start(t testing.TB, node string) *Cluster {
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

// Kubeconfig is a file for clients that leads to the proxy.
func (c *Cluster) Kubeconfig() string {
	return fmt.Sprintf(`apiVersion: v1
kind: Config
clusters: [{name: test, cluster: {server: %q}}]
contexts: [{name: test, context: {cluster: test, user: node}}]
users: [{name: node, user: {}}]
current-context: test
`, c.URL())
}

// Node is the node as it is stored; an empty one after an error.
func (c *Cluster) Node() *v1.Node {
	node, err := c.core.Nodes().Get(c.t.Context(), c.node, metav1.GetOptions{})
	c.check(err)
	return node
}

// Pod is a pod as it is stored, nil if there is none.
func (c *Cluster) Pod(namespace, name string) *v1.Pod {
	pod, err := c.core.Pods(namespace).Get(c.t.Context(), name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	c.check(err)
	return pod
}

// Pods are those of all namespaces, by namespace and name.
func (c *Cluster) Pods() []v1.Pod {
	list, err := c.core.Pods("").List(c.t.Context(), metav1.ListOptions{})
	c.check(err)
	return list.Items
}

// Events are those of all namespaces, by namespace and object.
func (c *Cluster) Events() []v1.Event {
	list, err := c.core.Events("").List(c.t.Context(), metav1.ListOptions{})
	c.check(err)
	return list.Items
}

// CreatePod stores a pod and gives it as the server has it.
func (c *Cluster) CreatePod(pod *v1.Pod) *v1.Pod {
	created, err := c.core.Pods(pod.Namespace).Create(c.t.Context(), pod, metav1.CreateOptions{})
	c.check(err)
	return created
}

// UpdatePodStatus writes the status of a pod.
func (c *Cluster) UpdatePodStatus(pod *v1.Pod) {
	_, err := c.core.Pods(pod.Namespace).UpdateStatus(c.t.Context(), pod, metav1.UpdateOptions{})
	c.check(err)
}

// check fails the test for an error. At the end of a test, which ends its context, nobody
// waits for an answer any more.
func (c *Cluster) check(err error) {
	c.t.Helper()
	if err != nil && c.t.Context().Err() == nil {
		c.t.Error(err)
	}
}
