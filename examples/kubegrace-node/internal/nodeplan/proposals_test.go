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

	"github.com/kubegrace/kubegrace/examples/kubegrace-node/internal/kubeletconfig"
	"github.com/kubegrace/kubegrace/examples/kubegrace-node/internal/nodeplan"
	"github.com/kubegrace/kubegrace/examples/kubegrace-node/internal/podlist"
	"github.com/kubegrace/kubegrace/internal/staticpod"
	"github.com/kubegrace/kubegrace/shutdown/plan"
)

// noLimit says that the host has no limit for its delay.
const noLimit = 0

// summaryOf returns the summary of a plan for one node with these pods. limit is how long the host waits, or noLimit.
func summaryOf(t *testing.T, agent nodeplan.Agent, config plan.Config, limit time.Duration, pods []*v1.Pod) nodeplan.Summary {
	t.Helper()
	settings, err := nodeplan.NewSettings(agent, kubeletconfig.Config{Shutdown: config}, plan.Options{Limit: limit, Steps: plan.Steps{Publish: true, Readiness: true, Statuses: true}})
	require.NoError(t, err)
	return settings.Document([]*podlist.Node{{Name: "node", Pods: pods}}).Summary
}

// follow does what a proposal says: it parses the lines that a reader would paste, and returns the new configuration and the
// new limit. What the proposal does not change stays as it is.
func follow(t *testing.T, p nodeplan.Proposal, config plan.Config, limit time.Duration) (plan.Config, time.Duration) {
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

// For 1500 random nodes, each proposal is followed and the node is planned again. The new plan must lose exactly what
// the proposal says, and less than the old plan. After one of the proposals no pod may be cut short. This is always
// possible, because only grace periods above 10 min, or the longest 1 % of 100 pods or more, are left out of proposals;
// here all are below a minute, of fewer than 12 pods.
func TestProposalsDoWhatTheySay(t *testing.T) {
	for seed := range uint64(1500) {
		r := rand.New(rand.NewPCG(seed, 3))
		agent := nodeplan.Agent(nodeplan.Agents()[r.IntN(2)])
		config, limit := randomBuckets(r)
		var pods []*v1.Pod
		for i := range r.IntN(12) {
			pods = append(pods, newPod(fmt.Sprintf("pod-%d", i), int32(r.IntN(5000)-500), int64(r.IntN(60))))
		}
		if r.IntN(2) == 0 { // instead of random buckets: no configuration, or the two durations
			config = plan.Config{}
			if r.IntN(2) == 0 {
				config = kubeletConfig(int64(1+r.IntN(30)), 0)
			}
		}
		before := summaryOf(t, agent, config, limit, pods)
		message := fmt.Sprintf("seed %d: %s, %+v within %v, %+v", seed, agent, config, limit, before.Proposals)
		if before.CutShort == 0 {
			require.Empty(t, before.Proposals, message)
			continue
		}
		isOneEnough := false
		for _, proposal := range before.Proposals {
			nextConfig, nextLimit := follow(t, proposal, config, limit)
			after := summaryOf(t, agent, nextConfig, nextLimit, pods)
			require.Equal(t, after.CutShort, proposal.CutShort, message)
			require.Equal(t, after.LostSeconds, proposal.LostSeconds, message)
			require.LessOrEqual(t, after.CutShort, before.CutShort, message)
			require.LessOrEqual(t, after.LostSeconds, before.LostSeconds, message)
			isSame := after.CutShort == before.CutShort && after.LostSeconds == before.LostSeconds
			require.False(t, isSame, message)
			isOneEnough = isOneEnough || after.CutShort == 0
		}
		require.True(t, isOneEnough, message)
	}
}

// webPods returns n pods of the Deployment web, with a grace period in seconds.
func webPods(n int, grace int64) (pods []*v1.Pod) {
	for range n {
		pods = append(pods, webPod(grace))
	}
	return pods
}

// The present buckets are too short: they have 30 s, the last 10 s of them for critical pods. The longer buckets that are
// proposed have the longest grace period of the critical pods and that of the other pods, without outliers, and never less
// than now. Outliers are pods with a grace period above 10 min, and the longest 1 % of 100 or more pods that are not
// critical. If logind's limit does not even allow the present 30 s, to raise it is another proposal, which changes no bucket.
func TestProposedConfigurations(t *testing.T) {
	critical := func(grace int64) *v1.Pod { return newPod("cni", plan.SystemCriticalPriority, grace) }
	criticalHour := []nodeplan.Outlier{{Name: "default/pod/cni", PodCount: 1, AsksSeconds: 3600, Critical: true}}
	const lengthen, raise = "Lengthen the buckets", "Raise logind's limit to 30s"
	// durations are the proposed time of all pods, and the part of it for critical pods, in seconds; zero: no change.
	type durations struct{ total, critical float64 }
	for name, test := range map[string]struct {
		pods      []*v1.Pod
		limit     time.Duration        // 0: no limit
		proposals map[string]durations // by title
		outliers  []nodeplan.Outlier
	}{
		"the limit allows the present buckets": {
			pods: append(webPods(50, 60), critical(30)), limit: time.Minute, proposals: map[string]durations{lengthen: {90, 30}},
		},
		"the limit is shorter than the present buckets": {
			pods: append(webPods(50, 60), critical(30)), limit: 20 * time.Second, proposals: map[string]durations{lengthen: {90, 30}, raise: {}},
		},
		"one of 99 pods asks for 500 s": {
			pods: append(webPods(98, 40), webPod(500)), proposals: map[string]durations{lengthen: {510, 10}},
		},
		"one of 100 pods asks for 500 s": {
			pods: append(webPods(99, 40), webPod(500)), proposals: map[string]durations{lengthen: {50, 10}},
			outliers: []nodeplan.Outlier{{Name: "default/deployment/web", PodCount: 1, AsksSeconds: 500}},
		},
		"two of 100 pods ask for 500 s": {
			pods: append(webPods(98, 40), webPods(2, 500)...), proposals: map[string]durations{lengthen: {510, 10}},
		},
		"one of three pods asks for an hour": {
			pods: append(webPods(2, 40), newPod("x", 0, 3600)), proposals: map[string]durations{lengthen: {50, 10}},
			outliers: []nodeplan.Outlier{{Name: "default/pod/x", PodCount: 1, AsksSeconds: 3600}},
		},
		"a critical pod asks for an hour": {
			pods: append(webPods(2, 40), critical(3600)), proposals: map[string]durations{lengthen: {50, 10}}, outliers: criticalHour,
		},
		"critical pods ask for an hour and for 30 s": {
			pods: append(webPods(2, 40), critical(3600), critical(30)), proposals: map[string]durations{lengthen: {70, 30}}, outliers: criticalHour,
		},
	} {
		t.Run(name, func(t *testing.T) {
			summary := summaryOf(t, nodeplan.Kubelet, kubeletConfig(30, 10), test.limit, test.pods)
			got := map[string]durations{}
			for _, proposal := range summary.Proposals {
				config, _ := follow(t, proposal, plan.Config{}, noLimit)
				got[proposal.Title] = durations{config.ShutdownGracePeriod.Seconds(), config.ShutdownGracePeriodCriticalPods.Seconds()}
			}
			require.Equal(t, test.proposals, got)
			require.Equal(t, test.outliers, summary.Outliers)
		})
	}
}

// The plan says where the priority of each pod comes from. The two agents differ in static pods: kubegrace uses the priority
// of the mirror pod, or else the priority class. The kubelet uses only the priority in the manifest, or 0. The plan does not
// know the manifest of a mirror pod, so for the kubelet it guesses the mirror pod's priority.
func TestPrioritySources(t *testing.T) {
	const (
		static = "kubernetes.io/config.source: file"
		mirror = "kubernetes.io/config.mirror: a"
		class  = "priorityClassName: system-node-critical"
	)
	for name, test := range map[string]struct {
		annotations, spec string // of the pod, as YAML
		bothSay           string // the wanted PrioritySource for both agents; "": they differ
		kubeletSays       string // the kubelet's, if they differ
		kubegraceSays     string // kubegrace's, if they differ
	}{
		"a priority":                     {spec: "priority: 0", bothSay: "spec"},
		"a mirror pod":                   {annotations: mirror, spec: class + ", priority: 5", kubeletSays: "guessed: the API server's, of the mirror pod", kubegraceSays: "spec"},
		"a system class":                 {spec: class, bothSay: "priority class system-node-critical"},
		"a static pod with a class":      {annotations: static, spec: class, kubeletSays: "manifest without priority: 0", kubegraceSays: "priority class system-node-critical"},
		"a class that PriorityOf knows":  {spec: "priorityClassName: given", bothSay: "priority class given"},
		"an unknown class":               {spec: "priorityClassName: x", bothSay: "guessed: 0, because the priority class x is not known"},
		"neither a priority nor a class": {bothSay: "guessed: 0, because nothing says it"},
	} {
		node := readPods(t, "kind: Pod\nmetadata: {annotations: {"+test.annotations+"}}\nspec: {"+test.spec+"}\n")
		for agent, want := range map[nodeplan.Agent]string{
			nodeplan.Kubelet: cmp.Or(test.kubeletSays, test.bothSay), nodeplan.Kubegrace: cmp.Or(test.kubegraceSays, test.bothSay),
		} {
			settings, err := nodeplan.NewSettings(agent, kubeletconfig.Config{Shutdown: kubeletConfig(30, 0)}, plan.Options{PriorityOf: func(class string) (int32, bool) { return 7, class == "given" }})
			require.NoError(t, err)
			for _, pod := range podsByName(settings.Plan(node)) {
				require.Equal(t, want, pod.PrioritySource, "%s, %s", name, agent)
			}
		}
	}
}

// webPod returns a pod of the Deployment web, with a grace period in seconds.
func webPod(grace int64) *v1.Pod {
	pod := newPod("web-7f6d-abcde", 0, grace)
	pod.Labels = map[string]string{"pod-template-hash": "7f6d"}
	pod.OwnerReferences = []metav1.OwnerReference{{Kind: "ReplicaSet", Name: "web-7f6d", Controller: ptr.To(true)}}
	return pod
}

// proposalsOn returns the proposals for a kubelet that needs 30 s, on a known machine: how long its logind waits, the
// file that sets this limit ("": the kubelet may set it), and the grace period of its only pod, in seconds.
func proposalsOn(t *testing.T, limit time.Duration, limitFile string, grace int64) []nodeplan.Proposal {
	t.Helper()
	settings, err := nodeplan.NewSettings(nodeplan.Kubelet, kubeletconfig.Config{Shutdown: kubeletConfig(30, 10)}, plan.Options{})
	require.NoError(t, err)
	machine := settings.OnMachine(limit, limitFile)
	require.Equal(t, limitFile, machine.Header().LimitedBy)
	return machine.Document([]*podlist.Node{{Name: "node", Pods: webPods(1, grace)}}).Summary.Proposals
}

// The kubelet needs 30 s, and a file sets logind's limit to 20 s. The proposal is to set 30 s in this file.
func TestAProposalNamesTheFileOfTheLimit(t *testing.T) {
	const file = "/etc/systemd/logind.conf.d/zz-site.conf"
	const grace = 10 // seconds, for which no bucket is too short
	proposals := proposalsOn(t, 20*time.Second, file, grace)
	require.Equal(t, []nodeplan.Change{
		{Where: file, Why: "it overrides the agent's 99-kubelet.conf", Lines: []string{"[Login]", "InhibitDelayMaxSec=30"}},
	}, proposals[0].Changes)
}

// A pod asks for 40 s and gets 20 s, so the buckets must be longer. No file sets logind's limit, so the kubelet raises
// the limit of 30 s itself: the proposal does not mention it.
func TestNoProposalForALimitThatTheKubeletRaises(t *testing.T) {
	const noFile, grace = "", 40
	proposals := proposalsOn(t, 30*time.Second, noFile, grace)
	require.Len(t, proposals, 1)
	require.Equal(t, "Lengthen the buckets", proposals[0].Title)
	require.Len(t, proposals[0].Changes, 1, "only the buckets")
}

// Losses are added up by workload and by node, the worst first. Every pod gets at most 20 s (30 s less 10 s for critical pods). Each of
// the two web pods that ask for 60 s loses 40 s, so the Deployment web loses 80 s. The pod job asks for 50 s and loses 30 s. The static
// pod etcd asks for 21 s and loses 1 s. The pods that ask for 5 s and 10 s lose nothing.
func TestLossesByGroup(t *testing.T) {
	settings, err := nodeplan.NewSettings(nodeplan.Kubelet, kubeletconfig.Config{Shutdown: kubeletConfig(30, 10)}, plan.Options{})
	require.NoError(t, err)
	static := newPod("etcd-n2", 0, 21)
	static.OwnerReferences = []metav1.OwnerReference{{Kind: "Node", Name: "n2"}}
	summary := settings.Document([]*podlist.Node{
		{Name: "n1", Pods: []*v1.Pod{webPod(60), webPod(60), webPod(5)}},
		{Name: "n2", Pods: []*v1.Pod{newPod("job", 0, 50), static, webPod(10)}},
	}).Summary
	require.Equal(t, []nodeplan.Loss{
		{By: "workload", Name: "default/deployment/web", PodCount: 4, CutShort: 2, LostSeconds: 80},
		{By: "workload", Name: "default/pod/job", PodCount: 1, CutShort: 1, LostSeconds: 30},
		{By: "workload", Name: "default/static pod/etcd", PodCount: 1, CutShort: 1, LostSeconds: 1},
		{By: "node", Name: "n1", PodCount: 3, CutShort: 2, LostSeconds: 80},
		{By: "node", Name: "n2", PodCount: 3, CutShort: 2, LostSeconds: 31},
	}, summary.Losses)
}

// The plan knows how long a preStop hook sleeps, be it a sleep hook or a command with sleep in it. The pod gets 10 s,
// so a hook that sleeps for longer is marked as cut short. If the length is not known (nil), the hook is not marked.
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
		_, planned := kubeletPlan(t, kubeletConfig(10, 0), noLimit, node.Pods)
		kind, _, _ := strings.Cut(hook, ":")
		isCutShort := want != nil && *want > 10
		require.Equal(t, []nodeplan.Hook{{Container: "c", Type: kind, Seconds: want, CutShort: isCutShort}}, podsByName(planned)[""].Hooks, hook)
	}
}

