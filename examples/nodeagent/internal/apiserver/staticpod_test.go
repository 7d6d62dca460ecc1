package apiserver_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/examples/nodeagent/internal/apiserver"
)

func TestStaticPodsHaveWhatTheKubeletAdds(t *testing.T) {
	manifest := theManifest()
	seen := time.Date(2026, 9, 1, 12, 0, 0, 5, time.UTC)
	static, err := apiserver.StaticPods([]*v1.Pod{manifest}, "Node-1", seen)
	require.NoError(t, err)
	require.Equal(t, theManifest(), manifest, "the caller's pod is not changed")

	pod := static[0]
	require.Equal(t, "web-node-1", pod.Name)
	require.EqualValues(t, "static", pod.UID)
	require.Equal(t, "Node-1", pod.Spec.NodeName)
	require.Equal(t, []v1.Toleration{{Operator: v1.TolerationOpExists, Effect: v1.TaintEffectNoExecute}}, pod.Spec.Tolerations)
	require.Equal(t, "file", pod.Annotations["kubernetes.io/config.source"])
	require.Equal(t, "2026-09-01T12:00:00.000000005Z", pod.Annotations["kubernetes.io/config.seen"])
	require.Regexp(t, "^[0-9a-f]{32}$", pod.Annotations["kubernetes.io/config.hash"])
}

func TestHashChangesWithTheManifestOnly(t *testing.T) {
	hash := func(change func(*v1.Pod), node string, seen time.Time) string {
		manifest := theManifest()
		change(manifest)
		static, err := apiserver.StaticPods([]*v1.Pod{manifest}, node, seen)
		require.NoError(t, err)
		return static[0].Annotations["kubernetes.io/config.hash"]
	}
	same := func(*v1.Pod) {}
	now := time.Now()
	before := hash(same, nodeName, now)
	require.Equal(t, before, hash(same, nodeName, now.Add(time.Hour)), "read again")
	require.NotEqual(t, before, hash(func(p *v1.Pod) { p.Spec.Containers[0].Image = "j" }, nodeName, now))
	require.NotEqual(t, before, hash(func(p *v1.Pod) { p.Labels = map[string]string{"app": "web"} }, nodeName, now))
	require.NotEqual(t, before, hash(same, "node-2", now))
}

func TestAllNamesThatAreTooLongAreReported(t *testing.T) {
	first, second := theManifest(), theManifest()
	first.Name, second.Name = strings.Repeat("a", 250), strings.Repeat("b", 250)
	static, err := apiserver.StaticPods([]*v1.Pod{first, theManifest(), second}, nodeName, time.Now())
	require.ErrorContains(t, err, "pod default/aaa")
	require.ErrorContains(t, err, "pod default/bbb")
	require.ErrorContains(t, err, `metadata.name: Invalid value: "aaa`)
	require.Nil(t, static)
}
