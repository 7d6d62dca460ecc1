package podinfo_test

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"

	"github.com/kubegrace/kubegrace/examples/kubegrace-node/internal/podinfo"
)

// ofRuntime returns a pod as the container runtime knows it: without a priority, and with the sidecar proxy
// among the containers.
func ofRuntime(namespace, name string) *v1.Pod {
	return &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: "uid", Annotations: map[string]string{"kubernetes.io/config.source": "api"}},
		Spec: v1.PodSpec{
			TerminationGracePeriodSeconds: ptr.To(int64(45)),
			Containers:                    []v1.Container{{Name: "main"}, {Name: "proxy"}},
		},
		Status: v1.PodStatus{Phase: v1.PodRunning, PodIP: "10.0.0.2"},
	}
}

// told returns the pod shop/web as an API server knows it: with a priority, with proxy as a sidecar, and with
// secrets that must not be kept.
func told() v1.Pod {
	return v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "uid", Annotations: map[string]string{"secret": "x"}},
		Spec: v1.PodSpec{
			Priority: ptr.To(int32(1000)), RestartPolicy: v1.RestartPolicyAlways,
			Containers:     []v1.Container{{Name: "main", Env: []v1.EnvVar{{Name: "PASSWORD", Value: "secret"}}}},
			InitContainers: []v1.Container{{Name: "proxy", RestartPolicy: ptr.To(v1.ContainerRestartPolicyAlways)}},
			Volumes:        []v1.Volume{{Name: "secret"}},
		},
		Status: v1.PodStatus{Phase: v1.PodPending, PodIP: "10.0.0.1", Conditions: []v1.PodCondition{{Type: v1.PodReady, Status: v1.ConditionTrue}}},
	}
}

// newInfo returns an Info that keeps its file in dir; with "" it has none.
func newInfo(t *testing.T, dir string, rules ...podinfo.Rule) *podinfo.Info {
	t.Helper()
	info, err := podinfo.New(dir, rules)
	require.NoError(t, err)
	return info
}

// Pods that no source has told about get the priority of the first rule that matches. Without a rule, pods of
// kube-system and pods in the host's network get the priority of system-node-critical, 2000001000, and all
// others 0. Rules that cannot be parsed are errors.
func TestRules(t *testing.T) {
	rule, err := podinfo.ParseRule("ingress/nginx-*=1000")
	require.NoError(t, err)
	all, err := podinfo.ParseRule("batch=-5")
	require.NoError(t, err)
	require.Equal(t, podinfo.Rule{Namespace: "batch", Name: "*", Priority: -5}, all)
	info := newInfo(t, "", rule, all)
	onHost := ofRuntime("monitoring", "exporter")
	onHost.Spec.HostNetwork = true
	for want, pod := range map[int32]*v1.Pod{
		1000: ofRuntime("ingress", "nginx-1"), -5: ofRuntime("batch", "job"), 0: ofRuntime("ingress", "other"), 2000001000: ofRuntime("kube-system", "dns"),
	} {
		require.Equal(t, want, *info.Complete(pod).Spec.Priority)
	}
	require.EqualValues(t, 2000001000, *info.Complete(onHost).Spec.Priority)
	require.Equal(t, podinfo.Guessed, info.Complete(onHost).Annotations[podinfo.PrioritySource])
	require.Equal(t, podinfo.FromRule, info.Complete(ofRuntime("batch", "job")).Annotations[podinfo.PrioritySource])
	for _, text := range []string{"", "a", "a=", "=5", "a/[=5", "a=2147483648"} {
		_, err := podinfo.ParseRule(text)
		require.Error(t, err, text)
	}
}

// What the kubelet told is in the file, so that a new agent knows it when the kubelet is gone. The file must
// have no secrets of the pods, and no pod that the runtime does not have. Completed by the new agent, the pod
// has its priority and its sidecar from the file, and its grace period, phase and address from the runtime.
func TestWhatWasToldIsKept(t *testing.T) {
	dir := t.TempDir()
	info := newInfo(t, dir)
	info.Record(podinfo.FromKubelet, []v1.Pod{told(), {ObjectMeta: metav1.ObjectMeta{UID: "gone"}}})
	info.ForgetAllBut([]*v1.Pod{ofRuntime("shop", "web")})
	require.NoError(t, info.Save())
	text, err := os.ReadFile(filepath.Join(dir, podinfo.File))
	require.NoError(t, err)
	require.NotContains(t, string(text), "secret")
	require.NotContains(t, string(text), "gone")

	pod := newInfo(t, dir).Complete(ofRuntime("shop", "web"))
	require.EqualValues(t, 1000, *pod.Spec.Priority)
	require.Equal(t, podinfo.FromKubelet, pod.Annotations[podinfo.PrioritySource])
	require.EqualValues(t, 45, *pod.Spec.TerminationGracePeriodSeconds, "the runtime's, which is the last that the kubelet knew")
	require.Len(t, pod.Spec.Containers, 1)
	require.Equal(t, "proxy", pod.Spec.InitContainers[0].Name)
	require.Equal(t, "api", pod.Annotations["kubernetes.io/config.source"])
	require.Len(t, pod.Status.Conditions, 1)
	require.Equal(t, v1.PodRunning, pod.Status.Phase)
	require.Equal(t, "10.0.0.2", pod.Status.PodIP)
}

