package plan_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/shutdown/plan"
)

// grantedByName returns GrantedSeconds by pod name.
func grantedByName(p plan.Plan) map[string]int64 {
	all := map[string]int64{}
	for _, b := range p.Buckets {
		for _, pod := range b.Pods {
			all[pod.Pod.Name] = pod.GrantedSeconds
		}
	}
	return all
}

// startsAndEnds returns the Start and the End of each bucket.
func startsAndEnds(p plan.Plan) (all []time.Duration) {
	for _, b := range p.Buckets {
		all = append(all, b.Start, b.End)
	}
	return all
}

// twoBuckets has 20 s for normal pods and 10 s for critical ones.
func twoBuckets() plan.Schedule { return plan.Schedule{{0, 20}, {2_000_000_000, 10}} }

// allSteps returns all steps but Prepare and Hold.
func allSteps() plan.Steps {
	return plan.Steps{Publish: true, Readiness: true, Unmount: true, Statuses: true}
}

// critical makes a pod critical, so that it is in the second of twoBuckets.
func critical() func(*v1.Pod) { return withPriority(2_000_000_000) }

// The pods of a test of the kubelet (TestManager) are in buckets of 20 s and 10 s. With NoRollOver no bucket gets the time
// that an earlier one leaves unused. Each pod gets the shorter of its own grace period and its bucket; a pod without a grace
// period gets all of its bucket. Only normal-long, which wants 1000 s, is Truncated.
func TestGrantedSecondsOfTheKubeletsTestPods(t *testing.T) {
	p := plan.New(twoBuckets(), list(
		pod("normal-nil"), pod("critical-nil", critical()), pod("normal", withGrace(2)),
		pod("critical", critical(), withGrace(2)), pod("normal-long", withGrace(1000)),
	), plan.Options{NoRollOver: true})
	require.Equal(t, map[string]int64{"normal-nil": 20, "critical-nil": 10, "normal": 2, "critical": 2, "normal-long": 20}, grantedByName(p))
	require.Equal(t, []time.Duration{0, 20 * time.Second, 20 * time.Second, 30 * time.Second}, startsAndEnds(p))
	require.Equal(t, 32*time.Second, p.Release, "2 s after the last bucket, for containers that have used up their grace period")
	first := p.Buckets[0].Pods
	require.Equal(t, []bool{false, false, true}, []bool{first[0].Truncated(), first[1].Truncated(), first[2].Truncated()})
	require.Equal(t, []int64{20, 2, 1000}, []int64{first[0].WantedSeconds, first[1].WantedSeconds, first[2].WantedSeconds})
}

// All steps but Prepare are on, and no limit applies: the pods have their 20 s and 10 s. The first bucket starts after
// the hold (10 s) and publishing (2 s), at 12 s. Each bucket needs 4 s more than its pods, for readiness marks (1 s),
// unmounts (2 s) and statuses (1 s). So the buckets end at 12 s + 20 s + 4 s = 36 s, and at 36 s + 10 s + 4 s = 50 s.
func TestOtherStepsTakeNoTimeFromThePods(t *testing.T) {
	pods := list(pod("normal", withGrace(99)), pod("critical", critical(), withGrace(99)))
	steps := allSteps()
	steps.Hold = true
	p := plan.New(twoBuckets(), pods, plan.Options{Steps: steps})
	require.Equal(t, map[string]int64{"normal": 20, "critical": 10}, grantedByName(p))
	require.Equal(t, []time.Duration{12 * time.Second, 36 * time.Second, 36 * time.Second, 50 * time.Second}, startsAndEnds(p))
	require.Equal(t, 52*time.Second, p.Release, "2 s after the last bucket, for containers that have used up their grace period")
	require.Equal(t, p.Release+500*time.Millisecond, p.Wanted.Total(), "with the margin")
}

// The first two buckets (20 s and 5 s) are empty. A pod of the third one (10 s) may use their time too, 35 s in all. Only a
// pod without a grace period ("nil") has just the 10 s. With the other steps on, a pod may also use the 4 s that each empty
// bucket has for them. With NoRollOver each pod has only its own bucket, as in the kubelet.
func TestPodsMayUseTheTimeOfEarlierEmptyBuckets(t *testing.T) {
	s := plan.Schedule{{0, 20}, {10, 5}, {2_000_000_000, 10}}
	pods := list(pod("long", critical(), withGrace(1000)), pod("nil", critical()), pod("short", critical(), withGrace(3)))

	p := plan.New(s, pods, plan.Options{})
	require.Equal(t, map[string]int64{"long": 20 + 5 + 10, "nil": 10, "short": 3}, grantedByName(p))
	require.Equal(t, []time.Duration{0, 0, 0, 0, 0, 35 * time.Second}, startsAndEnds(p))

	p = plan.New(s, pods, plan.Options{Steps: allSteps()})
	require.Equal(t, map[string]int64{"long": 35 + 2*4, "nil": 10, "short": 3}, grantedByName(p))

	p = plan.New(s, pods, plan.Options{NoRollOver: true})
	require.Equal(t, map[string]int64{"long": 10, "nil": 10, "short": 3}, grantedByName(p))
	require.Equal(t, 10*time.Second, p.Buckets[2].End)
}

// The kills start after publishing (2 s) and the readiness marks (1 s), at 3 s. A container gets at least 2 s to stop: a pod
// with a grace period of 1 s ends 2 s later. A pod with a hook or a sidecar may use these 2 s on top of its grace period.
// "eternal" has until the end of its bucket of 1000 s.
func TestPodsStartAfterReadinessMarksAndGetTheMinimumStopTimeout(t *testing.T) {
	hooked := pod("hooked", withGrace(20))
	hooked.Spec.Containers = []v1.Container{{Lifecycle: &v1.Lifecycle{PreStop: &v1.LifecycleHandler{}}}}
	always := v1.ContainerRestartPolicyAlways
	sidecar := pod("sidecar", withGrace(3))
	sidecar.Spec.InitContainers = []v1.Container{{RestartPolicy: &always}}
	pods := list(pod("plain", withGrace(10)), pod("short", withGrace(1)), pod("eternal", withGrace(math.MaxInt64)), hooked, sidecar)
	p := plan.New(plan.Schedule{{Seconds: 1000}}, pods, plan.Options{Steps: allSteps()})
	ends := map[string]time.Duration{}
	for _, planned := range p.Buckets[0].Pods {
		require.Equal(t, 3*time.Second, planned.Start, "after publishing and the readiness marks")
		ends[planned.Pod.Name] = planned.End
	}
	require.Equal(t, map[string]time.Duration{
		"plain": (3 + 10) * time.Second, "short": (3 + 2) * time.Second, "eternal": (3 + 1000) * time.Second,
		"hooked": (3 + 20 + 2) * time.Second, "sidecar": (3 + 3 + 2) * time.Second,
	}, ends)
}
