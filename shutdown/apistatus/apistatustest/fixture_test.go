package apistatustest_test

import (
	"bytes"
	"io"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	corev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"

	"github.com/kubegrace/kubegrace/shutdown/apistatus/apistatustest"
)

// start serves objects until the end of the test.
func start(t *testing.T, objects ...runtime.Object) *apistatustest.Server {
	t.Helper()
	server, err := apistatustest.Start(objects...)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, server.Close()) })
	return server
}

// configFor is the config of a client that is not throttled and sends JSON.
func configFor(server *apistatustest.Server) *rest.Config {
	return &rest.Config{
		Host:          server.URL(),
		UserAgent:     "agent/1",
		QPS:           -1,
		ContentConfig: rest.ContentConfig{ContentType: runtime.ContentTypeJSON},
	}
}

func clientFor(t *testing.T, server *apistatustest.Server) corev1.CoreV1Interface {
	t.Helper()
	client, err := kubernetes.NewForConfig(configFor(server))
	require.NoError(t, err)
	return client.CoreV1()
}

// pod is one that runs on a node.
func pod(name string) *v1.Pod {
	return &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID("uid-of-" + name)},
		Spec:       v1.PodSpec{NodeName: "node-1"},
		Status:     v1.PodStatus{Phase: v1.PodRunning},
	}
}

func node(name string) *v1.Node {
	return &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

// stored is a pod of the server.
func stored(t *testing.T, server *apistatustest.Server, name string) *v1.Pod {
	t.Helper()
	pod, ok := server.Pod("default", name)
	require.True(t, ok, "%s is not stored", name)
	return pod
}

// ask sends a request without client-go, and gives the code and the body.
func ask(t *testing.T, server *apistatustest.Server, method, path, contentType, body string) (code int, answer string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, server.URL()+path, bytes.NewReader([]byte(body)))
	require.NoError(t, err)
	if contentType != "" {
		request.Header.Set("Content-Type", contentType)
	}
	response, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	defer func() { require.NoError(t, response.Body.Close()) }()
	data, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	return response.StatusCode, string(data)
}
