package podlist_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/kubegrace/kubegrace/examples/kubegrace-node/internal/podlist"
	"github.com/kubegrace/kubegrace/internal/staticpod"
)

// read reads a text into a new cluster.
func read(t *testing.T, text string) *podlist.Cluster {
	t.Helper()
	cluster := podlist.New()
	require.NoError(t, cluster.Read("input", strings.NewReader(text)))
	return cluster
}

// podNames returns the names of the pods of each node.
func podNames(c *podlist.Cluster) map[string][]string {
	all := map[string][]string{}
	for _, node := range c.Nodes() {
		for _, pod := range node.Pods {
			all[node.Name] = append(all[node.Name], pod.Namespace+"/"+pod.Name)
		}
	}
	return all
}

// podA is a pod of the node n1. podB is a pod of the node n2, without a namespace and with its fields in another order.
const (
	podA = `{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "namespace": "shop"}, "spec": {"nodeName": "n1"}, "status": {"phase": "Running"}}`
	podB = `{"status": {"phase": "Running"}, "spec": {"nodeName": "n2"}, "metadata": {"name": "b"}, "kind": "Pod"}`
)

// podA and podB are read from every form in which kubectl prints pods, or in which a user may write them.
func TestReadTakesAllFormsOfKubectl(t *testing.T) {
	podsByNode := map[string][]string{"n1": {"shop/a"}, "n2": {"default/b"}}
	bare := strings.NewReplacer(`"apiVersion": "v1", "kind": "Pod", `, "", `, "kind": "Pod"`, "")
	yamlA := "apiVersion: v1\nkind: Pod\nmetadata:\n  name: a\n  namespace: shop\nspec:\n  nodeName: n1\nstatus:\n  phase: Running\n"
	yamlB := "kind: Pod\nmetadata:\n  name: b\nspec:\n  nodeName: n2\n"
	item := func(text, indent string) string {
		return indent + "- " + strings.TrimSuffix(strings.ReplaceAll(text, "\n", "\n"+indent+"  "), indent+"  ")
	}
	for name, text := range map[string]string{
		"JSON list":                   `{"apiVersion": "v1", "items": [` + podA + "," + podB + `], "kind": "List"}`,
		"JSON list of the API server": `{"kind": "PodList", "items": [` + bare.Replace(podA) + "," + bare.Replace(podB) + `]}`,
		"JSON lists of each kind":     `{"kind": "NodeList", "items": [{"metadata": {"name": "n"}}]} {"kind": "PriorityClassList", "items": [{"value": 5}]}` + podA + podB,
		"an object a line":            podA + "\n" + podB + "\n",
		"lists one after the other":   `{"items": [` + podA + `]}` + "\n" + `{"kind": "List", "items": [` + podB + `]}`,
		"a list in a list":            `{"items": [{"kind": "List", "items": [` + podA + `]}, ` + podB + `]}`,
		"YAML list":                   "apiVersion: v1\nitems:\n" + item(yamlA, "") + item(yamlB, "") + "kind: List\nmetadata:\n  resourceVersion: \"\"\n",
		"YAML documents":              "# pods\n---\n" + yamlA + "---\n" + yamlB + "...\n",
	} {
		t.Run(name, func(t *testing.T) { require.Equal(t, podsByNode, podNames(read(t, text))) })
	}
}

