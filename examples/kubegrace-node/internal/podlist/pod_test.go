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

	"github.com/kubegrace/kubegrace/examples/kubegrace-node/internal/podlist"
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

// The plan and the warnings for a pod that was read are those for the pod that was written.
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
			cluster := read(t, string(text))
			require.Equal(t, len(list.Items), cluster.Pods)
			byName := map[string]*podlist.Pod{}
			for _, node := range cluster.Nodes() {
				for i := range node.Pods {
					byName[node.Name+"/"+node.Pods[i].Name] = &node.Pods[i]
				}
			}
			for _, pod := range list.Items {
				read := byName[pod.Spec.NodeName+"/"+pod.Name]
				require.NotNil(t, read, pod.Name)
				require.Equal(t, planOf(pod), planOf(read.Object()), pod.Name)
				require.Equal(t, warningsWithoutPostStart(pod), validation.WarnPodTermination(&read.Object().Spec, nil), pod.Name)
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

// warningsWithoutPostStart returns the warnings about a pod except those about postStart hooks,
// which a shutdown does not run.
func warningsWithoutPostStart(pod *v1.Pod) []string {
	pod = pod.DeepCopy()
	for _, containers := range [][]v1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range containers {
			if containers[i].Lifecycle != nil {
				containers[i].Lifecycle.PostStart = nil
			}
		}
	}
	return validation.WarnPodTermination(&pod.Spec, nil)
}

// onlyPod reads a text with one pod.
func onlyPod(t *testing.T, text string) podlist.Pod {
	t.Helper()
	cluster := read(t, text)
	require.Equal(t, 1, cluster.Pods)
	return cluster.Nodes()[0].Pods[0]
}

func TestAPodWithNothingSet(t *testing.T) {
	require.Equal(t, podlist.Pod{Namespace: "default", Grace: 30}, onlyPod(t, `{"kind": "Pod"}`))
	require.Equal(t, podlist.Pod{Namespace: "default", Grace: 30}, onlyPod(t, `{"kind": "Pod", "metadata": {"name": null, "annotations": null, "ownerReferences": null},
		"spec": {"nodeName": null, "priority": null, "terminationGracePeriodSeconds": null, "containers": null, "initContainers": null}, "status": null}`))
	require.Equal(t, int64(0), onlyPod(t, `{"kind": "Pod", "spec": {"terminationGracePeriodSeconds": 0}}`).Grace)
}

func TestOwner(t *testing.T) {
	for owner, want := range map[string][]string{
		`[{"kind": "ReplicaSet", "name": "web-7f6d", "controller": true}]`:                              {"Deployment", "web"},
		`[{"kind": "ReplicaSet", "name": "alone", "controller": true}]`:                                 {"ReplicaSet", "alone"},
		`[{"kind": "Other", "name": "o"}, {"controller": true, "kind": "StatefulSet", "name": "data"}]`: {"StatefulSet", "data"},
		`[]`: {"", ""},
	} {
		pod := onlyPod(t, `{"kind": "Pod", "metadata": {"labels": {"pod-template-hash": "7f6d"}, "ownerReferences": `+owner+`}}`)
		require.Equal(t, want, []string{pod.OwnerKind, pod.OwnerName}, owner)
	}
}

func TestHowLongAHookSleeps(t *testing.T) {
	for command, want := range map[string]int64{
		`["sleep", "15"]`:                             15,
		`["/bin/sleep", "15s"]`:                       15,
		`["sh", "-c", "sleep 15"]`:                    15,
		`["sh", "-c", "nginx -s quit; sleep 20; ls"]`: 20,
		`["sh", "-c", "sleep $N"]`:                    -1,
		`["sh", "-c", "asleep 5"]`:                    -1,
		`["sleep"]`:                                   -1,
		`["stop"]`:                                    -1,
		`[]`:                                          -1,
		`null`:                                        -1,
	} {
		pod := onlyPod(t, `{"kind": "Pod", "spec": {"containers": [{"name": "c", "lifecycle": {"preStop": {"exec": {"command": `+command+`}}}}]}}`)
		require.Equal(t, []podlist.Hook{{Container: "c", Type: "exec", Seconds: want}}, podlist.HooksOf(pod.Object()), command)
	}
}
