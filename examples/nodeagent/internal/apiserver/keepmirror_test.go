package apiserver_test

import (
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/utils/ptr"
)

func TestMirrorIsCreatedAndThenReady(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, server := connect(t)
		p := &pod{started: make(chan struct{})}
		keep(t, client, p)
		synctest.Wait()
		created := mirror(t, server)
		require.Equal(t, "web-node-1", created.Name)
		require.Equal(t, created.Annotations["kubernetes.io/config.hash"], created.Annotations[v1.MirrorPodAnnotationKey])
		require.Equal(t, []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: nodeName, UID: "uid-of-node-1", Controller: ptr.To(true)}}, created.OwnerReferences)
		require.Empty(t, created.Status.Conditions, "the pod has not started")

		p.status.Store(running(time.Now()))
		close(p.started)
		<-time.After(time.Nanosecond)
		synctest.Wait()
		now := mirror(t, server)
		require.Equal(t, v1.PodRunning, now.Status.Phase)
		for _, of := range []v1.PodConditionType{v1.PodReady, v1.ContainersReady, v1.PodInitialized, v1.PodScheduled} {
			require.Equal(t, v1.ConditionTrue, condition(now, of).Status, of)
		}
	})
}

// actions returns the verbs of the requests about pods, without reads.
func actions(server *fake.Clientset) []string {
	var verbs []string
	for _, action := range server.Actions() {
		if action.GetResource().Resource == "pods" && !slices.Contains([]string{"get", "list"}, action.GetVerb()) {
			verbs = append(verbs, action.GetVerb())
		}
	}
	return verbs
}

func TestMirrorThatNeedsNoChangeIsNotWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, server := connect(t)
		p := runningPod()
		stop := keep(t, client, p)
		<-time.After(time.Minute)
		stop()
		require.Equal(t, []string{"create", "update"}, actions(server))
	})
}

func TestMirrorThatSomebodyDeletedComesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, server := connect(t)
		p := runningPod()
		keep(t, client, p)
		synctest.Wait()
		require.NoError(t, server.CoreV1().Pods("default").Delete(t.Context(), "web-node-1", metav1.DeleteOptions{}))
		<-time.After(11 * time.Second)
		synctest.Wait()
		require.Equal(t, v1.ConditionTrue, condition(mirror(t, server), v1.PodReady).Status)
	})
}

func TestExistingMirrorIsKeptOrReplaced(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*v1.Pod)
		kept   bool
	}{
		"same manifest":    {func(*v1.Pod) {}, true},
		"another manifest": {func(m *v1.Pod) { m.Annotations[v1.MirrorPodAnnotationKey] = "another" }, false},
		"failed":           {func(m *v1.Pod) { m.Status.Phase = v1.PodFailed }, false},
		"succeeded":        {func(m *v1.Pod) { m.Status.Phase = v1.PodSucceeded }, false},
		"being deleted":    {func(m *v1.Pod) { m.DeletionTimestamp = ptr.To(metav1.Now()); m.Finalizers = []string{"x/y"} }, false},
		"ordinary pod":     {func(m *v1.Pod) { delete(m.Annotations, v1.MirrorPodAnnotationKey) }, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				old := theStaticPod(t)
				old.UID = "old"
				old.Annotations[v1.MirrorPodAnnotationKey] = old.Annotations["kubernetes.io/config.hash"]
				test.change(old)
				client, server := connect(t, old)
				p := runningPod()
				stop := keep(t, client, p)
				<-time.After(time.Minute)
				stop()
				require.Equal(t, test.kept, mirror(t, server).UID == "old")
				for _, action := range server.Actions() {
					if removal, ok := action.(clienttesting.DeleteActionImpl); ok {
						require.EqualValues(t, 0, *removal.DeleteOptions.GracePeriodSeconds)
						require.EqualValues(t, "old", *removal.DeleteOptions.Preconditions.UID)
					}
				}
			})
		})
	}
}

// The mirror of a completed job shows that it has completed, and is not replaced.
func TestMirrorOfAPodThatHasEndedStays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, server := connect(t)
		p := &pod{}
		p.status.Store(&v1.PodStatus{Phase: v1.PodSucceeded, ContainerStatuses: []v1.ContainerStatus{{
			Name: "app", State: v1.ContainerState{Terminated: &v1.ContainerStateTerminated{Reason: "Completed"}},
		}}})
		stop := keep(t, client, p)
		<-time.After(time.Minute)
		stop()
		require.Equal(t, []string{"create", "update"}, actions(server))
		ready := condition(mirror(t, server), v1.PodReady)
		require.Equal(t, v1.ConditionFalse, ready.Status)
		require.Equal(t, "PodCompleted", ready.Reason)
	})
}

func TestFailuresAreTriedAgainWithPauses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, server := connect(t)
		var attempts []time.Duration
		began := time.Now()
		var works atomic.Bool
		server.PrependReactor("create", "pods", func(clienttesting.Action) (bool, runtime.Object, error) {
			if works.Load() {
				return false, nil, nil
			}
			attempts = append(attempts, time.Since(began))
			return true, nil, errors.New("no route to host")
		})
		keep(t, client, &pod{})
		<-time.After(30 * time.Second)
		synctest.Wait()
		works.Store(true)
		require.GreaterOrEqual(t, len(attempts), 5)
		require.LessOrEqual(t, len(attempts), 9, "%v", attempts)
		<-time.After(16 * time.Second)
		synctest.Wait()
		require.NotNil(t, mirror(t, server))
	})
}

func TestMirrorOfAnEndingPodIsNeitherReadNorWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, server := connect(t)
		p := &pod{}
		p.ending.Store(true)
		stop := keep(t, client, p)
		<-time.After(time.Minute)
		require.Empty(t, server.Actions())
		p.ending.Store(false) // the shutdown was cancelled
		<-time.After(11 * time.Second)
		stop()
		require.NotNil(t, mirror(t, server))
	})
}

// The pod begins to end while a request of KeepMirror is answered.
func TestNothingIsWrittenOnceThePodIsEnding(t *testing.T) {
	for after, wrote := range map[string][]string{"pods": nil, "nodes": {"create"}} {
		t.Run(after, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client, server := connect(t)
				p := runningPod()
				server.PrependReactor("get", after, func(clienttesting.Action) (bool, runtime.Object, error) {
					p.ending.Store(true)
					return false, nil, nil
				})
				stop := keep(t, client, p)
				<-time.After(time.Minute)
				stop()
				require.Equal(t, wrote, actions(server))
			})
		})
	}
}

func TestNodeExists(t *testing.T) {
	client, server := connect(t)
	known, err := client.NodeExists(t.Context())
	require.NoError(t, err)
	require.True(t, known)
	require.NoError(t, server.CoreV1().Nodes().Delete(t.Context(), nodeName, metav1.DeleteOptions{}))
	known, err = client.NodeExists(t.Context())
	require.NoError(t, err)
	require.False(t, known)
	server.PrependReactor("get", "nodes", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewUnauthorized("who are you")
	})
	_, err = client.NodeExists(t.Context())
	require.ErrorContains(t, err, `failed to read node "node-1": who are you`)
}
