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

// allButPrepareAndHold returns all steps but these two.
func allButPrepareAndHold() plan.Steps {
	return plan.Steps{Publish: true, Readiness: true, Unmount: true, Statuses: true}
}

// critical makes a pod critical, so that it is in the second of twoBuckets.
func critical() func(*v1.Pod) { return withPriority(2_000_000_000) }

// The pods of a test of the kubelet (TestManager) are in buckets of 20 s and 10 s. With NoRollOver no bucket gets the time
// that an earlier one leaves unused. Each pod gets the shorter of its own grace period and its bucket; a pod without a grace
// period gets all of its bucket.
func TestGrantedSecondsOfTheKubeletsTestPods(t *testing.T) {
	p := plan.New(twoBuckets(), list(
		pod("normal-nil"), pod("critical-nil", critical()), pod("normal", withGrace(2)),
		pod("critical", critical(), withGrace(2)), pod("normal-long", withGrace(1000)),
	), plan.Options{NoRollOver: true})
	require.Equal(t, map[string]int64{"normal-nil": 20, "critical-nil": 10, "normal": 2, "critical": 2, "normal-long": 20}, grantedByName(p))
	require.Equal(t, []time.Duration{0, 20 * time.Second, 20 * time.Second, 30 * time.Second}, startsAndEnds(p))
	require.Equal(t, 32*time.Second, p.Release, "2 s after the last bucket, for containers that have used up their grace period")
}

// Only a pod that wants more than it gets is Truncated: the pod long wants 1000 s in a bucket of 20 s. The pod nil has no grace period,
// and so wants what the bucket has.
func TestAPodThatGetsLessThanItWantsIsTruncated(t *testing.T) {
	p := plan.New(twoBuckets(), list(pod("nil"), pod("short", withGrace(2)), pod("long", withGrace(1000))), plan.Options{})
	wanted := map[string]int64{}
	for _, planned := range p.Buckets[0].Pods {
		wanted[planned.Pod.Name] = planned.WantedSeconds
		require.Equal(t, planned.Pod.Name == "long", planned.Truncated())
	}
	require.Equal(t, map[string]int64{"nil": 20, "short": 2, "long": 1000}, wanted)
}

// All steps but Prepare are on, and no limit applies: the pods have their 20 s and 10 s. The first bucket starts after
// the hold (10 s) and publishing (2 s), at 12 s. Each bucket needs 4 s more than its pods, for readiness marks (1 s),
// unmounts (2 s) and statuses (1 s). So the buckets end at 12 s + 20 s + 4 s = 36 s, and at 36 s + 10 s + 4 s = 50 s.
func TestOtherStepsTakeNoTimeFromThePods(t *testing.T) {
	pods := list(pod("normal", withGrace(99)), pod("critical", critical(), withGrace(99)))
	steps := allButPrepareAndHold()
	steps.Hold = true
	p := plan.New(twoBuckets(), pods, plan.Options{Steps: steps})
	require.Equal(t, map[string]int64{"normal": 20, "critical": 10}, grantedByName(p))
	require.Equal(t, []time.Duration{12 * time.Second, 36 * time.Second, 36 * time.Second, 50 * time.Second}, startsAndEnds(p))
	require.Equal(t, 52*time.Second, p.Release, "2 s after the last bucket, for containers that have used up their grace period")
	require.Equal(t, p.Release+500*time.Millisecond, p.Wanted.Total(), "with the margin")
}

// The first two buckets (20 s and 5 s) are empty. A pod of the third one (10 s) may use their time too. Only a pod without a grace
// period ("nil") has just the 10 s.
func TestPodsMayUseTheTimeOfEarlierEmptyBuckets(t *testing.T) {
	s := plan.Schedule{{0, 20}, {10, 5}, {2_000_000_000, 10}}
	pods := list(pod("long", critical(), withGrace(1000)), pod("nil", critical()), pod("short", critical(), withGrace(3)))
	for name, c := range map[string]struct {
		opts plan.Options
		long int64
	}{
		"no other steps": {long: 20 + 5 + 10},
		"other steps":    {opts: plan.Options{Steps: allButPrepareAndHold()}, long: 20 + 5 + 10 + 2*4}, // each empty bucket has 4 s for them
		"no roll-over":   {opts: plan.Options{NoRollOver: true}, long: 10},                             // as in the kubelet
	} {
		require.Equal(t, map[string]int64{"long": c.long, "nil": 10, "short": 3}, grantedByName(plan.New(s, pods, c.opts)), name)
	}
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
	p := plan.New(plan.Schedule{{Seconds: 1000}}, pods, plan.Options{Steps: allButPrepareAndHold()})
	ends := map[string]time.Duration{}
	for _, planned := range p.Buckets[0].Pods {
		require.Equal(t, 3*time.Second, planned.Start)
		ends[planned.Pod.Name] = planned.End
	}
	require.Equal(t, map[string]time.Duration{
		"plain": (3 + 10) * time.Second, "short": (3 + 2) * time.Second, "eternal": (3 + 1000) * time.Second,
		"hooked": (3 + 20 + 2) * time.Second, "sidecar": (3 + 3 + 2) * time.Second,
	}, ends)
}
