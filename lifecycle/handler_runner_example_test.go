package lifecycle_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/kubegrace/kubegrace/lifecycle"
)

// printer is a CommandRunner that prints the command and fails.
type printer struct{}

func (printer) RunInContainer(_ context.Context, id string, cmd []string, timeout time.Duration) ([]byte, error) {
	fmt.Println("in", id, "run", cmd, "within", timeout.Round(10*time.Second))
	return []byte("nginx: no such process"), fmt.Errorf("command '%s' exited with %d", cmd, 1)
}

// The command may take until the deadline of the context. Its output is in the message,
// which is for a log, and never in the error.
func ExampleNewHandlerRunner() {
	pod := &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "shop", UID: "42"},
		Spec: v1.PodSpec{Containers: []v1.Container{{
			Name: "nginx",
			Lifecycle: &v1.Lifecycle{PreStop: &v1.LifecycleHandler{
				Exec: &v1.ExecAction{Command: []string{"nginx", "-s", "quit"}},
			}},
		}}},
	}
	container := &pod.Spec.Containers[0]
	ctx, cancel := context.WithTimeoutCause(context.Background(), 30*time.Second, lifecycle.CauseGraceSpent)
	defer cancel()

	runner := lifecycle.NewHandlerRunner(lifecycle.HandlerRunnerOptions{Commands: printer{}})
	msg, err := runner.Run(ctx, "containerd://3f4e", pod, container, container.Lifecycle.PreStop)
	fmt.Println(msg)
	fmt.Println(err)
	// Output:
	// in containerd://3f4e run [nginx -s quit] within 30s
	// Exec lifecycle hook ([nginx -s quit]) for Container "nginx" in Pod "web_shop(42)" failed - error: command '[nginx -s quit]' exited with 1, message: "nginx: no such process"
	// command '[nginx -s quit]' exited with 1
}

// By default any response to an httpGet hook is a success, as in the kubelet. With
// FailOnHTTPStatus only a status of 2xx is.
func ExampleHandlerRunnerOptions_failOnHTTPStatus() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Println(r.Method, r.URL, "from", r.UserAgent())
		w.WriteHeader(http.StatusServiceUnavailable)
	}))
	defer server.Close()
	address, err := url.Parse(server.URL)
	if err != nil {
		fmt.Println(err)
		return
	}
	hook := &v1.LifecycleHandler{HTTPGet: &v1.HTTPGetAction{
		Host: address.Hostname(), Port: intstr.FromString(address.Port()), Path: "/drain?wait=1",
	}}
	for _, strict := range []bool{false, true} {
		runner := lifecycle.NewHandlerRunner(lifecycle.HandlerRunnerOptions{FailOnHTTPStatus: strict})
		_, err := runner.Run(context.Background(), "", &v1.Pod{}, &v1.Container{}, hook)
		fmt.Println(err)
	}
	// Output:
	// GET /drain?wait=1 from kube-lifecycle/1.37
	// <nil>
	// GET /drain?wait=1 from kube-lifecycle/1.37
	// unexpected HTTP status: 503 Service Unavailable
}
