package nodeplan_test

import (
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/kubegrace/kubegrace/examples/kubegrace-node/internal/nodeplan"
	"github.com/kubegrace/kubegrace/examples/kubegrace-node/internal/podlist"
	"github.com/kubegrace/kubegrace/shutdown/plan"
)

// kubeletPlan returns the header of a kubelet's plan for one node, and the node.
func kubeletPlan(t *testing.T, config plan.Config, limit time.Duration, pods []podlist.Pod) (nodeplan.Header, nodeplan.Node) {
	t.Helper()
	settings, err := nodeplan.NewSettings(nodeplan.Kubelet, config, nil, plan.Options{Limit: limit})
	require.NoError(t, err)
	return settings.Header(), settings.Plan(&podlist.Node{Name: "node", Pods: pods})
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

func twoFields(total, critical int64) (c plan.Config) {
	c.ShutdownGracePeriod = metav1.Duration{Duration: time.Duration(total) * time.Second}
	c.ShutdownGracePeriodCriticalPods = metav1.Duration{Duration: time.Duration(critical) * time.Second}
	return c
}

// decode decodes a file of vectors of the library's own tests.
func decode(t *testing.T, file string, into any) {
	t.Helper()
	data, err := os.ReadFile("../../../../shutdown/" + file)
	require.NoError(t, err)
	require.NoError(t, yaml.Unmarshal(data, into))
}

// The nine cases of the kubelet's TestManager: the seven of the vectors, and the two in which its
// manager does not start because logind keeps a limit that is too low.
func TestConformanceManager(t *testing.T) {
	type managerCase struct {
		Desc                          string
		Pods                          any
		Total, Critical, Delay, After int64
		Overrode, noLock              bool
		Kills                         map[string]int64
	}
	var vectors struct {
		Manager struct{ Cases []managerCase } `json:"nodeshutdown_manager"`
	}
	decode(t, "testdata/manager.yaml", &vectors)
	cases := append(vectors.Manager.Cases,
		managerCase{Desc: "override unsuccessful", Total: 30, Critical: 10, Delay: 5, After: 5, noLock: true, Kills: map[string]int64{"normal-nil": 0, "critical-nil": 0}},
		managerCase{Desc: "override unsuccessful, zero time", Total: 5, Critical: 5, noLock: true, Kills: map[string]int64{"normal-nil": 0, "critical-nil": 0}})
	require.Len(t, cases, 9)
	for _, c := range cases {
		t.Run(c.Desc, func(t *testing.T) {
			var pods []podlist.Pod
			for _, name := range slices.Sorted(maps.Keys(c.Kills)) {
				pod := podlist.Pod{Name: name, Grace: 30, HasPriority: true} // 30 s is the API server's default, of static pods too
				if strings.HasPrefix(name, "critical") {
					pod.Priority = plan.SystemCriticalPriority
				}
				switch {
				case strings.HasSuffix(name, "-long"):
					pod.Grace = 1000
				case name == "normal" || name == "critical":
					pod.Grace = 2
				}
				pods = append(pods, pod)
			}
			limit := time.Duration(c.After) * time.Second // logind's, after the kubelet's try to raise it
			header, node := kubeletPlan(t, twoFields(c.Total, c.Critical), cmp.Or(limit, -1), pods)
			require.Equal(t, nodeplan.Kubelet, header.Agent)
			require.Equal(t, c.noLock, header.NoLock)
			require.InDelta(t, c.Total, header.NeededSeconds, 0)
			granted := map[string]int64{}
			for name, pod := range podsByName(node) {
				granted[name] = pod.GrantedSeconds
			}
			require.Equal(t, c.Kills, granted)
			if c.noLock {
				require.Zero(t, node.ReleaseSeconds, "the host does not wait")
				require.Equal(t, len(pods), node.CutShort)
			}
		})
	}
}

// The cases of the kubelet's TestMigrateConfig and TestGroupByPriority.
func TestConformanceBuckets(t *testing.T) {
	var vectors struct {
		Migrate struct {
			Cases []struct {
				Name            string
				Total, Critical int64
				Want            [][2]int64
			}
		} `json:"migrate_config"`
		Group struct {
			Cases []struct {
				Name   string
				Groups [][2]int64
				Pods   map[string]int32
				Want   [][]string
			}
		} `json:"group_by_priority"`
	}
	decode(t, "plan/testdata/schedule.yaml", &vectors)
	require.Len(t, vectors.Migrate.Cases, 4)
	for _, c := range vectors.Migrate.Cases {
		t.Run(c.Name, func(t *testing.T) {
			if c.Critical > c.Total { // a kubelet refuses to start with it
				_, err := nodeplan.NewSettings(nodeplan.Kubelet, twoFields(c.Total, c.Critical), nil, plan.Options{})
				require.Error(t, err)
				return
			}
			header, node := kubeletPlan(t, twoFields(c.Total, c.Critical), 0, nil)
			require.Equal(t, c.Want == nil, header.Off)
			for i, want := range c.Want {
				require.Equal(t, want, [2]int64{int64(node.Buckets[i].Priority), node.Buckets[i].Seconds})
			}
		})
	}
	require.Len(t, vectors.Group.Cases, 2)
	for _, c := range vectors.Group.Cases {
		t.Run(c.Name, func(t *testing.T) {
			var config plan.Config
			for _, group := range c.Groups {
				config.ShutdownGracePeriodByPodPriority = append(config.ShutdownGracePeriodByPodPriority, plan.PodPriorityGracePeriod{Priority: int32(group[0]), ShutdownGracePeriodSeconds: group[1]})
			}
			var pods []podlist.Pod
			for _, name := range slices.Sorted(maps.Keys(c.Pods)) {
				pods = append(pods, podlist.Pod{Name: name, Priority: c.Pods[name], HasPriority: true, Grace: 30})
			}
			_, node := kubeletPlan(t, config, 0, pods)
			for i, want := range c.Want {
				var got []string
				for _, pod := range node.Buckets[i].Pods {
					got = append(got, pod.Name)
				}
				require.ElementsMatch(t, want, got)
			}
		})
	}
}

// killed is what killPods does to a pod: the override, and the second at which it is told to stop.
type killed struct{ override, at int64 }

// killPods is the kubelet's loop over its groups (nodeshutdown_manager.go), with pods that take all
// the time of their group: it returns what it does to each pod, and when it returns.
func killPods(config []plan.PodPriorityGracePeriod, pods []podlist.Pod) (map[string]killed, int64) {
	groups := slices.SortedFunc(slices.Values(config), func(a, b plan.PodPriorityGracePeriod) int { return cmp.Compare(a.Priority, b.Priority) })
	members := make([][]podlist.Pod, len(groups))
	for _, pod := range pods {
		priority := int32(0)
		if pod.HasPriority {
			priority = pod.Priority
		}
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
			all[pod.Name] = killed{min(group.ShutdownGracePeriodSeconds, pod.Grace), now}
		}
		now += group.ShutdownGracePeriodSeconds
	}
	return all, now
}