// The input has seven objects in two lists. Only one of the four pods is kept, the one named manifest. The two pods
// that have ended and the pod without a node are counted, the kinds of the other objects are recorded, and the value of
// the priority class is kept.
func TestObjectsThatAreLeftOutAreCounted(t *testing.T) {
	cluster := read(t, `{"kind": "List", "items": [
		{"kind": "Pod", "metadata": {"name": "done"}, "spec": {"nodeName": "n"}, "status": {"phase": "Succeeded"}},
		{"kind": "Pod", "metadata": {"name": "failed"}, "spec": {"nodeName": "n"}, "status": {"phase": "Failed"}},
		{"kind": "Pod", "metadata": {"name": "pending"}, "status": {"phase": "Pending"}},
		{"kind": "Deployment", "spec": {"replicas": 3}},
		{"kind": "ConfigMap", "data": {"a": "b"}},
		{"kind": "PriorityClass", "metadata": {"name": "high"}, "value": 1000},
		{"kind": "Pod", "metadata": {"name": "manifest"}, "spec": {"priorityClassName": "high"}}
	]} {"kind": "List", "items": null}`)
	require.Equal(t, map[string][]string{podlist.ThisNode: {"default/manifest"}}, podNames(cluster))
	require.Equal(t, 1, cluster.Pods)
	require.Equal(t, 2, cluster.Ended)
	require.Equal(t, 1, cluster.Unscheduled)
	require.Equal(t, 7+2, cluster.Objects, "a list counts as an object too")
	require.Equal(t, map[string]bool{"Deployment": true, "ConfigMap": true}, cluster.Others)
	value, ok := cluster.PriorityOf("high")
	require.True(t, ok)
	require.Equal(t, int32(1000), value)
}

// An error says where the input is wrong: the source, the document if it is not the first, the item and the
// field.
func TestErrorsNameThePlace(t *testing.T) {
	const secondDocumentIsWrong = "kind: Pod\n---\nitems:\n- kind: Pod\n- kind: Pod\n  spec: {priority: high}\nkind: List\n"
	for name, test := range map[string]struct{ text, place, mistake string }{
		"a table":                               {text: "NAMESPACE NAME READY\nshop web 1/1\n", place: "input: ", mistake: "wanted are objects as JSON or YAML, as kubectl prints them with -o json"},
		"invalid JSON":                          {text: "{\"items\": [\n{\"kind\": \"Pod\",}]}", place: "input: ", mistake: "jsontext: invalid character"},
		"invalid JSON after a pod":              {text: podA + "}", place: "input: ", mistake: "jsontext: invalid character"},
		"a grace period that is a word":         {text: `{"items": [` + podA + `, {"kind": "Pod", "spec": {"terminationGracePeriodSeconds": "soon"}}]}`, place: "input: ", mistake: `string into Go int64 within "/items/1/spec/terminationGracePeriodSeconds"`},
		"a value of a class that is a word":     {text: `{"kind": "PriorityClass", "value": "high"}`, place: "input: ", mistake: `string into Go int32 within "/value"`},
		"a mistake in the second YAML document": {text: secondDocumentIsWrong, place: "input (document 2): ", mistake: `string into Go int32 within "/items/1/spec/priority"`},
		"invalid YAML":                          {text: "items:\n- kind: Pod\n- kind: [\nkind: List\n", place: "input: ", mistake: "not valid YAML"},
	} {
		t.Run(name, func(t *testing.T) {
			err := podlist.New().Read("input", strings.NewReader(test.text))
			require.ErrorContains(t, err, test.place)
			require.ErrorContains(t, err, test.mistake)
		})
	}
}

// Input without an object is no error and adds nothing. An empty list counts as one object, so that a caller can
// distinguish it from empty input. A list of null is an empty list.
func TestEmptyInput(t *testing.T) {
	for _, text := range []string{"", "\n\n", "# nothing\n", "---\n---\n"} {
		cluster := read(t, text)
		require.Zero(t, cluster.Objects, "%q", text)
	}
	require.Equal(t, 1, read(t, `{"kind": "List", "items": []}`).Objects)
	require.Equal(t, 1, read(t, "kind: List\nitems: []\n").Objects)
	require.Equal(t, 1, read(t, `{"kind": "PodList", "items": [null]}`).Objects)
}

