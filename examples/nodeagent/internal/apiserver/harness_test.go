package apiserver_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/klog/v2"

	"github.com/kubegrace/kubegrace/examples/nodeagent/internal/apiserver"
)

const nodeName = "node-1"

func theNode() *v1.Node {
	return &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: nodeName, UID: "uid-of-node-1"}}
}

// theManifest returns a pod as package manifest reads it.
func theManifest() *v1.Pod {
	return &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: "web", UID: "static",
			Annotations: map[string]string{"kubernetes.io/config.source": "file"},
		},
		Spec: v1.PodSpec{Containers: []v1.Container{{Name: "app", Image: "i"}}},
	}
}

// theStaticPod returns the static pod of theManifest.
func theStaticPod(t *testing.T) *v1.Pod {
	t.Helper()
	static, err := apiserver.StaticPods([]*v1.Pod{theManifest()}, nodeName, time.Now())
	require.NoError(t, err)
	return static[0]
}

// pod is an [apiserver.Observed] that a test controls.
type pod struct {
	ending  atomic.Bool
	status  atomic.Pointer[v1.PodStatus] // nil: the pod has not started
	started chan struct{}                // closed when the status is set; nil: it is set from the beginning
}

// runningPod returns a pod that is running now.
func runningPod() *pod {
	p := &pod{}
	p.status.Store(running(time.Now()))
	return p
}

func (p *pod) Ending() bool                                  { return p.ending.Load() }
func (p *pod) Status(context.Context) (*v1.PodStatus, error) { return p.status.Load(), nil }

// Changed returns started until the status is set.
func (p *pod) Changed() <-chan struct{} {
	if p.status.Load() != nil {
		return nil
	}
	return p.started
}

// running returns the status of a pod whose container has been running since a time.
func running(since time.Time) *v1.PodStatus {
	return &v1.PodStatus{
		Phase: v1.PodRunning,
		ContainerStatuses: []v1.ContainerStatus{{
			Name: "app", Ready: true,
			State: v1.ContainerState{Running: &v1.ContainerStateRunning{StartedAt: metav1.NewTime(since).Rfc3339Copy()}},
		}},
	}
}

// connect returns a Client of a fake API server that has the node and the objects.
func connect(t *testing.T, objects ...runtime.Object) (*apiserver.Client, *fake.Clientset) {
	t.Helper()
	server := fake.NewClientset(append(objects, theNode())...)
	return connectTo(t, server), server
}

func connectTo(t *testing.T, server kubernetes.Interface) *apiserver.Client {
	t.Helper()
	client, err := apiserver.New(t.Context(), apiserver.Options{
		Urgent: server, Ordinary: server, NodeName: nodeName, Pods: []*v1.Pod{theStaticPod(t)},
	})
	require.NoError(t, err)
	t.Cleanup(client.Close)
	return client
}

// keep runs KeepMirror for the static pod until stop is called or the test ends.
func keep(t *testing.T, client *apiserver.Client, p *pod) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(klog.NewContext(t.Context(), klog.Logger{}))
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		client.KeepMirror(ctx, theStaticPod(t), p)
	}()
	stop = func() {
		cancel()
		<-ended
	}
	t.Cleanup(stop)
	return stop
}

// mirror returns the mirror of the static pod, or nil.
func mirror(t *testing.T, server kubernetes.Interface) *v1.Pod {
	t.Helper()
	list, err := server.CoreV1().Pods("default").List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	if len(list.Items) == 0 {
		return nil
	}
	return &list.Items[0]
}

// condition returns the condition of a type, or the zero value.
func condition(pod *v1.Pod, conditionType v1.PodConditionType) v1.PodCondition {
	for _, c := range pod.Status.Conditions {
		if c.Type == conditionType {
			return c
		}
	}
	return v1.PodCondition{}
}
