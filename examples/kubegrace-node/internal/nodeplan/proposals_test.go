package nodeplan_test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"github.com/kubegrace/kubegrace/examples/kubegrace-node/internal/nodeplan"
	"github.com/kubegrace/kubegrace/examples/kubegrace-node/internal/podlist"
	"github.com/kubegrace/kubegrace/internal/staticpod"
	"github.com/kubegrace/kubegrace/shutdown/plan"
)

// summaryOf returns the summary for a single node.
func summaryOf(t *testing.T, agent nodeplan.Agent, config plan.Config, limit time.Duration, pods []*v1.Pod) nodeplan.Summary {
	t.Helper()
	settings, err := nodeplan.NewSettings(agent, config, nil, plan.Options{Limit: limit, Steps: plan.Steps{Publish: true, Readiness: true, Statuses: true}})
	require.NoError(t, err)
	return settings.Document([]*podlist.Node{{Name: "node", Pods: pods}}).Summary
}

// applied follows a proposal: it parses the lines that a reader would paste, and returns the new configuration
// and the new limit. What the proposal does not change stays as it is.
func applied(t *testing.T, p nodeplan.Proposal, config plan.Config, limit time.Duration) (plan.Config, time.Duration) {
	t.Helper()
	for _, change := range p.Changes {
		text := strings.Join(change.Lines, "\n")
		switch {
		case strings.HasPrefix(text, "shutdownGracePeriod"):
			config = plan.Config{}
			require.NoError(t, yaml.UnmarshalStrict([]byte(text), &config), text)
		case strings.Contains(text, "InhibitDelayMaxSec"):
			seconds, err := strconv.Atoi(regexp.MustCompile(`InhibitDelayMaxSec=(\d+)`).FindStringSubmatch(text)[1])
			require.NoError(t, err)
			limit = time.Duration(seconds) * time.Second
		}
	}
	return config, limit
}

// randomBuckets returns a random configuration with one to four buckets of less than 25 s. In half of all cases it also
// returns a limit of the host, of 1 s to 60 s, otherwise 0.
func randomBuckets(r *rand.Rand) (config plan.Config, limit time.Duration) {
	for i := range 1 + r.IntN(4) {
		config.ShutdownGracePeriodByPodPriority = append(config.ShutdownGracePeriodByPodPriority,
			plan.PodPriorityGracePeriod{Priority: int32(i * 1000), ShutdownGracePeriodSeconds: int64(r.IntN(25))})
	}
	if r.IntN(2) == 0 {
		limit = time.Duration(1+r.IntN(60)) * time.Second
	}
	return config, limit
}

// For 1500 random nodes, each proposal is followed and the node is planned again. The new plan must lose
// exactly what the proposal says, and less than the old plan. One of the proposals must leave no pod cut
// short: that is always possible, because all grace periods are below a minute and there are fewer than 100
// pods.
func TestProposalsDoWhatTheySay(t *testing.T) {
	for seed := range uint64(1500) {
		r := rand.New(rand.NewPCG(seed, 3))
		agent := nodeplan.Agent(nodeplan.Agents()[r.IntN(2)])
		config, limit := randomBuckets(r)
		var pods []*v1.Pod
		for i := range r.IntN(12) {
			pods = append(pods, newPod(fmt.Sprintf("pod-%d", i), int32(r.IntN(5000)-500), int64(r.IntN(60))))
		}
		if r.IntN(2) == 0 {
			config = plan.Config{}
			if r.IntN(2) == 0 {
				config = twoFields(int64(1+r.IntN(30)), 0)
			}
		}
		before := summaryOf(t, agent, config, limit, pods)
		message := fmt.Sprintf("seed %d: %s, %+v within %v, %+v", seed, agent, config, limit, before.Proposals)
		if before.CutShort == 0 {
			require.Empty(t, before.Proposals, message)
			continue
		}
		enough := false
		for _, proposal := range before.Proposals {
			nextConfig, nextLimit := applied(t, proposal, config, limit)
			after := summaryOf(t, agent, nextConfig, nextLimit, pods)
			require.Equal(t, []int64{int64(after.CutShort), after.LostSeconds}, []int64{int64(proposal.CutShort), proposal.LostSeconds}, message)
			require.LessOrEqual(t, after.CutShort, before.CutShort, message)
			require.LessOrEqual(t, after.LostSeconds, before.LostSeconds, message)
			require.NotEqual(t, []int64{int64(before.CutShort), before.LostSeconds}, []int64{int64(after.CutShort), after.LostSeconds}, message)
			enough = enough || after.CutShort == 0
		}
		require.True(t, enough, message)
	}
}

