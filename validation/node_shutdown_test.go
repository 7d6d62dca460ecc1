package validation_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/kubegrace/kubegrace/shutdown/plan"
	"github.com/kubegrace/kubegrace/validation"
)

// bucket is an entry of Config.ShutdownGracePeriodByPodPriority.
type bucket struct {
	priority int32
	seconds  int64
}

// byPriority returns a configuration with these buckets.
func byPriority(buckets ...bucket) (cfg plan.Config) {
	for _, b := range buckets {
		cfg.ShutdownGracePeriodByPodPriority = append(cfg.ShutdownGracePeriodByPodPriority,
			plan.PodPriorityGracePeriod{Priority: b.priority, ShutdownGracePeriodSeconds: b.seconds})
	}
	return cfg
}

// total returns a configuration with this total and no time for critical pods.
func total(period time.Duration) plan.Config {
	return plan.Config{ShutdownGracePeriod: metav1.Duration{Duration: period}}
}

// mostSeconds is the largest number of seconds that fits into a time.Duration.
const mostSeconds = math.MaxInt64 / int64(time.Second)

// The kubelet accepts negative seconds, duplicate priorities and a sum that overflows a time.Duration, although its drain
// does not work with them. ValidateNodeShutdown rejects them. mostSeconds, 9223372036 s, is the longest Duration.
func TestMistakesThatTheKubeletAccepts(t *testing.T) {
	const list = "invalid configuration: shutdownGracePeriodByPodPriority"
	for want, cfg := range map[string]plan.Config{
		list + "[1].shutdownGracePeriodSeconds -3 must not be negative": byPriority(bucket{priority: 0, seconds: 3}, bucket{priority: 1, seconds: -3}),

		list + "[2].priority 7 duplicates shutdownGracePeriodByPodPriority[0]\n" +
			list + "[3].priority 7 duplicates shutdownGracePeriodByPodPriority[0]": byPriority(bucket{priority: 7, seconds: 3}, bucket{priority: 1, seconds: 3}, bucket{priority: 7, seconds: 4}, bucket{priority: 7, seconds: 5}),

		list + "[1].shutdownGracePeriodSeconds 1 makes the sum exceed 9223372036, the maximum of a duration":                   byPriority(bucket{priority: 0, seconds: mostSeconds}, bucket{priority: 1, seconds: 1}, bucket{priority: 2, seconds: 1}),
		list + "[1].shutdownGracePeriodSeconds 9223372036854775807 makes the sum exceed 9223372036, the maximum of a duration": byPriority(bucket{priority: 0, seconds: 1}, bucket{priority: 1, seconds: math.MaxInt64}),
		list + "[0].shutdownGracePeriodSeconds 9223372036854775807 makes the sum exceed 9223372036, the maximum of a duration": byPriority(bucket{priority: 0, seconds: math.MaxInt64}),
	} {
		require.EqualError(t, validation.ValidateNodeShutdown(cfg, validation.Options{}), want)
	}
}

// A configuration has many mistakes. The kubelet's errors come first, in the kubelet's order, and then the errors that
// only kubegrace reports.
func TestNodeShutdownErrorsAreJoined(t *testing.T) {
	cfg := byPriority(bucket{priority: 0, seconds: math.MinInt64}, bucket{priority: 0, seconds: math.MaxInt64}, bucket{priority: 1, seconds: 5})
	cfg.ShutdownGracePeriod.Duration = time.Millisecond
	cfg.ShutdownGracePeriodCriticalPods.Duration = time.Second
	require.EqualError(t, validation.ValidateNodeShutdown(cfg, allOff()), ""+
		"invalid configuration: shutdownGracePeriodCriticalPods {1s} must be <= shutdownGracePeriod {1ms}\n"+
		"invalid configuration: shutdownGracePeriod {1ms} must be either zero or otherwise >= 1 sec\n"+
		"invalid configuration: specifying shutdownGracePeriod or shutdownGracePeriodCriticalPods requires feature gate GracefulNodeShutdown\n"+
		"invalid configuration: Specifying shutdownGracePeriodByPodPriority requires feature gate GracefulNodeShutdownBasedOnPodPriority\n"+
		"invalid configuration: shutdownGracePeriodByPodPriority[0].shutdownGracePeriodSeconds -9223372036854775808 must not be negative\n"+
		"invalid configuration: shutdownGracePeriodByPodPriority[1].priority 0 duplicates shutdownGracePeriodByPodPriority[0]\n"+
		"invalid configuration: shutdownGracePeriodByPodPriority[1].shutdownGracePeriodSeconds 9223372036854775807 makes the sum exceed 9223372036, the maximum of a duration")
}

