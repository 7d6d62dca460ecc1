package apiserverprocess_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	corev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"

	"github.com/kubegrace/kubegrace/internal/apiserverprocess"
)

const (
	strategic = types.StrategicMergePatchType
	merge     = types.MergePatchType
)

// cluster is an API server with a client for it.
type cluster struct {
	kubernetes.Interface

	url string
}

// startCluster starts an API server for this test, and returns it with a client that has no rate limit.
func startCluster(t testing.TB) cluster {
	t.Helper()
	url := apiserverprocess.Start(t)
	client, err := kubernetes.NewForConfig(&rest.Config{
		Host: url, QPS: -1, ContentConfig: rest.ContentConfig{ContentType: runtime.ContentTypeJSON},
	})
	require.NoError(t, err)
	return cluster{client, url}
}

// pods and nodes return clients for the pods of namespace default and for the nodes.
func (c cluster) pods() corev1.PodInterface   { return c.CoreV1().Pods("default") }
func (c cluster) nodes() corev1.NodeInterface { return c.CoreV1().Nodes() }

// createRunning creates a running pod on node-1. The changes are made before the pod is created.
func (c cluster) createRunning(t testing.TB, name string, change ...func(*v1.Pod)) *v1.Pod {
	t.Helper()
	pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1.PodSpec{NodeName: "node-1"}}
	for _, change := range change {
		change(pod)
	}
	created, err := c.pods().Create(t.Context(), pod, metav1.CreateOptions{})
	require.NoError(t, err)
	created.Status.Phase = v1.PodRunning
	created.Status.Conditions = []v1.PodCondition{{Type: v1.PodReady, Status: v1.ConditionTrue}, {Type: v1.PodScheduled, Status: v1.ConditionTrue}}
	created, err = c.pods().UpdateStatus(t.Context(), created, metav1.UpdateOptions{})
	require.NoError(t, err)
	return created
}

// pod returns the stored pod.
func (c cluster) pod(t testing.TB, name string) *v1.Pod {
	t.Helper()
	pod, err := c.pods().Get(t.Context(), name, metav1.GetOptions{})
	require.NoError(t, err)
	return pod
}

// patch patches the pod web, or a subresource of it, such as its status.
func (c cluster) patch(ctx context.Context, how types.PatchType, body string, subresources ...string) (*v1.Pod, error) {
	return c.pods().Patch(ctx, "web", how, []byte(body), metav1.PatchOptions{}, subresources...)
}

// request sends a request without client-go, and returns status and body of the response.
func (c cluster) request(t testing.TB, method, path, body string) (code int, response string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, c.url+path, strings.NewReader(body))
	require.NoError(t, err)
	r, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	data, err := io.ReadAll(r.Body)
	require.NoError(t, err)
	require.NoError(t, r.Body.Close())
	return r.StatusCode, string(data)
}
