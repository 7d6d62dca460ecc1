package embedded_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubegrace/kubegrace/examples/nodeagent/internal/embedded"
	"github.com/kubegrace/kubegrace/lifecycle"
)

func TestContainerStatus(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pod := &v1.Pod{
			ObjectMeta: metav1.ObjectMeta{UID: "u", Annotations: map[string]string{embedded.ScriptPrefix + "a": "ignores TERM"}},
			Spec:       v1.PodSpec{Containers: []v1.Container{{Name: "a"}, {Name: "b"}}},
		}
		rt := embedded.New()
		status := func(id string) v1.ContainerStatus {
			status, err := rt.ContainerStatus(t.Context(), id)
			require.NoError(t, err)
			require.Equal(t, "embedded://"+id, status.ContainerID)
			return status
		}
		for range 2 { // the second pod has the same container IDs as the first
			began := metav1.Now()
			_, err := rt.StartPod(t.Context(), pod)
			require.NoError(t, err)
			require.Equal(t, began, status("u/a").State.Running.StartedAt)
			<-time.After(time.Second)
			require.NoError(t, rt.StopContainer(t.Context(), "u/b", 1))
			require.Equal(t, &v1.ContainerStateTerminated{
				Reason: "Completed", StartedAt: began, FinishedAt: metav1.Now(), ContainerID: "embedded://u/b",
			}, status("u/b").State.Terminated)
			require.NoError(t, rt.StopContainer(t.Context(), "u/a", 1))
			killed := status("u/a").State.Terminated
			require.EqualValues(t, 137, killed.ExitCode)
			require.Equal(t, "Error", killed.Reason)
			require.NoError(t, rt.StopPod(t.Context(), pod))
			<-time.After(time.Second)
		}
		_, err := rt.ContainerStatus(t.Context(), "u/a")
		require.ErrorIs(t, err, lifecycle.ErrContainerNotFound)
	})
}