// A pod whose fields are missing or null gets the API server's defaults.
func TestAPodWithNothingSet(t *testing.T) {
	for _, text := range []string{`{"kind": "Pod"}`, `{"kind": "Pod", "metadata": {"name": null, "annotations": null, "ownerReferences": null},
		"spec": {"nodeName": null, "priority": null, "terminationGracePeriodSeconds": null, "containers": null, "initContainers": null}, "status": null}`} {
		pods := read(t, text).Nodes()[0].Pods
		require.Equal(t, &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default"}, Spec: v1.PodSpec{TerminationGracePeriodSeconds: ptr.To(int64(30))}}, pods[0])
	}
}

// Two things are read of containers, because they matter in a shutdown: their hooks, and which of them are sidecars.
func TestContainersAreRead(t *testing.T) {
	pod := read(t, `{"kind": "Pod", "spec": {"containers": [{"name": "app", "env": [], "lifecycle": {"preStop": {"sleep": {"seconds": 9}}}}], "initContainers": [{"name": "proxy", "restartPolicy": "Always"}]}}`).Nodes()[0].Pods[0]
	require.Equal(t, []v1.Container{{Name: "app", Lifecycle: &v1.Lifecycle{PreStop: &v1.LifecycleHandler{Sleep: &v1.SleepAction{Seconds: 9}}}}}, pod.Spec.Containers)
	require.Equal(t, []v1.Container{{Name: "proxy", RestartPolicy: ptr.To(v1.ContainerRestartPolicyAlways)}}, pod.Spec.InitContainers)
}

// The manifests of a folder are read in the order of their names, and other files are ignored. The pods are marked as
// static pods.
func TestAFolderHasStaticPods(t *testing.T) {
	folder := t.TempDir()
	for name, text := range map[string]string{"2.yaml": "kind: Pod\nmetadata: {name: second}\n", "1.json": `{"kind": "Pod", "metadata": {"name": "first"}}`, "3.manifest": "kind: Pod\nmetadata: {name: third}\n", "notes.txt": "no manifest"} {
		require.NoError(t, os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600))
	}
	cluster := podlist.New()
	require.NoError(t, cluster.ReadFolder(folder))
	require.Equal(t, map[string][]string{podlist.ThisNode: {"default/first", "default/second", "default/third"}}, podNames(cluster))
	require.True(t, staticpod.Is(cluster.Nodes()[0].Pods[0]))
}

// An error names the file of the folder that is wrong: a manifest that is invalid YAML, or a device, which might never
// end.
func TestAnErrorNamesTheFileOfAFolder(t *testing.T) {
	invalid, device := t.TempDir(), t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(invalid, "3.yml"), []byte("kind: ["), 0o600))
	require.ErrorContains(t, podlist.New().ReadFolder(invalid), "3.yml")
	require.NoError(t, os.Symlink(os.DevNull, filepath.Join(device, "4.yaml")))
	require.ErrorContains(t, podlist.New().ReadFolder(device), "4.yaml: is not a regular file")
}

// Reading never panics or hangs, whatever the input is.
func FuzzRead(f *testing.F) {
	f.Add("items:\n- kind: Pod\n  spec: {priority: 3}\nkind: List\n")
	f.Add(`{"items": [` + podA + `]}`)
	f.Fuzz(func(_ *testing.T, text string) {
		err := podlist.New().Read("input", strings.NewReader(text))
		_ = err // the input may be invalid
	})
}

// mirrorOf returns the mirror pod of the static pod etcd on a node, as the API server has it.
func mirrorOf(node string) string {
	return `{"kind": "Pod", "metadata": {"name": "etcd-` + node + `", "namespace": "kube-system", "annotations": {"kubernetes.io/config.mirror": "1", "kubernetes.io/config.source": "file"}}, "spec": {"nodeName": "` + node + `", "priority": 2000001000, "priorityClassName": "system-node-critical"}, "status": {"phase": "Running"}}`
}

// etcdOfKubelet is the static pod etcd as the kubelet of node n1 lists it. manifest is its manifest on the node.
const (
	etcdOfKubelet = `{"kind": "Pod", "metadata": {"name": "etcd-n1", "namespace": "kube-system", "annotations": {"kubernetes.io/config.source": "file"}}, "spec": {"nodeName": "n1", "priorityClassName": "system-node-critical"}, "status": {"phase": "Running"}}`
	manifest      = "kind: Pod\nmetadata: {name: etcd, namespace: kube-system}\nspec: {priorityClassName: system-node-critical}\n"
)