// kubeletPlan returns the plan of a kubelet for one node: the header of the document, and the node.
func kubeletPlan(t *testing.T, config plan.Config, limit time.Duration, pods []*v1.Pod) (nodeplan.Header, nodeplan.Node) {
	t.Helper()
	settings, err := nodeplan.NewSettings(nodeplan.Kubelet, kubeletconfig.Config{Shutdown: config}, plan.Options{Limit: limit})
	require.NoError(t, err)
	return settings.Header(), settings.Plan(&podlist.Node{Name: "node", Pods: pods})
}

// newPod returns a pod with a priority and a grace period in seconds.
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

// kubeletConfig returns a configuration that sets the two durations, given in seconds: the time of all pods, and
// the part of it for critical pods.
func kubeletConfig(total, critical int64) (c plan.Config) {
	c.ShutdownGracePeriod = metav1.Duration{Duration: time.Duration(total) * time.Second}
	c.ShutdownGracePeriodCriticalPods = metav1.Duration{Duration: time.Duration(critical) * time.Second}
	return c
}

// kill is a kill of a pod: its grace period, and when it begins, in seconds since the announcement.
type kill struct{ graceSeconds, begin int64 }

// killPods is a copy of the kubelet's loop over its groups, which are the buckets (nodeshutdown_manager.go). Here the
// pods use all the time of their group. It returns the kill of each pod, by name, and the second at which the loop
// ends.
func killPods(config []plan.PodPriorityGracePeriod, pods []*v1.Pod) (kills map[string]kill, end int64) {
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
	kills, now := map[string]kill{}, int64(0)
	for i, group := range groups {
		if len(members[i]) == 0 {
			continue
		}
		for _, pod := range members[i] {
			kills[pod.Name] = kill{min(group.ShutdownGracePeriodSeconds, *pod.Spec.TerminationGracePeriodSeconds), now}
		}
		now += group.ShutdownGracePeriodSeconds
	}
	return kills, now
}

