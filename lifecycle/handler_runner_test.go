//go:build go1.25

package lifecycle_test

import (
	"context"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/kubegrace/kubegrace/lifecycle"
	"github.com/kubegrace/kubegrace/metrics"
)

const containerID = "test://abc1234"

// hookPod returns a pod at 127.0.0.1 with one container, and that container.
func hookPod() (*v1.Pod, *v1.Container) {
	pod := &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "shop", UID: "42"},
		Spec: v1.PodSpec{Containers: []v1.Container{{
			Name:  "server",
			Ports: []v1.ContainerPort{{Name: "admin", ContainerPort: 8080}, {Name: "90", ContainerPort: 9090}},
		}}},
		Status: v1.PodStatus{PodIPs: []v1.PodIP{{IP: "127.0.0.1"}}},
	}
	return pod, &pod.Spec.Containers[0]
}

// runHook runs one handler for the container of hookPod.
func runHook(ctx context.Context, opts lifecycle.HandlerRunnerOptions, handler *v1.LifecycleHandler) (string, error) {
	pod, container := hookPod()
	return lifecycle.NewHandlerRunner(opts).Run(ctx, containerID, pod, container, handler)
}

// countingMetrics returns metrics, and a function that returns the value of the counter with a name.
func countingMetrics(t *testing.T) (counters *metrics.Lifecycle, count func(name string) float64) {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	counters, err := metrics.NewLifecycle(registry, metrics.Options{})
	require.NoError(t, err)
	return counters, func(name string) float64 {
		families, err := registry.Gather()
		require.NoError(t, err)
		for _, family := range families {
			if family.GetName() == name {
				return family.GetMetric()[0].GetCounter().GetValue()
			}
		}
		require.Fail(t, "no such counter", name)
		return 0
	}
}

// Each hook lacks something that it needs to run, such as a handler, a port or a command runner. Pod and container are nil,
// and the context has ended. The hook fails with an error and the kubelet's message, and does not panic.
func TestHooksThatCannotRun(t *testing.T) {
	ended, cancel := context.WithCancelCause(t.Context())
	cancel(lifecycle.CauseGraceSpent)
	for name, test := range map[string]struct {
		handler *v1.LifecycleHandler
		message string
	}{
		"nil":   {handler: nil, message: "Cannot run handler: invalid handler: nil"},
		"empty": {handler: &v1.LifecycleHandler{}, message: "Cannot run handler: invalid handler: &LifecycleHandler{Exec:nil,HTTPGet:nil,TCPSocket:nil,Sleep:nil,}"},
		"tcpSocket": {
			handler: &v1.LifecycleHandler{TCPSocket: &v1.TCPSocketAction{Port: intstr.FromInt32(80), Host: "db"}},
			message: "Cannot run handler: invalid handler: &LifecycleHandler{Exec:nil,HTTPGet:nil,TCPSocket:&TCPSocketAction{Port:{0 80 },Host:db,},Sleep:nil,}",
		},
		"exec without Commands": {
			handler: &v1.LifecycleHandler{Exec: &v1.ExecAction{}},
			message: `Exec lifecycle hook ([]) for Container "" in Pod "<nil>" failed - error: no command runner for exec hooks: Commands is nil, message: ""`,
		},
		"httpGet without a pod": {
			handler: httpHandler(v1.HTTPGetAction{Path: "/bye", Port: intstr.FromInt32(80)}),
			message: `HTTP lifecycle hook (/bye) for Container "" in Pod "<nil>" failed - error: failed to find networking container: <nil>`,
		},
		"httpGet without a container": {
			handler: httpHandler(v1.HTTPGetAction{Path: "/bye", Host: "localhost", Port: intstr.FromString("admin")}),
			message: `HTTP lifecycle hook (/bye) for Container "" in Pod "<nil>" failed - error: strconv.Atoi: parsing "admin": invalid syntax`,
		},
		"sleep": {
			handler: sleepHandler(5),
			message: `Sleep lifecycle hook (5) for Container "" in Pod "<nil>" failed - error: ` + sleepCutText,
		},
	} {
		t.Run(name, func(t *testing.T) {
			message, err := lifecycle.NewHandlerRunner(lifecycle.HandlerRunnerOptions{}).Run(ended, "", nil, nil, test.handler)
			require.Error(t, err)
			require.Equal(t, test.message, message)
		})
	}
}
