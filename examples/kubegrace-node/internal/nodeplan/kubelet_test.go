package nodeplan_test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/kubegrace/kubegrace/examples/kubegrace-node/internal/nodeplan"
	"github.com/kubegrace/kubegrace/examples/kubegrace-node/internal/podlist"
	"github.com/kubegrace/kubegrace/internal/staticpod"
	"github.com/kubegrace/kubegrace/shutdown/plan"
)

// kubeletPlan returns the plan of a kubelet for one node: the header of the document, and the node.
func kubeletPlan(t *testing.T, config plan.Config, limit time.Duration, pods []*v1.Pod) (nodeplan.Header, nodeplan.Node) {
	t.Helper()
	settings, err := nodeplan.NewSettings(nodeplan.Kubelet, config, nil, plan.Options{Limit: limit})
	require.NoError(t, err)
	return settings.Header(), settings.Plan(&podlist.Node{Name: "node", Pods: pods})
}

// newPod returns a pod with a priority and a grace period.
func newPod(name string, priority int32, grace int64) *v1.Pod {
	return &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
		Spec:       v1.PodSpec{Priority: &priority, TerminationGracePeriodSeconds: &grace},
	}
}

// podsByName returns the pods of a planned node.
func podsByName(n nodeplan.Node) map[string]nodeplan.Pod {
	pods := map[string]nodeplan.Pod{}
	for _, bucket := range n.Buckets {
		for _, pod := range bucket.Pods {
			pods[pod.Name] = pod
		}
	}
	return pods
}

// twoFields returns a configuration that sets the two durations, given in seconds: the time of all pods, and
// the part of it for critical pods.
func twoFields(total, critical int64) (c plan.Config) {
	c.ShutdownGracePeriod = metav1.Duration{Duration: time.Duration(total) * time.Second}
	c.ShutdownGracePeriodCriticalPods = metav1.Duration{Duration: time.Duration(critical) * time.Second}
	return c
}

// killed is what killPods does to a pod: the grace period that overrides the pod's own, and the second at
// which the pod is told to stop.
type killed struct{ override, at int64 }

// killPods is a copy of the kubelet's loop over its groups, the buckets (nodeshutdown_manager.go). Its pods
// use all the time of their group. It returns what the loop does to each pod, by name, and the second at which
// the loop ends.
func killPods(config []plan.PodPriorityGracePeriod, pods []*v1.Pod) (map[string]killed, int64) {
	groups := slices.SortedFunc(slices.Values(config), func(a, b plan.PodPriorityGracePeriod) int { return cmp.Compare(a.Priority, b.Priority) })
	members := make([][]*v1.Pod, len(groups))
	for _, pod := range pods {
		priority := ptr.Deref(pod.Spec.Priority, 0)
		// Find the group index according to the priority.
		index := 0
		for i := range groups {
			if groups[i].Priority <= priority {
				index = i
			}
		}
		members[index] = append(members[index], pod)
	}
	all, now := map[string]killed{}, int64(0)
	for i, group := range groups {
		if len(members[i]) == 0 {
			continue
		}
		for _, pod := range members[i] {
			all[pod.Name] = killed{min(group.ShutdownGracePeriodSeconds, *pod.Spec.TerminationGracePeriodSeconds), now}
		}
		now += group.ShutdownGracePeriodSeconds
	}
	return all, now
}

// The plan of a kubelet for 2000 random nodes is what the kubelet's own loop does to the same pods. If the
// host's limit is shorter than the sum of the buckets, a kubelet takes no lock: then all pods must get 0 s at
// second 0.
func TestKubeletsLoop(t *testing.T) {
	for seed := range uint64(2000) {
		r := rand.New(rand.NewPCG(seed, 4))
		n := scriptedNode{}
		n.addBuckets(r)
		var pods []*v1.Pod
		for i := range r.IntN(12) {
			pod := newPod(fmt.Sprintf("pod-%d", i), int32(r.IntN(5000)-500), int64(r.IntN(40)))
			pod.Spec.PriorityClassName = []string{"", "system-node-critical"}[r.IntN(2)]
			if r.IntN(4) == 0 { // admission sets the priority of all pods but static ones
				pod.Spec.Priority, pod.Annotations = nil, map[string]string{staticpod.SourceAnnotation: "file"}
			}
			pods = append(pods, pod)
		}
		header, node := kubeletPlan(t, n.config, n.limit, pods)
		var sum int64
		for _, bucket := range n.config.ShutdownGracePeriodByPodPriority {
			sum += bucket.ShutdownGracePeriodSeconds
		}
		message := fmt.Sprintf("seed %d: %+v within %v, %+v", seed, n.config, n.limit, pods)
		require.InDelta(t, sum, header.NeededSeconds, 0, message)
		require.Equal(t, n.limit != 0 && n.limit < time.Duration(sum)*time.Second, header.NoLock, message)
		want, end := killPods(n.config.ShutdownGracePeriodByPodPriority, pods)
		if header.NoLock {
			end = 0
			for name := range want {
				want[name] = killed{}
			}
		}
		got := map[string]killed{}
		for name, pod := range podsByName(node) {
			got[name] = killed{pod.GrantedSeconds, int64(pod.LatestStartSeconds)}
		}
		require.Equal(t, want, got, message)
		require.InDelta(t, end, node.ReleaseSeconds, 0, message)
	}
}

// readPods returns the first node of a YAML text, with its pods.
func readPods(t *testing.T, text string) *podlist.Node {
	t.Helper()
	cluster := podlist.New()
	require.NoError(t, cluster.Read("pods", strings.NewReader(text)))
	return cluster.Nodes()[0]
}

// A kubelet treats a static pod that has only a priority class as priority 0, so it is killed first, and a
// warning says so. The mirror pod "mirror" has the API server's priority, which the kubelet does not use:
// another warning says that the priority is a guess.
func TestStaticPodsOfAKubelet(t *testing.T) {
	node := readPods(t, `items:
- {metadata: {name: class-only, annotations: {kubernetes.io/config.source: file}}, spec: {priorityClassName: system-node-critical}}
- {metadata: {name: with-priority, annotations: {kubernetes.io/config.source: file}}, spec: {priorityClassName: system-node-critical, priority: 2000001000}}
- {metadata: {name: mirror, annotations: {kubernetes.io/config.mirror: a}}, spec: {priorityClassName: system-node-critical, priority: 2000001000}}
- {metadata: {name: for-the-api-server}, spec: {priorityClassName: system-node-critical}}
`)
	_, planned := kubeletPlan(t, twoFields(30, 10), 0, node.Pods)
	pods := podsByName(planned)
	require.Zero(t, pods["class-only"].Priority)
	require.Zero(t, pods["class-only"].LatestStartSeconds, "it is killed with the first bucket")
	for _, name := range []string{"with-priority", "mirror", "for-the-api-server"} {
		require.Equal(t, int32(2_000_001_000), pods[name].Priority, name)
	}
	require.Len(t, planned.Warnings, 2)
	require.Contains(t, planned.Warnings[0], "no priority: 1, among them default/class-only")
	require.Contains(t, planned.Warnings[1], "their mirror pods only: 1, among them default/mirror")
}
