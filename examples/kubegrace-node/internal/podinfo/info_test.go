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

// runtimesPod returns a pod as the container runtime knows it: without a priority, and with the sidecar proxy among the
// containers.
func runtimesPod(namespace, name string) *v1.Pod {
	return &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: "uid", Annotations: map[string]string{"kubernetes.io/config.source": "api"}},
		Spec: v1.PodSpec{
			TerminationGracePeriodSeconds: ptr.To(int64(45)),
			Containers:                    []v1.Container{{Name: "main"}, {Name: "proxy"}},
		},
		Status: v1.PodStatus{Phase: v1.PodRunning, PodIP: "10.0.0.2"},
	}
}

// fullPod returns the pod shop/web as the API server and the kubelet know it: with the priority 1000, with proxy as a
// sidecar, ready, and with secrets that must not be stored.
func fullPod() v1.Pod {
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

// newInfo returns an Info with its file in dir, or without a file if dir is "".
func newInfo(t *testing.T, dir string, rules ...podinfo.Rule) *podinfo.Info {
	t.Helper()
	info, err := podinfo.New(dir, rules)
	require.NoError(t, err)
	return info
}

// A pod of which neither the kubelet nor the API server has told the priority gets that of the first rule that matches.
func TestTheFirstRuleThatMatchesDecides(t *testing.T) {
	info := newInfo(t, "", podinfo.Rule{Namespace: "ingress", Name: "nginx-*", Priority: 1000}, podinfo.Rule{Namespace: "*", Name: "*", Priority: -5})
	for want, pod := range map[int32]*v1.Pod{1000: runtimesPod("ingress", "nginx-1"), -5: runtimesPod("ingress", "other")} {
		require.Equal(t, want, *info.Enrich(pod).Spec.Priority)
		require.Equal(t, podinfo.FromRule, info.Enrich(pod).Annotations[podinfo.PrioritySource])
	}
}

// Without a rule, pods of kube-system and pods in the host's network get the priority of system-node-critical, 2000001000, and all other
// pods get 0.
func TestPrioritiesAreGuessedWithoutARule(t *testing.T) {
	onHost := runtimesPod("monitoring", "exporter")
	onHost.Spec.HostNetwork = true
	for pod, want := range map[*v1.Pod]int32{runtimesPod("kube-system", "dns"): 2000001000, onHost: 2000001000, runtimesPod("shop", "web"): 0} {
		enriched := newInfo(t, "").Enrich(pod)
		require.Equal(t, want, *enriched.Spec.Priority, pod.Name)
		require.Equal(t, podinfo.Guessed, enriched.Annotations[podinfo.PrioritySource])
	}
}

// A rule is NAMESPACE/NAME=PRIORITY. Without a name it is for all pods of the namespace.
func TestParseRule(t *testing.T) {
	for text, want := range map[string]podinfo.Rule{
		"ingress/nginx-*=1000": {Namespace: "ingress", Name: "nginx-*", Priority: 1000},
		"batch=-5":             {Namespace: "batch", Name: "*", Priority: -5},
	} {
		rule, err := podinfo.ParseRule(text)
		require.NoError(t, err)
		require.Equal(t, want, rule)
	}
}

// A rule that cannot be parsed is an error.
func TestInvalidRules(t *testing.T) {
	for _, text := range []string{"", "a", "a=", "=5", "a/[=5", "a=2147483648"} {
		_, err := podinfo.ParseRule(text)
		require.Error(t, err, text)
	}
}

// Save stores what the kubelet knows about its pods, so that a new agent has it when the kubelet is gone. The file must
// have neither the pods' environment and volumes nor pods that the runtime does not have. Only its owner can read it.
//
// A pod that the new agent enriches has the file's priority (1000), sidecar (proxy) and readiness, the only condition.
// Its grace period (45 s), phase, address and annotations are the runtime's.
func TestSaveStoresTheKubeletsPods(t *testing.T) {
	dir := t.TempDir()
	info := newInfo(t, dir)
	info.Record(podinfo.FromKubelet, []v1.Pod{fullPod(), {ObjectMeta: metav1.ObjectMeta{UID: "gone"}}})
	info.ForgetAllBut([]*v1.Pod{runtimesPod("shop", "web")})
	require.NoError(t, info.Save())
	text, err := os.ReadFile(filepath.Join(dir, podinfo.File))
	require.NoError(t, err)
	require.NotContains(t, string(text), "secret")
	require.NotContains(t, string(text), "gone")
	file, err := os.Stat(filepath.Join(dir, podinfo.File))
	require.NoError(t, err)
	require.Equal(t, "-rw-------", file.Mode().String())

	// A new agent enriches a pod.
	pod := newInfo(t, dir).Enrich(runtimesPod("shop", "web"))
	require.EqualValues(t, 1000, *pod.Spec.Priority)
	require.Equal(t, podinfo.FromKubelet, pod.Annotations[podinfo.PrioritySource])
	require.EqualValues(t, 45, *pod.Spec.TerminationGracePeriodSeconds, "the runtime's")
	require.Equal(t, "proxy", pod.Spec.InitContainers[0].Name)
	require.Len(t, pod.Spec.Containers, 1, "without the sidecar")
	require.Equal(t, "api", pod.Annotations["kubernetes.io/config.source"])
	require.Len(t, pod.Status.Conditions, 1)
	require.Equal(t, v1.PodRunning, pod.Status.Phase)
	require.Equal(t, "10.0.0.2", pod.Status.PodIP)
}

// 50 goroutines each record a pod and then save. In the end the file must have all 50 pods: a slow Save must not
// replace the file of a later Save.
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
		pod := runtimesPod("shop", "web")
		pod.UID = types.UID(strconv.Itoa(int(priority)))
		require.Equal(t, priority, *next.Enrich(pod).Spec.Priority)
	}
}

