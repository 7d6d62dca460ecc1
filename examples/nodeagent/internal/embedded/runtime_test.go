package embedded_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/kubegrace/kubegrace/examples/nodeagent/internal/embedded"
	"github.com/kubegrace/kubegrace/lifecycle"
)

func TestScriptsDecideHowLongAStopTakes(t *testing.T) {
	for script, want := range map[string]time.Duration{
		"":                                       0,
		"exits 3s after TERM":                    3 * time.Second,
		"ignores TERM":                           10 * time.Second,
		"exits by itself after 2s, ignores TERM": 2 * time.Second,
	} {
		synctest.Test(t, func(t *testing.T) {
			rt := embedded.New()
			containers, err := rt.StartPod(t.Context(), podWith(script))
			require.NoError(t, err)
			began := time.Now()
			require.NoError(t, rt.StopContainer(t.Context(), containers[0].ID, 10))
			require.Equal(t, want, time.Since(began), script)
			<-rt.Exited(containers[0].ID)
		})
	}
}

func TestScriptedStopFails(t *testing.T) {
	rt := embedded.New()
	containers, err := rt.StartPod(t.Context(), podWith("StopContainer fails"))
	require.NoError(t, err)
	require.Error(t, rt.StopContainer(t.Context(), containers[0].ID, 10))
}

func TestScriptedStopHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rt := embedded.New()
		containers, err := rt.StartPod(t.Context(), podWith("StopContainer hangs"))
		require.NoError(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		require.ErrorIs(t, rt.StopContainer(ctx, containers[0].ID, 10), context.DeadlineExceeded)
	})
}

func TestScriptedCommands(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rt := embedded.New()
		containers, err := rt.StartPod(t.Context(), podWith("exec takes 2s"))
		require.NoError(t, err)
		began := time.Now()
		_, err = rt.RunInContainer(t.Context(), containers[0].ID, []string{"true"}, 0)
		require.NoError(t, err)
		require.Equal(t, 2*time.Second, time.Since(began))
		_, err = rt.RunInContainer(t.Context(), containers[0].ID, []string{"true"}, time.Second)
		require.Error(t, err, "the timeout ends the command")

		failing := podWith("exec fails")
		failing.UID = "failing"
		containers, err = rt.StartPod(t.Context(), failing)
		require.NoError(t, err)
		_, err = rt.RunInContainer(t.Context(), containers[0].ID, []string{"true"}, 0)
		require.ErrorContains(t, err, "exited with 1")
	})
}

// podWithInit returns a pod with an init container that takes 5 s and a sidecar.
func podWithInit() *v1.Pod {
	pod := podWith("")
	pod.Annotations[embedded.ScriptPrefix+"init"] = "exits by itself after 5s"
	pod.Spec.InitContainers = []v1.Container{
		{Name: "proxy", RestartPolicy: ptr.To(v1.ContainerRestartPolicyAlways)},
		{Name: "quick"},
		{Name: "init"},
	}
	return pod
}

func TestStartPodOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rt, began := embedded.New(), time.Now()
		containers, err := rt.StartPod(t.Context(), podWithInit())
		require.NoError(t, err)
		require.Equal(t, 5*time.Second, time.Since(began))
		require.Equal(t, []lifecycle.Container{{Name: "proxy", ID: "uid/proxy"}, {Name: "app", ID: "uid/app"}}, containers)
	})
}

func TestStartPodEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rt, cause := embedded.New(), errors.New("shutting down")
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, cause)
		defer cancel()
		containers, err := rt.StartPod(ctx, podWithInit())
		require.ErrorIs(t, err, cause)
		require.Equal(t, []lifecycle.Container{{Name: "proxy", ID: "uid/proxy"}}, containers, "the sidecar runs")
		require.NoError(t, rt.StopPod(t.Context(), podWithInit()))
		<-rt.Exited("uid/proxy")
	})
}

func TestStartPodRefusesABrokenScript(t *testing.T) {
	_, err := embedded.New().StartPod(t.Context(), podWith("dances"))
	require.ErrorContains(t, err, `annotation nodeagent.kubegrace.dev/script.app: "dances" is not understood`)
}

func TestPodsAreAdopted(t *testing.T) {
	rt := embedded.New()
	first, err := rt.StartPod(t.Context(), podWith(""))
	require.NoError(t, err)
	exited := rt.Exited(first[0].ID)
	second, err := rt.StartPod(t.Context(), podWith(""))
	require.NoError(t, err)
	require.Equal(t, first, second)
	select {
	case <-exited:
		t.Fatal("the container was started again")
	default:
	}
}

func TestStopPodRemovesThePod(t *testing.T) {
	rt := embedded.New()
	containers, err := rt.StartPod(t.Context(), podWith("ignores TERM"))
	require.NoError(t, err)
	require.NoError(t, rt.StopPod(t.Context(), podWith("")))
	require.ErrorIs(t, rt.StopContainer(t.Context(), containers[0].ID, 1), lifecycle.ErrContainerNotFound)
	require.NoError(t, rt.StopPod(t.Context(), podWith("")), "the pod is unknown now")
	require.NoError(t, rt.Close())
}