// A pod that is read several times counts once. So does a static pod that is read in several forms: as a manifest, from
// the kubelet's list, and as a mirror pod. The mirror pod, which alone has spec.priority, is kept only if there is no
// other form. A manifest without a matching pod belongs to the only node, or to ThisNode if there are several nodes.
func TestPodsCountOnce(t *testing.T) {
	manifests := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(manifests, "etcd.yaml"), []byte(manifest), 0o600))
	for name, test := range map[string]struct {
		texts         []string
		withManifests bool                // the folder with the manifest of etcd is read last
		want          map[string][]string // the pods of each node
		repeated      int
		isMirrorKept  bool // etcd is kept as its mirror pod
	}{
		"the same file twice": {
			texts: []string{podA + podB, podA + podB},
			want:  map[string][]string{"n1": {"shop/a"}, "n2": {"default/b"}}, repeated: 2,
		},
		"two pods with the same name on two nodes": {
			texts: []string{podA + strings.Replace(podA, "n1", "n2", 1)},
			want:  map[string][]string{"n1": {"shop/a"}, "n2": {"shop/a"}},
		},
		"two pods without a name": {
			texts: []string{`{"kind": "Pod"} {"kind": "Pod"}`},
			want:  map[string][]string{podlist.ThisNode: {"default/", "default/"}},
		},
		"the mirror pod, then the kubelet's": {
			texts: []string{mirrorOf("n1") + etcdOfKubelet},
			want:  map[string][]string{"n1": {"kube-system/etcd-n1"}}, repeated: 1,
		},
		"the kubelet's, then the mirror pod": {
			texts: []string{etcdOfKubelet + mirrorOf("n1")},
			want:  map[string][]string{"n1": {"kube-system/etcd-n1"}}, repeated: 1,
		},
		"only the mirror pod": {
			texts: []string{mirrorOf("n1")},
			want:  map[string][]string{"n1": {"kube-system/etcd-n1"}}, isMirrorKept: true,
		},
		"the mirror pod and the manifest": {
			texts: []string{mirrorOf("n1")}, withManifests: true,
			want: map[string][]string{"n1": {"kube-system/etcd-n1"}}, repeated: 1,
		},
		"all three forms": {
			texts: []string{mirrorOf("n1"), etcdOfKubelet}, withManifests: true,
			want: map[string][]string{"n1": {"kube-system/etcd-n1"}}, repeated: 2,
		},
		"another pod and the manifest": {
			texts: []string{podA}, withManifests: true,
			want: map[string][]string{"n1": {"shop/a", "kube-system/etcd"}},
		},
		"mirror pods on two nodes, and the manifest": {
			texts: []string{mirrorOf("n1") + mirrorOf("n2")}, withManifests: true,
			want: map[string][]string{"n1": {"kube-system/etcd-n1"}, "n2": {"kube-system/etcd-n2"}}, repeated: 2,
		},
		"a mirror pod on one of two nodes, and the manifest": {
			texts: []string{mirrorOf("n1") + podB}, withManifests: true,
			want: map[string][]string{"n1": {"kube-system/etcd-n1"}, "n2": {"default/b"}}, repeated: 1,
		},
		"other pods on two nodes, and the manifest": {
			texts: []string{podA + podB}, withManifests: true,
			want: map[string][]string{"n1": {"shop/a"}, "n2": {"default/b"}, podlist.ThisNode: {"kube-system/etcd"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			cluster := podlist.New()
			for _, text := range test.texts {
				require.NoError(t, cluster.Read("input", strings.NewReader(text)))
			}
			if test.withManifests {
				require.NoError(t, cluster.ReadFolder(manifests))
			}
			cluster.Merge()
			require.Equal(t, test.want, podNames(cluster))
			require.Equal(t, test.repeated, cluster.Repeated)
			count := 0
			for _, node := range cluster.Nodes() {
				count += len(node.Pods)
				for _, pod := range node.Pods {
					if strings.HasPrefix(pod.Name, "etcd-") { // static: only its mirror has a priority, which the API server has set
						require.Equal(t, test.isMirrorKept, pod.Spec.Priority != nil)
						require.Equal(t, test.isMirrorKept, staticpod.IsMirror(pod))
					}
				}
			}
			require.Equal(t, count, cluster.Pods)
		})
	}
}
