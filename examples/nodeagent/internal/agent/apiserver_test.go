package agent_test

import (
	"errors"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/utils/ptr"

	"github.com/kubegrace/kubegrace/examples/nodeagent/internal/apiserver"
)

// withAPIServer gives the agent an API server with its node, and makes its pods static pods.
// All pods must have been added.
func (b *testbed) withAPIServer() *fake.Clientset {
	b.t.Helper()
	for _, pod := range b.opts.Pods {
		metav1.SetMetaDataAnnotation(&pod.ObjectMeta, "kubernetes.io/config.source", "file")
	}
	static, err := apiserver.StaticPods(b.opts.Pods, "node", time.Now())
	require.NoError(b.t, err)
	server := fake.NewClientset(&v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node"}})
	b.opts.Pods = static
	b.opts.APIServer, err = apiserver.New(b.t.Context(), apiserver.Options{Urgent: server, Ordinary: server, NodeName: "node", Pods: static})
	require.NoError(b.t, err)
	return server
}

// mirrorOf returns the mirror pod of a pod.
func (b *testbed) mirrorOf(server *fake.Clientset, name string) *v1.Pod {
	b.t.Helper()
	pod, err := server.CoreV1().Pods("ns").Get(b.t.Context(), name+"-node", metav1.GetOptions{})
	require.NoError(b.t, err)
	return pod
}

func TestSidecarIsAnInitContainer(t *testing.T) {
	inBubble(t, func(t *testing.T, b *testbed) {
		pod := b.addPod("web", 0, "exits 1s after TERM")
		pod.Spec.InitContainers = []v1.Container{{Name: "proxy", Image: "envoy", RestartPolicy: ptr.To(v1.ContainerRestartPolicyAlways)}}
		server := b.withAPIServer()
		began := metav1.Now()
		b.run()
		b.advance(time.Second)
		status := b.mirrorOf(server, "web").Status
		require.Equal(t, v1.PodRunning, status.Phase)
		require.True(t, status.StartTime.Equal(&began))
		require.Len(t, status.InitContainerStatuses, 1)
		require.Equal(t, "envoy", status.InitContainerStatuses[0].Image)
		require.True(t, status.InitContainerStatuses[0].Ready)

		b.advance(time.Minute)
		require.NoError(t, b.terminate())
		status = b.mirrorOf(server, "web").Status
		require.Equal(t, v1.PodFailed, status.Phase)
		require.Len(t, status.ContainerStatuses, 1)
		require.Len(t, status.InitContainerStatuses, 1)
		ended := status.InitContainerStatuses[0].State.Terminated
		require.True(t, ended.StartedAt.Equal(&began))
		require.InDelta(t, 62, ended.FinishedAt.Sub(began.Time).Seconds(), 0.2)
	})
}

func TestPhaseFollowsTheRestartPolicy(t *testing.T) {
	for policy, want := range map[v1.RestartPolicy]v1.PodPhase{
		v1.RestartPolicyAlways: v1.PodRunning, v1.RestartPolicyOnFailure: v1.PodSucceeded, v1.RestartPolicyNever: v1.PodSucceeded,
	} {
		t.Run(string(policy), func(t *testing.T) {
			inBubble(t, func(t *testing.T, b *testbed) {
				b.addPod("job", 0, "exits by itself after 3s").Spec.RestartPolicy = policy
				server := b.withAPIServer()
				b.run()
				b.advance(4 * time.Second)
				require.Equal(t, want, b.mirrorOf(server, "job").Status.Phase)
				for _, condition := range b.mirrorOf(server, "job").Status.Conditions {
					if condition.Type == v1.PodReady {
						restarted := policy == v1.RestartPolicyAlways
						require.Equal(t, restarted, condition.Status == v1.ConditionTrue)
					}
				}
				require.NoError(t, b.terminate())
				if want == v1.PodRunning {
					want = v1.PodFailed
				}
				require.Equal(t, want, b.mirrorOf(server, "job").Status.Phase)
			})
		})
	}
}

// In a shutdown a missing mirror pod is not created again, even if the stop of its pod has
// not begun.
func TestMirrorPodsAreNotCreatedInAShutdown(t *testing.T) {
	inBubble(t, func(t *testing.T, b *testbed) {
		b.addPod("low", 0, "exits 15s after TERM").Spec.TerminationGracePeriodSeconds = ptr.To(int64(18))
		b.addPod("high", 1000, "")
		server := b.withAPIServer()
		b.run()
		b.advance(time.Second)
		b.signals <- syscall.SIGTERM
		b.advance(time.Second)
		require.NoError(t, server.CoreV1().Pods("ns").Delete(t.Context(), "high-node", metav1.DeleteOptions{}))
		require.NoError(t, b.waitEnd())
		_, err := server.CoreV1().Pods("ns").Get(t.Context(), "high-node", metav1.GetOptions{})
		require.True(t, apierrors.IsNotFound(err), "%v", err)
	})
}

// A pod that was told to stop has failed, even if its containers have exited with 0.
func TestPodThatWasStoppedHasNotSucceeded(t *testing.T) {
	inBubble(t, func(t *testing.T, b *testbed) {
		b.addPod("job", 0, "").Spec.RestartPolicy = v1.RestartPolicyNever
		server := b.withAPIServer()
		b.run()
		require.NoError(t, b.terminate())
		require.Equal(t, v1.PodFailed, b.mirrorOf(server, "job").Status.Phase)
	})
}

// A pod that has succeeded while the API server was away has the phase Succeeded after the
// shutdown.
func TestSuccessThatWasNotReportedIsKept(t *testing.T) {
	inBubble(t, func(t *testing.T, b *testbed) {
		b.addPod("job", 0, "exits by itself after 3s").Spec.RestartPolicy = v1.RestartPolicyNever
		server := b.withAPIServer()
		var away atomic.Bool
		server.PrependReactor("update", "pods", func(clienttesting.Action) (bool, runtime.Object, error) {
			return away.Load(), nil, errors.New("no route to host")
		})
		b.run()
		away.Store(true)
		b.advance(4 * time.Second)
		require.Equal(t, v1.PodRunning, b.mirrorOf(server, "job").Status.Phase)
		require.NoError(t, b.terminate())
		require.Equal(t, v1.PodSucceeded, b.mirrorOf(server, "job").Status.Phase)
	})
}

func TestMirrorOfAPodThatCannotStartIsPending(t *testing.T) {
	inBubble(t, func(t *testing.T, b *testbed) {
		b.addPod("broken", 0, "dances")
		server := b.withAPIServer()
		b.run()
		b.advance(time.Minute)
		require.Empty(t, b.mirrorOf(server, "broken").Status.Conditions)
		require.NoError(t, b.terminate())
	})
}

// The service manager is asked to wait for the reports to the API server, too.
func TestServiceManagerIsAskedToWaitForTheReports(t *testing.T) {
	inBubble(t, func(t *testing.T, b *testbed) {
		b.addPod("web", 0, "")
		b.withAPIServer()
		b.run()
		require.NoError(t, b.terminate())
		require.Contains(t, b.notified, "STATUS=Shutting down\nEXTEND_TIMEOUT_USEC=41000000",
			"30 s for the pods, 2 s for the node, 2 s for readiness and statuses in each bucket, 5 s to end")
		require.Contains(t, b.output(), "it may take up to 36.0 s")
	})
}

// A pod that could not be stopped may still run, so its mirror pod stays Running.
func TestPodThatCannotStopHasNoFinalStatus(t *testing.T) {
	inBubble(t, func(t *testing.T, b *testbed) {
		b.addPod("stuck", 0, "StopContainer fails")
		server := b.withAPIServer()
		b.run()
		require.Error(t, b.terminate())
		status := b.mirrorOf(server, "stuck").Status
		require.Equal(t, v1.PodRunning, status.Phase)
		require.NotNil(t, status.ContainerStatuses[0].State.Running)
	})
}

// An API server that refuses everything takes the time that is reserved for it, and none of
// the pods' time.
func TestRefusedReportsAreErrors(t *testing.T) {
	inBubble(t, func(t *testing.T, b *testbed) {
		b.addPod("web", 0, "exits 1s after TERM")
		server := b.withAPIServer()
		server.PrependReactor("*", "*", func(clienttesting.Action) (bool, runtime.Object, error) {
			return true, nil, errors.New("no route to host")
		})
		b.run()
		b.advance(time.Minute)
		began := time.Now()
		err := b.terminate()
		require.ErrorContains(t, err, "failed to publish the node state")
		require.ErrorContains(t, err, "and 1 more errors like that (-v=1 logs all)")
		require.LessOrEqual(t, time.Since(began), 6700*time.Millisecond, "2 s for the node, 1 s for the pod, 2.5 s for its status and 1 s for a last attempt")
		require.Contains(t, b.output(), "1 of 1 pod stopped in time.")
		require.Contains(t, b.output(), "has not accepted the final status of 1 pod: ns/web-node")
		require.Regexp(t, "does not know that this node shut down: .*no route to host", b.output())
	})
}