// several returns n pods of the Deployment web.
func several(n int, grace int64) (pods []*v1.Pod) {
	for range n {
		pods = append(pods, web(grace))
	}
	return pods
}

// A proposed configuration gives critical pods their whole grace period, and ignores outliers. The
// configuration before it has 30 s, of which 10 s are for critical pods and 20 s for the others. The wanted
// durations are therefore the sum of the two new buckets, and the critical bucket: 60 s + 30 s in the first
// case. Grace periods above 10 min never count, and of 100 pods or more the longest 1 % do not count either.
func TestProposedConfigurations(t *testing.T) {
	critical := func(grace int64) *v1.Pod { return newPod("cni", plan.SystemCriticalPriority, grace) }
	odd := newPod("x", 0, 3600)
	criticalHour := []nodeplan.Outlier{{Name: "default/pod/cni", PodCount: 1, AsksSeconds: 3600, Critical: true}}
	const lengthen, raise = "Lengthen the buckets", "Raise logind's limit to 30s"
	for name, test := range map[string]struct {
		pods     []*v1.Pod
		limit    time.Duration
		want     map[string][2]time.Duration // by the title of the proposal: the time of all pods, and the part for critical pods
		outliers []nodeplan.Outlier
	}{
		"critical pods at a limit":            {append(several(50, 60), critical(30)), time.Minute, map[string][2]time.Duration{lengthen: {90 * time.Second, 30 * time.Second}}, nil},
		"a limit too short for critical pods": {append(several(50, 60), critical(30)), 20 * time.Second, map[string][2]time.Duration{lengthen: {90 * time.Second, 30 * time.Second}, raise: {}}, nil},
		"all of a few":                        {append(several(98, 40), web(500)), 0, map[string][2]time.Duration{lengthen: {510 * time.Second, 10 * time.Second}}, nil},
		"99 in 100":                           {append(several(99, 40), web(500)), 0, map[string][2]time.Duration{lengthen: {50 * time.Second, 10 * time.Second}}, []nodeplan.Outlier{{Name: "default/deployment/web", PodCount: 1, AsksSeconds: 500}}},
		"two in 100 are not":                  {append(several(98, 40), several(2, 500)...), 0, map[string][2]time.Duration{lengthen: {510 * time.Second, 10 * time.Second}}, nil},
		"an hour":                             {append(several(2, 40), odd), 0, map[string][2]time.Duration{lengthen: {50 * time.Second, 10 * time.Second}}, []nodeplan.Outlier{{Name: "default/pod/x", PodCount: 1, AsksSeconds: 3600}}},
		"a critical hour":                     {append(several(2, 40), critical(3600)), 0, map[string][2]time.Duration{lengthen: {50 * time.Second, 10 * time.Second}}, criticalHour},
		"a critical hour beside 30 s":         {append(several(2, 40), critical(3600), critical(30)), 0, map[string][2]time.Duration{lengthen: {70 * time.Second, 30 * time.Second}}, criticalHour},
	} {
		t.Run(name, func(t *testing.T) {
			summary := summaryOf(t, nodeplan.Kubelet, twoFields(30, 10), test.limit, test.pods)
			got := map[string][2]time.Duration{}
			for _, proposal := range summary.Proposals {
				config, _ := applied(t, proposal, plan.Config{}, 0)
				got[proposal.Title] = [2]time.Duration{config.ShutdownGracePeriod.Duration, config.ShutdownGracePeriodCriticalPods.Duration}
			}
			require.Equal(t, test.want, got)
			require.Equal(t, test.outliers, summary.Outliers)
		})
	}
}

