package podlist_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kubegrace/kubegrace/examples/kubegrace-node/internal/podlist"
	"github.com/kubegrace/kubegrace/internal/staticpod"
)

// mirrorOf returns the mirror pod of the static pod etcd on a node, as the API server has it.
func mirrorOf(node string) string {
	return `{"kind": "Pod", "metadata": {"name": "etcd-` + node + `", "namespace": "kube-system", "annotations": {"kubernetes.io/config.mirror": "1", "kubernetes.io/config.source": "file"}}, "spec": {"nodeName": "` + node + `", "priority": 2000001000, "priorityClassName": "system-node-critical"}, "status": {"phase": "Running"}}`
}

// ofKubelet is the static pod etcd as the kubelet of node n1 lists it. manifest is its manifest on the node.
const (
	ofKubelet = `{"kind": "Pod", "metadata": {"name": "etcd-n1", "namespace": "kube-system", "annotations": {"kubernetes.io/config.source": "file"}}, "spec": {"nodeName": "n1", "priorityClassName": "system-node-critical"}, "status": {"phase": "Running"}}`
	manifest  = "kind: Pod\nmetadata: {name: etcd, namespace: kube-system}\nspec: {priorityClassName: system-node-critical}\n"
)

// A pod that is read several times counts once, and so does a static pod that is read as a manifest, from the
// kubelet's list or as a mirror pod. Only the mirror pod has spec.priority: hasPriority says whether it is the
// form that is kept, which it must be only if it was read alone. A manifest that matches no pod goes to the
// only node, or else to ThisNode.
func TestPodsCountOnce(t *testing.T) {
	manifests := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(manifests, "etcd.yaml"), []byte(manifest), 0o600))
	for name, test := range map[string]struct {
		texts         []string
		withManifests bool
		want          map[string][]string
		repeated      int
		hasPriority   bool // etcd is kept as its mirror pod
	}{
		"the same file twice":     {[]string{podA + podB, podA + podB}, false, map[string][]string{"n1": {"shop/a"}, "n2": {"default/b"}}, 2, false},
		"the same name elsewhere": {[]string{podA + strings.Replace(podA, "n1", "n2", 1)}, false, map[string][]string{"n1": {"shop/a"}, "n2": {"shop/a"}}, 0, false},
		"pods without a name":     {[]string{`{"kind": "Pod"} {"kind": "Pod"}`}, false, map[string][]string{podlist.ThisNode: {"default/", "default/"}}, 0, false},
		"mirror, kubelet":         {[]string{mirrorOf("n1") + ofKubelet}, false, map[string][]string{"n1": {"kube-system/etcd-n1"}}, 1, false},
		"kubelet, mirror":         {[]string{ofKubelet + mirrorOf("n1")}, false, map[string][]string{"n1": {"kube-system/etcd-n1"}}, 1, false},
		"mirror alone":            {[]string{mirrorOf("n1")}, false, map[string][]string{"n1": {"kube-system/etcd-n1"}}, 0, true},
		"mirror, manifest":        {[]string{mirrorOf("n1")}, true, map[string][]string{"n1": {"kube-system/etcd-n1"}}, 1, false},
		"all three":               {[]string{mirrorOf("n1"), ofKubelet}, true, map[string][]string{"n1": {"kube-system/etcd-n1"}}, 2, false},
		"another pod, manifest":   {[]string{podA}, true, map[string][]string{"n1": {"shop/a", "kube-system/etcd"}}, 0, false},
		"two mirrors, manifest":   {[]string{mirrorOf("n1") + mirrorOf("n2")}, true, map[string][]string{"n1": {"kube-system/etcd-n1"}, "n2": {"kube-system/etcd-n2"}}, 2, false},
		"one of two, manifest":    {[]string{mirrorOf("n1") + podB}, true, map[string][]string{"n1": {"kube-system/etcd-n1"}, "n2": {"default/b"}}, 1, false},
		"none of two, manifest":   {[]string{podA + podB}, true, map[string][]string{"n1": {"shop/a"}, "n2": {"default/b"}, podlist.ThisNode: {"kube-system/etcd"}}, 0, false},
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
					if strings.HasPrefix(pod.Name, "etcd-") {
						require.Equal(t, test.hasPriority, pod.Spec.Priority != nil)
						require.Equal(t, test.hasPriority, staticpod.IsMirror(pod))
					}
				}
			}
			require.Equal(t, count, cluster.Pods)
		})
	}
}