func TestKubeletsLoop(t *testing.T) {
	for seed := range uint64(2000) {
		r := rand.New(rand.NewPCG(seed, 4))
		n := scriptedNode{}
		n.addBuckets(r)
		var pods []podlist.Pod
		for i := range r.IntN(12) {
			pods = append(pods, podlist.Pod{
				Namespace: "default", Name: fmt.Sprintf("pod-%d", i), Grace: int64(r.IntN(40)),
				Priority: int32(r.IntN(5000) - 500), HasPriority: r.IntN(4) > 0, Static: r.IntN(2) == 0, Class: []string{"", "system-node-critical"}[r.IntN(2)],
			})
			if last := &pods[i]; !last.HasPriority {
				last.Static = true // admission sets the priority of all others
			}
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

func TestStaticPodsOfAKubelet(t *testing.T) {
	config := twoFields(30, 10)
	const class = "system-node-critical"
	_, node := kubeletPlan(t, config, 0, []podlist.Pod{
		{Name: "class-only", Static: true, Class: class, Grace: 5},
		{Name: "with-priority", Static: true, Class: class, Priority: 2_000_001_000, HasPriority: true, Grace: 5},
		{Name: "mirror", Static: true, Mirror: true, Class: class, Priority: 2_000_001_000, HasPriority: true, Grace: 5},
		{Name: "manifest-for-the-api-server", Class: class, Grace: 5},
	})
	pods := podsByName(node)
	require.Zero(t, pods["class-only"].Priority)
	require.Zero(t, pods["class-only"].LatestStartSeconds, "it is killed with the first")
	for _, name := range []string{"with-priority", "mirror", "manifest-for-the-api-server"} {
		require.Equal(t, int32(2_000_001_000), pods[name].Priority, name)
	}
	require.Len(t, node.Warnings, 2)
	require.Contains(t, node.Warnings[0], "no priority: 1, among them /class-only")
	require.Contains(t, node.Warnings[1], "their mirror pods only: 1, among them /mirror")
}