// The plan says where the priority of each pod comes from. For a static pod the two agents differ: kubegrace
// uses the priority class, and the kubelet does not. The kubelet does not use the priority of a mirror pod
// either.
func TestPrioritySources(t *testing.T) {
	const static, mirror, class = "kubernetes.io/config.source: file", "kubernetes.io/config.mirror: a", "priorityClassName: system-node-critical"
	for name, test := range map[string]struct{ annotations, spec, kubelet, kubegrace string }{
		"spec":            {"", "priority: 0", "spec", "spec"},
		"mirror pod":      {mirror, class + ", priority: 5", "guessed: the API server's, of the mirror pod", "spec"},
		"class":           {"", class, "priority class system-node-critical", "priority class system-node-critical"},
		"class of static": {static, class, "manifest without priority: 0", "priority class system-node-critical"},
		"given class":     {"", "priorityClassName: given", "priority class given", "priority class given"},
		"unknown class":   {"", "priorityClassName: x", "guessed: 0, because the priority class x is not known", "guessed: 0, because the priority class x is not known"},
		"nothing":         {"", "", "guessed: 0, because nothing says it", "guessed: 0, because nothing says it"},
	} {
		node := readPods(t, "kind: Pod\nmetadata: {annotations: {"+test.annotations+"}}\nspec: {"+test.spec+"}\n")
		for agent, want := range map[nodeplan.Agent]string{nodeplan.Kubelet: test.kubelet, nodeplan.Kubegrace: test.kubegrace} {
			settings, err := nodeplan.NewSettings(agent, twoFields(30, 0), nil, plan.Options{PriorityOf: func(class string) (int32, bool) { return 7, class == "given" }})
			require.NoError(t, err)
			for _, pod := range podsByName(settings.Plan(node)) {
				require.Equal(t, want, pod.PrioritySource, "%s, %s", name, agent)
			}
		}
	}
}

// web returns a pod of the Deployment web, with a grace period in seconds.
func web(grace int64) *v1.Pod {
	pod := newPod("web-7f6d-abcde", 0, grace)
	pod.Labels = map[string]string{"pod-template-hash": "7f6d"}
	pod.OwnerReferences = []metav1.OwnerReference{{Kind: "ReplicaSet", Name: "web-7f6d", Controller: ptr.To(true)}}
	return pod
}

// On a known machine the proposal about logind's limit names the file to change. The kubelet needs 30 s and
// the file allows 20 s, so the proposal is to set 30 s in that file. If no file is in the way, the kubelet
// raises the limit itself: the pod that asks for 40 s only needs longer buckets, and the limit of 30 s needs
// no change.
func TestTheLimitOfAMachine(t *testing.T) {
	settings, err := nodeplan.NewSettings(nodeplan.Kubelet, twoFields(30, 10), nil, plan.Options{})
	require.NoError(t, err)
	proposals := func(limit time.Duration, by string, grace int64) []nodeplan.Proposal {
		return settings.OnMachine(limit, by).Document([]*podlist.Node{{Name: "node", Pods: several(1, grace)}}).Summary.Proposals
	}
	const file = "/etc/systemd/logind.conf.d/zz-site.conf"
	require.Equal(t, file, settings.OnMachine(20*time.Second, file).Header().LimitedBy)
	require.Equal(t, nodeplan.Change{
		Where: file, Why: "it overrides the agent's 99-kubelet.conf", Lines: []string{"[Login]", "InhibitDelayMaxSec=30"},
	}, proposals(20*time.Second, file, 10)[0].Changes[0])

	raisable := proposals(30*time.Second, "", 40) // "": no file is in the way
	require.Len(t, raisable, 1)
	require.Equal(t, "Lengthen the buckets", raisable[0].Title)
	require.Zero(t, raisable[0].CutShort)
	require.Len(t, raisable[0].Changes, 1)
}

