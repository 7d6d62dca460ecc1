package lifecycle_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/kubegrace/kubegrace/lifecycle"
)

const containerID = "test://abc1234"

// hookPod is a pod at 127.0.0.1 with one container, and that container.
func hookPod() (*v1.Pod, *v1.Container) {
	pod := &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "shop", UID: "42"},
		Spec: v1.PodSpec{Containers: []v1.Container{{
			Name:  "server",
			Ports: []v1.ContainerPort{{Name: "admin", ContainerPort: 8080}},
		}}},
		Status: v1.PodStatus{PodIPs: []v1.PodIP{{IP: "127.0.0.1"}}},
	}
	return pod, &pod.Spec.Containers[0]
}

func TestHandlersThatCannotRun(t *testing.T) {
	tests := map[string]struct {
		handler *v1.LifecycleHandler
		err     string
	}{
		"nil":   {nil, "invalid handler: nil"},
		"empty": {&v1.LifecycleHandler{}, "invalid handler: &LifecycleHandler{Exec:nil,HTTPGet:nil,TCPSocket:nil,Sleep:nil,}"},
		"tcpSocket": {
			&v1.LifecycleHandler{TCPSocket: &v1.TCPSocketAction{Port: intstr.FromInt32(80), Host: "db"}},
			"invalid handler: &LifecycleHandler{Exec:nil,HTTPGet:nil,TCPSocket:&TCPSocketAction{Port:{0 80 },Host:db,},Sleep:nil,}",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			pod, container := hookPod()
			runner := lifecycle.NewHandlerRunner(lifecycle.HandlerRunnerOptions{})
			msg, err := runner.Run(t.Context(), containerID, pod, container, tt.handler)
			require.EqualError(t, err, tt.err)
			require.Equal(t, "Cannot run handler: "+tt.err, msg)
		})
	}
}