// Many goroutines each tell a pod and then save. The file must have all pods in the end: a slow Save must not replace
// the file of a later one.
func TestALaterSaveWins(t *testing.T) {
	dir := t.TempDir()
	info := newInfo(t, dir)
	var saves sync.WaitGroup
	for priority := range int32(50) {
		saves.Go(func() {
			pod := v1.Pod{ObjectMeta: metav1.ObjectMeta{UID: types.UID(strconv.Itoa(int(priority)))}, Spec: v1.PodSpec{Priority: &priority}}
			info.Record(podinfo.FromKubelet, []v1.Pod{pod})
			assert.NoError(t, info.Save())
		})
	}
	saves.Wait()
	next := newInfo(t, dir)
	for priority := range int32(50) {
		pod := ofRuntime("shop", "web")
		pod.UID = types.UID(strconv.Itoa(int(priority)))
		require.Equal(t, priority, *next.Complete(pod).Spec.Priority)
	}
}

// A file that is no JSON gives an error, and an Info that works without what the file had: the pod gets a
// guessed 0.
func TestABrokenFileIsSaidAndCountsAsEmpty(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, podinfo.File), []byte("{"), 0o600))
	info, err := podinfo.New(dir, nil)
	require.ErrorContains(t, err, "are lost")
	require.Zero(t, *info.Complete(ofRuntime("shop", "web")).Spec.Priority)
}

// The API server only has the mirror pod of a static pod, with another UID. What it tells must reach the
// static pod, which the runtime knows by the hash in the mirror pod's annotation.
func TestAMirrorPodTellsOfItsStaticPod(t *testing.T) {
	mirror := told()
	mirror.UID, mirror.DeletionTimestamp = "another", ptr.To(metav1.Now())
	mirror.Annotations = map[string]string{v1.MirrorPodAnnotationKey: "uid", "kubernetes.io/config.hash": "uid"}
	info := newInfo(t, "")
	info.Record(podinfo.FromAPIServer, []v1.Pod{mirror})
	pod := info.Complete(ofRuntime("shop", "web"))
	require.EqualValues(t, 1000, *pod.Spec.Priority)
	require.EqualValues(t, "uid", pod.UID)
	require.NotContains(t, pod.Annotations, v1.MirrorPodAnnotationKey)
	require.Nil(t, pod.DeletionTimestamp, "the static pod stays when its mirror is deleted")
}

// The kubelet's pods are read over https with credentials, and an answer other than 200 is an error.
func TestKubelet(t *testing.T) {
	answer, status := v1.PodList{Items: []v1.Pod{told()}}, http.StatusOK
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(answer) // the client sees a failure
	}))
	defer server.Close()
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	credentials := &rest.Config{TLSClientConfig: rest.TLSClientConfig{CAData: authority}}
	pods, err := podinfo.KubeletPods(t.Context(), server.URL+"/pods", credentials)
	require.NoError(t, err)
	require.Equal(t, "web", pods[0].Name)
	status = http.StatusForbidden
	_, err = podinfo.KubeletPods(t.Context(), server.URL, credentials)
	require.ErrorContains(t, err, "403")
}

// The watch tells about the pods that exist at its start and about one that is created later. When the API
// server deletes a pod, its priority must still be known, because the pod may still run.
func TestWatchAPIServer(t *testing.T) {
	pod := told()
	pod.Spec.NodeName = "node"
	client := fake.NewClientset(&pod)
	info, synced := newInfo(t, ""), make(chan struct{})
	ctx, cancel := context.WithCancel(t.Context())
	var watching sync.WaitGroup
	watching.Go(func() { assert.NoError(t, podinfo.WatchAPIServer(ctx, client, "node", info, func() { close(synced) })) })
	defer watching.Wait()
	defer cancel()
	<-synced
	require.EqualValues(t, 1000, *info.Complete(ofRuntime("shop", "web")).Spec.Priority)
	later := told()
	later.Name, later.UID, later.Spec.Priority = "later", "later", ptr.To(int32(7))
	_, err := client.CoreV1().Pods("shop").Create(t.Context(), &later, metav1.CreateOptions{})
	require.NoError(t, err)
	require.NoError(t, client.CoreV1().Pods("shop").Delete(t.Context(), "web", metav1.DeleteOptions{}))
	require.Eventually(t, func() bool {
		pod := ofRuntime("shop", "later")
		pod.UID = "later"
		return *info.Complete(pod).Spec.Priority == 7
	}, 10*time.Second, 10*time.Millisecond)
	require.EqualValues(t, 1000, *info.Complete(ofRuntime("shop", "web")).Spec.Priority)
}