// Losses are added up by workload and by node, the worst first. Every pod here gets at most 20 s: a web pod
// that asks for 60 s loses 40 s, so web loses 80 s, job loses 30 s, and the static pod etcd loses 1 s.
func TestLossesByGroup(t *testing.T) {
	settings, err := nodeplan.NewSettings(nodeplan.Kubelet, twoFields(30, 10), nil, plan.Options{}) // 30 s - 10 s for critical pods
	require.NoError(t, err)
	static := newPod("etcd-n2", 0, 21)
	static.OwnerReferences = []metav1.OwnerReference{{Kind: "Node", Name: "n2"}}
	summary := settings.Document([]*podlist.Node{
		{Name: "n1", Pods: []*v1.Pod{web(60), web(60), web(5)}},
		{Name: "n2", Pods: []*v1.Pod{newPod("job", 0, 50), static, web(10)}},
	}).Summary
	require.Equal(t, []nodeplan.Loss{
		{By: "workload", Name: "default/deployment/web", PodCount: 4, CutShort: 2, LostSeconds: 80},
		{By: "workload", Name: "default/pod/job", PodCount: 1, CutShort: 1, LostSeconds: 30},
		{By: "workload", Name: "default/static pod/etcd", PodCount: 1, CutShort: 1, LostSeconds: 1},
		{By: "node", Name: "n1", PodCount: 3, CutShort: 2, LostSeconds: 80},
		{By: "node", Name: "n2", PodCount: 3, CutShort: 2, LostSeconds: 31},
	}, summary.Losses)
}

// The plan knows how long a hook takes if it sleeps, by itself or in its command. The pod gets 10 s, so a hook
// that sleeps for longer is marked as cut short. nil: the length is not known, and the hook is never marked.
func TestHowLongAHookSleeps(t *testing.T) {
	for hook, want := range map[string]*int64{
		`exec: {command: [/bin/sleep, 15s]}`:                     ptr.To(int64(15)),
		`exec: {command: [sh, -c, nginx -s quit; sleep 20; ls]}`: ptr.To(int64(20)),
		`exec: {command: [sh, -c, sleep $N]}`:                    nil,
		`exec: {command: [sh, -c, asleep 5]}`:                    nil,
		`exec: {command: [sleep]}`:                               nil,
		`exec: {}`:                                               nil,
		`httpGet: {path: /stop}`:                                 nil,
		`tcpSocket: {}`:                                          nil,
		`sleep: {seconds: 9}`:                                    ptr.To(int64(9)),
	} {
		node := readPods(t, "kind: Pod\nspec: {containers: [{name: c, lifecycle: {preStop: {"+hook+"}}}]}\n")
		_, planned := kubeletPlan(t, twoFields(10, 0), 0, node.Pods)
		kind, _, _ := strings.Cut(hook, ":")
		require.Equal(t, []nodeplan.Hook{{Container: "c", Type: kind, Seconds: want, CutShort: want != nil && *want > 10}}, podsByName(planned)[""].Hooks, hook)
	}
}

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
		config, limit := randomBuckets(r)
		var pods []*v1.Pod
		for i := range r.IntN(12) {
			pod := newPod(fmt.Sprintf("pod-%d", i), int32(r.IntN(5000)-500), int64(r.IntN(40)))
			pod.Spec.PriorityClassName = []string{"", "system-node-critical"}[r.IntN(2)]
			if r.IntN(4) == 0 { // admission sets the priority of all pods but static ones
				pod.Spec.Priority, pod.Annotations = nil, map[string]string{staticpod.SourceAnnotation: "file"}
			}
			pods = append(pods, pod)
		}
		header, node := kubeletPlan(t, config, limit, pods)
		var sum int64
		for _, bucket := range config.ShutdownGracePeriodByPodPriority {
			sum += bucket.ShutdownGracePeriodSeconds
		}
		message := fmt.Sprintf("seed %d: %+v within %v, %+v", seed, config, limit, pods)
		require.InDelta(t, sum, header.NeededSeconds, 0, message)
		require.Equal(t, limit != 0 && limit < time.Duration(sum)*time.Second, header.NoLock, message)
		want, end := killPods(config.ShutdownGracePeriodByPodPriority, pods)
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
