package podlist_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"github.com/kubegrace/kubegrace/shutdown/plan"
	"github.com/kubegrace/kubegrace/validation"
)

// randomPod returns a pod with a random choice of the fields that decide on its shutdown.
func randomPod(r *rand.Rand, i int) *v1.Pod {
	maybe := func() bool { return r.IntN(2) == 0 }
	pod := &v1.Pod{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}, ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: fmt.Sprintf("pod-%d", i)}}
	pod.Spec.NodeName, pod.Status.Phase = fmt.Sprintf("node-%d", r.IntN(3)), v1.PodRunning
	pod.Spec.TerminationGracePeriodSeconds = ptr.To(int64(r.IntN(100) - 5))
	if maybe() {
		pod.Spec.Priority = ptr.To(int32(r.IntN(10_000) - 100))
	}
	if maybe() {
		pod.Spec.PriorityClassName = []string{"system-node-critical", "high"}[r.IntN(2)]
	}
	if maybe() {
		pod.Annotations = map[string]string{[]string{v1.MirrorPodAnnotationKey, "kubernetes.io/config.source", "other"}[r.IntN(3)]: "api"}
	}
	hook := func() *v1.Lifecycle {
		switch r.IntN(6) {
		case 0:
			return &v1.Lifecycle{PreStop: &v1.LifecycleHandler{Sleep: &v1.SleepAction{Seconds: int64(r.IntN(60))}}}
		case 1:
			return &v1.Lifecycle{PreStop: &v1.LifecycleHandler{Exec: &v1.ExecAction{Command: []string{"sh", "-c", "sleep 9; \"stop\""}}}}
		case 2:
			return &v1.Lifecycle{PreStop: &v1.LifecycleHandler{HTTPGet: &v1.HTTPGetAction{Path: "/stop"}}}
		case 3:
			return &v1.Lifecycle{PreStop: &v1.LifecycleHandler{TCPSocket: &v1.TCPSocketAction{}}}
		case 4:
			return &v1.Lifecycle{PostStart: &v1.LifecycleHandler{Exec: &v1.ExecAction{Command: []string{"start"}}}}
		}
		return nil
	}
	for k := range 1 + r.IntN(3) {
		pod.Spec.Containers = append(pod.Spec.Containers, v1.Container{Name: fmt.Sprintf("c%d", k), Image: "app:1 # no comment\n", Lifecycle: hook()})
	}
	for k := range r.IntN(3) {
		c := v1.Container{Name: fmt.Sprintf("i%d", k)}
		if maybe() {
			c.RestartPolicy, c.Lifecycle = ptr.To(v1.ContainerRestartPolicyAlways), hook()
		}
		pod.Spec.InitContainers = append(pod.Spec.InitContainers, c)
	}
	return pod
}

// Reading keeps every field that plans and warnings need: 500 random pods are written as JSON and as YAML and
// read again, and each must have the same plan and the same warnings as the whole pod.
func TestPodsHaveAllFieldsThatPlansAndWarningsNeed(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	list := struct {
		APIVersion string    `json:"apiVersion"`
		Items      []*v1.Pod `json:"items"`
		Kind       string    `json:"kind"`
	}{APIVersion: "v1", Kind: "List"}
	for i := range 500 {
		list.Items = append(list.Items, randomPod(r, i))
	}
	asJSON, err := json.MarshalIndent(list, "", "    ")
	require.NoError(t, err)
	asYAML, err := yaml.Marshal(list)
	require.NoError(t, err)
	for name, text := range map[string][]byte{"JSON": asJSON, "YAML": asYAML} {
		t.Run(name, func(t *testing.T) {
			byName := map[string]*v1.Pod{}
			for _, node := range read(t, string(text)).Nodes() {
				for _, pod := range node.Pods {
					byName[pod.Name] = pod
				}
			}
			require.Len(t, byName, len(list.Items))
			for _, pod := range list.Items {
				require.Equal(t, planOf(pod), planOf(byName[pod.Name]), pod.Name)
				require.Equal(t, validation.WarnPodTermination(&pod.Spec, nil), validation.WarnPodTermination(&byName[pod.Name].Spec, nil), pod.Name)
			}
		})
	}
}

// planOf returns the plan for a single pod, without the pod itself.
func planOf(pod *v1.Pod) plan.PodPlan {
	p := plan.New(plan.Schedule{{Priority: 0, Seconds: 20}}, []*v1.Pod{pod}, plan.Options{}).Buckets[0].Pods[0]
	p.Pod = nil
	return p
}

// A pod whose fields are missing or null gets the API server's defaults.
func TestAPodWithNothingSet(t *testing.T) {
	for _, text := range []string{`{"kind": "Pod"}`, `{"kind": "Pod", "metadata": {"name": null, "annotations": null, "ownerReferences": null},
		"spec": {"nodeName": null, "priority": null, "terminationGracePeriodSeconds": null, "containers": null, "initContainers": null}, "status": null}`} {
		pods := read(t, text).Nodes()[0].Pods
		require.Equal(t, []*v1.Pod{{ObjectMeta: metav1.ObjectMeta{Namespace: "default"}, Spec: v1.PodSpec{TerminationGracePeriodSeconds: ptr.To(int64(30))}}}, pods)
	}
}