// The file is no JSON. New returns an error, and an Info that works as if the file were empty: a pod gets the guessed
// priority 0.
func TestABrokenFileCountsAsEmpty(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, podinfo.File), []byte("{"), 0o600))
	info, err := podinfo.New(dir, nil)
	require.ErrorContains(t, err, "are lost")
	require.Zero(t, *info.Enrich(runtimesPod("shop", "web")).Spec.Priority)
}

// The API server does not have a static pod, only its mirror pod with another UID. The static pod must get the priority
// of its mirror pod. The runtime's UID of the static pod is the hash in the mirror pod's annotation.
func TestAStaticPodHasThePriorityOfItsMirrorPod(t *testing.T) {
	mirror := fullPod()
	mirror.UID, mirror.DeletionTimestamp = "another", ptr.To(metav1.Now())
	mirror.Annotations = map[string]string{v1.MirrorPodAnnotationKey: "uid", "kubernetes.io/config.hash": "uid"}
	info := newInfo(t, "")
	info.Record(podinfo.FromAPIServer, []v1.Pod{mirror})
	pod := info.Enrich(runtimesPod("shop", "web"))
	require.EqualValues(t, 1000, *pod.Spec.Priority)
	require.EqualValues(t, "uid", pod.UID)
	require.NotContains(t, pod.Annotations, v1.MirrorPodAnnotationKey)
	require.Nil(t, pod.DeletionTimestamp, "the static pod stays when its mirror is deleted")
}

// The kubelet's pods are read over HTTPS with credentials. An answer with another status than 200 is an error.
func TestKubeletPods(t *testing.T) {
	answer, status := v1.PodList{Items: []v1.Pod{fullPod()}}, http.StatusOK
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(answer) // if this fails, the client's request fails
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

// The watch learns the pod web, which exists when it starts, and the pod later, which is created afterwards. web is
// deleted in the API server. Its priority must still be known, because the pod may still run.
func TestWatchAPIServer(t *testing.T) {
	pod := fullPod()
	pod.Spec.NodeName = "node"
	client := fake.NewClientset(&pod)
	info, synced := newInfo(t, ""), make(chan struct{})
	ctx, cancel := context.WithCancel(t.Context())
	var watching sync.WaitGroup
	watching.Go(func() { assert.NoError(t, podinfo.WatchAPIServer(ctx, client, "node", info, func() { close(synced) })) })
	defer watching.Wait()
	defer cancel()
	<-synced
	require.EqualValues(t, 1000, *info.Enrich(runtimesPod("shop", "web")).Spec.Priority)

	// A pod is created, and web is deleted.
	later := fullPod()
	later.Name, later.UID, later.Spec.Priority = "later", "later", ptr.To(int32(7))
	_, err := client.CoreV1().Pods("shop").Create(t.Context(), &later, metav1.CreateOptions{})
	require.NoError(t, err)
	require.NoError(t, client.CoreV1().Pods("shop").Delete(t.Context(), "web", metav1.DeleteOptions{}))
	require.Eventually(t, func() bool {
		pod := runtimesPod("shop", "later")
		pod.UID = "later"
		return *info.Enrich(pod).Spec.Priority == 7
	}, 10*time.Second, 10*time.Millisecond)
	require.EqualValues(t, 1000, *info.Enrich(runtimesPod("shop", "web")).Spec.Priority)
}
