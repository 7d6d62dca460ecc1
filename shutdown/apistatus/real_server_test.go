//go:build go1.25

package apistatus_test

import (
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	corev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"

	"github.com/kubegrace/kubegrace/internal/apiserverprocess"
	"github.com/kubegrace/kubegrace/internal/apiserverproxy"
	"github.com/kubegrace/kubegrace/shutdown/apistatus"
)

// realServer is an API server behind a proxy that injects faults. Its methods bypass the proxy.
type realServer struct {
	*apiserverproxy.Proxy

	t   testing.TB
	url string // of the API server itself, without the proxy
	api corev1.CoreV1Interface
}

// serve starts an API server with objects, and returns it and a reporter that uses it over TCP, through the proxy. The
// objects get UIDs.
func serve(t testing.TB, objects ...metav1.Object) (*realServer, *apistatus.Reporter) {
	t.Helper()
	url := apiserverprocess.Start(t)
	direct, err := kubernetes.NewForConfig(&rest.Config{Host: url, QPS: -1})
	require.NoError(t, err)
	server := &realServer{Proxy: apiserverproxy.Start(t, url), t: t, url: url, api: direct.CoreV1()}
	for _, object := range objects {
		switch object := object.(type) {
		case *v1.Node:
			server.register(object)
		case *v1.Pod:
			server.create(object)
		default:
			t.Fatalf("serve does not support %T", object)
		}
	}
	return server, server.reporter(defaultTimeout)
}

// defaultTimeout is the RequestTimeout that stands for the default.
const defaultTimeout = 0

// reporter returns a reporter with a RequestTimeout.
func (s *realServer) reporter(timeout time.Duration) *apistatus.Reporter {
	s.t.Helper()
	client, err := apistatus.NewClient(&rest.Config{Host: s.URL()})
	require.NoError(s.t, err)
	return reporterOf(s.t, client, timeout)
}

// serveWithPods starts a server, as serve does, that has n running pods. It also returns the pods with their final
// statuses. It creates ten at a time, because a server on a busy machine refuses more.
func serveWithPods(t testing.TB, n int) (server *realServer, r *apistatus.Reporter, pods []*v1.Pod) {
	t.Helper()
	server, r = serve(t)
	live, _ := podsAndFinalStatuses(n)
	pods = make([]*v1.Pod, n)
	var wg sync.WaitGroup
	free := make(chan struct{}, 10)
	for i, object := range live {
		free <- struct{}{}
		wg.Go(func() {
			defer func() { <-free }()
			pod, _ := object.(*v1.Pod)
			server.create(pod)
			pods[i] = ended(pod)
		})
	}
	wg.Wait()
	return server, r, pods
}

// register creates a node with its status.
func (s *realServer) register(node *v1.Node) {
	s.t.Helper()
	sent := node.DeepCopy()
	sent.ResourceVersion = ""
	got, err := s.api.Nodes().Create(s.t.Context(), sent, metav1.CreateOptions{})
	require.NoError(s.t, err)
	node.UID = got.UID
}

// create creates a pod with its status. The pod gets a UID.
func (s *realServer) create(pod *v1.Pod) {
	got, err := s.api.Pods(pod.Namespace).Create(s.t.Context(), pod, metav1.CreateOptions{})
	if err != nil {
		s.t.Error(err)
		return
	}
	pod.UID = got.UID
	s.setStatus(pod)
}

// setStatus replaces the status of a pod.
func (s *realServer) setStatus(pod *v1.Pod) {
	sent := pod.DeepCopy()
	sent.UID, sent.ResourceVersion, sent.DeletionTimestamp = "", "", nil
	if _, err := s.api.Pods(pod.Namespace).UpdateStatus(s.t.Context(), sent, metav1.UpdateOptions{}); err != nil {
		s.t.Error(err)
	}
}

// setNodeStatus replaces the status of the node.
func (s *realServer) setNodeStatus(node *v1.Node) {
	sent := node.DeepCopy()
	sent.UID, sent.ResourceVersion = "", ""
	if _, err := s.api.Nodes().UpdateStatus(s.t.Context(), sent, metav1.UpdateOptions{}); err != nil {
		s.t.Error(err)
	}
}

// recreate replaces a pod by another one with the same name.
func (s *realServer) recreate(pod *v1.Pod) {
	if err := s.api.Pods(pod.Namespace).Delete(s.t.Context(), pod.Name, *metav1.NewDeleteOptions(0)); err != nil {
		s.t.Error(err)
	}
	s.create(pod)
}

// pods returns all pods of the server.
func (s *realServer) pods() []v1.Pod {
	s.t.Helper()
	list, err := s.api.Pods("").List(s.t.Context(), metav1.ListOptions{})
	require.NoError(s.t, err)
	return list.Items
}

// pod returns the pod with this name.
func (s *realServer) pod(name string) *v1.Pod {
	s.t.Helper()
	pod, err := s.api.Pods(metav1.NamespaceDefault).Get(s.t.Context(), name, metav1.GetOptions{})
	require.NoError(s.t, err)
	return pod
}

// node returns the reporter's node.
func (s *realServer) node() *v1.Node {
	s.t.Helper()
	node, err := s.api.Nodes().Get(s.t.Context(), nodeName, metav1.GetOptions{})
	require.NoError(s.t, err)
	return node
}

// finalStatusCount counts the pods that have their final status.
func (s *realServer) finalStatusCount() int {
	n := 0
	for _, pod := range s.pods() {
		if pod.Status.Phase == v1.PodFailed && pod.Status.Reason == "Terminated" {
			n++
		}
	}
	return n
}
