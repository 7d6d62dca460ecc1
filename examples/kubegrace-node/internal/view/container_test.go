package view_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/examples/kubegrace-node/internal/view"
	"github.com/kubegrace/kubegrace/lifecycle"
)

// A sidecar is an init container that is always restarted. Other containers may have a restart policy too.
func TestOnlyAnInitContainerThatIsAlwaysRestartedIsASidecar(t *testing.T) {
	always, never := v1.ContainerRestartPolicyAlways, v1.ContainerRestartPolicyNever
	pod := &v1.Pod{Spec: v1.PodSpec{
		InitContainers: []v1.Container{{Name: "proxy", RestartPolicy: &always}, {Name: "migrate", RestartPolicy: &never}},
		Containers:     []v1.Container{{Name: "web", RestartPolicy: &always}},
	}}
	for name, want := range map[string]bool{"proxy": true, "migrate": false, "web": false} {
		require.Equal(t, want, view.ContainerOf(pod, lifecycle.ContainerResult{Name: name}).Sidecar, name)
	}
}