// For 2000 random nodes, the plan of a kubelet says what the kubelet's own loop does to the same pods. If the host's
// limit is shorter than the sum of the buckets, a kubelet takes no lock: then all pods must get 0 s at second 0.
func TestThePlanIsWhatTheKubeletsLoopDoes(t *testing.T) {
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
				want[name] = kill{}
			}
		}
		got := map[string]kill{}
		for name, pod := range podsByName(node) {
			got[name] = kill{pod.GrantedSeconds, int64(pod.LatestStartSeconds)}
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

// A kubelet takes a static pod with a priority class but no priority (class-only) as priority 0, and kills it first: a
// warning says so. Of a static pod that only its mirror pod shows, the plan knows the API server's priority, but the kubelet
// uses the manifest's: another warning says so. There is no warning for a static pod with a priority, nor for a pod that
// the API server has yet to admit (for-the-api-server): admission gives it the priority of its class.
func TestStaticPodsOfAKubelet(t *testing.T) {
	node := readPods(t, `items:
- {metadata: {name: class-only, annotations: {kubernetes.io/config.source: file}}, spec: {priorityClassName: system-node-critical}}
- {metadata: {name: with-priority, annotations: {kubernetes.io/config.source: file}}, spec: {priorityClassName: system-node-critical, priority: 2000001000}}
- {metadata: {name: mirror, annotations: {kubernetes.io/config.mirror: a}}, spec: {priorityClassName: system-node-critical, priority: 2000001000}}
- {metadata: {name: for-the-api-server}, spec: {priorityClassName: system-node-critical}}
`)
	_, planned := kubeletPlan(t, kubeletConfig(30, 10), noLimit, node.Pods)
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
