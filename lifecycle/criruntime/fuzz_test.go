package criruntime_test

import (
	"encoding/json"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/kubegrace/kubegrace/lifecycle/criruntime"
)

// FuzzPods makes two containers with random labels, annotations and states. Each container that may run must be in exactly
// one of the pods that Pods returns, and each pod can be marshalled.
func FuzzPods(f *testing.F) {
	web := podWithGrace("web", 30)
	for _, annotations := range []string{
		"{}",
		`{"io.kubernetes.pod.terminationGracePeriod":"-5","io.kubernetes.container.restartCount":"99999999999"}`,
		`{"io.kubernetes.container.preStopHandler":"{\"httpGet\":{\"port\":{}}}","io.kubernetes.container.ports":"[null]"}`,
	} {
		f.Add("web-uid", "web", "app", annotations, int32(1), int32(2), uint32(3))
	}
	cri := newFake()
	endpoint, stop, err := cri.serve()
	require.NoError(f, err)
	f.Cleanup(stop)
	runtime, err := criruntime.Dial(f.Context(), endpoint, criruntime.Options{HostIP: "192.0.2.1"})
	require.NoError(f, err)
	f.Cleanup(func() { require.NoError(f, runtime.Close()) })
	f.Fuzz(func(t *testing.T, uid, name, container, annotations string, first, second int32, attempt uint32) {
		decoded := map[string]string{}
		if json.Unmarshal([]byte(annotations), &decoded) != nil || decoded == nil {
			t.Skip()
		}
		cri.mu.Lock()
		clear(cri.sandboxes)
		clear(cri.containers)
		cri.mu.Unlock()
		k := kubeletOf(runtime)
		sandbox, ids := k.runPod(t, web)
		other := k.create(t, web, &web.Spec.Containers[0], sandbox, attempt)
		labels := map[string]string{"io.kubernetes.pod.uid": uid, "io.kubernetes.pod.name": name, "io.kubernetes.pod.namespace": "shop", "io.kubernetes.container.name": container}
		mayRun := 0 // how many containers may run, and so must be found
		for id, number := range map[string]int32{ids[0]: first, other: second} {
			state := runtimeapi.ContainerState(number & 3) // one of the four states
			isRunning := state == runtimeapi.ContainerState_CONTAINER_RUNNING || state == runtimeapi.ContainerState_CONTAINER_UNKNOWN
			// A container without the kubelet's labels is ignored if another one has them.
			hasLabels := id != other || uid != ""
			if isRunning && hasLabels {
				mayRun++
			}
			cri.change(id, func(c *runtimeapi.ContainerStatus) {
				c.State = state
				config := cri.containers[id].config
				config.Annotations = decoded
				if id == other {
					config.Labels = labels
				}
			})
		}
		if attempt%2 == 1 { // only the labels identify the pod
			cri.mu.Lock()
			clear(cri.sandboxes)
			cri.mu.Unlock()
		}
		pods, err := runtime.Pods(t.Context())
		if !utf8.ValidString(uid + name + container + annotations) {
			return // gRPC rejects it
		}
		require.NoError(t, err)
		found := map[string]int{} // pods by container ID
		for _, pod := range pods {
			for _, id := range runningIDs(t, runtime, pod) {
				require.Zero(t, found[id], "listed twice")
				found[id]++
			}
			data, err := pod.Marshal()
			require.NoError(t, err)
			require.NoError(t, new(v1.Pod).Unmarshal(data))
		}
		require.GreaterOrEqual(t, len(found), mayRun)
	})
}