// podOfClass returns a pod in namespace test with this priority class and grace period.
func podOfClass(name, class string, grace int64) *v1.Pod {
	return &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "test", Name: name},
		Spec:       v1.PodSpec{PriorityClassName: class, TerminationGracePeriodSeconds: &grace},
	}
}

// A schedule that is long enough for its pods causes no warning, and neither does any schedule if graceful shutdown is off. A nil
// pod is ignored.
func TestNodeWithoutWarnings(t *testing.T) {
	plain, critical := podOfClass("plain", "", 30), podOfClass("critical", "system-node-critical", 5)
	critical.Spec.Priority = ptr.To(int32(2_000_001_000))
	pods := []*v1.Pod{plain, critical, nil}
	buckets := byPriority(bucket{priority: 0, seconds: 30}, bucket{priority: 2_000_000_000, seconds: 5})
	require.Empty(t, validation.WarnNodeShutdown(total(30*time.Second), []*v1.Pod{plain}, plan.Options{Limit: 30 * time.Second}), "the host grants the total")
	require.Empty(t, validation.WarnNodeShutdown(buckets, pods, plan.Options{}), "the host has no limit, and each pod's bucket has its grace period")
	require.Empty(t, validation.WarnNodeShutdown(plan.Config{}, pods, plan.Options{Limit: time.Second}), "graceful shutdown is off")
}

// The manager knows the priority of the class gold, 7, by PriorityOf. The kubelet does not use the class of a static
// pod, so the pod has the priority 0 there. The warning has both priorities.
func TestWarningsOfANodeUseTheManagersPriorities(t *testing.T) {
	static := podOfClass("etcd", "gold", 5)
	static.Annotations = map[string]string{"kubernetes.io/config.source": "file"}
	buckets := byPriority(bucket{priority: 0, seconds: 30})
	gold := plan.Options{PriorityOf: func(class string) (int32, bool) { return 7, class == "gold" }}
	require.Equal(t, []string{`pod test/etcd has priority class "gold" but no priority: it counts as 7 here and as 0 for a kubelet, which kills it first`},
		validation.WarnNodeShutdown(buckets, []*v1.Pod{static}, gold))
}

// Each warning has its cause: the limit is 21 s, one pod asks for 60 s, two pods have the unknown classes lead and
// gold, and one has a class that the kubelet ignores. The buckets of 25 s and 10 s are cut in proportion to fit into 21
// s: to 25 * 21/35 = 15 s and 10 * 21/35 = 6 s.
func TestWarningsOfANode(t *testing.T) {
	static := podOfClass("etcd", "gold", 5) // a static pod counts like any other: it is the second pod of an unknown class
	static.Annotations = map[string]string{"kubernetes.io/config.source": "file"}
	cfg := byPriority(bucket{priority: 2_000_000_000, seconds: 10}, bucket{priority: 0, seconds: 25})
	pods := []*v1.Pod{podOfClass("dns", "system-cluster-critical", 5), podOfClass("web", "", 60), podOfClass("job", "lead", 1), static}
	require.Equal(t, []string{
		"the schedule takes 35s but is cut to 21s",
		"bucket 0 is cut from 25s to 15s",
		"bucket 0 is too short for 1 of its 3 pods: test/web asks for 60s and gets 15s",
		"bucket 2000000000 is cut from 10s to 6s",
		`pods of unknown priority classes count as priority 0 (pods: 2, first: test/job of class "lead")`,
		`pod test/dns has priority class "system-cluster-critical" but no priority: it counts as 2000000000 here and as 0 for a kubelet, which kills it first`,
	}, validation.WarnNodeShutdown(cfg, pods, plan.Options{Limit: 21 * time.Second}))
}
