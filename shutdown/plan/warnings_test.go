package plan_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kubegrace/kubegrace/shutdown/plan"
)

// The limit covers the schedule, and each pod gets its whole grace period: nothing to warn about.
func TestPlanWithoutWarnings(t *testing.T) {
	p := plan.New(twoBuckets(), list(pod("a", withGrace(20)), pod("b"), pod("c", withClass("system-node-critical"), withGrace(10))),
		plan.Options{Limit: 30 * time.Second})
	require.Empty(t, p.Warnings)
}

// The limit of 20 s shortens the buckets of 20 s and 10 s in proportion, to two thirds: 13.3 s and 6.7 s. Each bucket has a
// pod, and gets a warning. So does the pod a, which asks for 25 s. The pod b asks for only 6 s, and gets none.
func TestPlanWarnsOfALimit(t *testing.T) {
	p := plan.New(twoBuckets(), list(pod("a", withGrace(25)), pod("b", critical(), withGrace(6))), plan.Options{Limit: 20 * time.Second})
	require.Equal(t, []string{
		"the schedule takes 30s but is cut to 20s",
		"bucket 0 is cut from 20s to 13.3s",
		"bucket 0 is too short for 1 of its 1 pods: test/a asks for 25s and gets 13s",
		"bucket 2000000000 is cut from 10s to 6.7s",
	}, p.Warnings)
}

// The limit of 1 s leaves two thirds of a second to the bucket of 20 s, and a third to that of 10 s, which the warnings round
// to 700 ms and 300 ms. Grace periods are whole seconds, so that the pods get 0 s.
func TestPlanWarnsOfALimitThatLeavesNoWholeSecond(t *testing.T) {
	p := plan.New(twoBuckets(), list(pod("a", withGrace(25)), pod("b", critical(), withGrace(6))), plan.Options{Limit: time.Second})
	require.Equal(t, []string{
		"the schedule takes 30s but is cut to 1s",
		"bucket 0 is cut from 20s to 700ms", "bucket 0 has no time, its pods (1) are killed at once",
		"bucket 2000000000 is cut from 10s to 300ms", "bucket 2000000000 has no time, its pods (1) are killed at once",
	}, p.Warnings)
}

// Only the second bucket, of 10 s, has a pod. The limit of 11 s shortens the first bucket, which takes no time from a pod.
func TestPlanWarnsOfALimitThatShortensOnlyEmptyBuckets(t *testing.T) {
	p := plan.New(twoBuckets(), list(pod("b", critical(), withGrace(6))), plan.Options{Limit: 11 * time.Second})
	require.Equal(t, []string{"the schedule takes 30s but is cut to 11s, only in buckets without pods"}, p.Warnings)
}

// The pods want 30 s, the margin 2.5 s, the hold 10 s, and the other steps (publishing, readiness, unmounts and final statuses)
// 10 s. A limit of 52.5 s is enough for all, and there is no warning. A limit of 35.1 s leaves 30 s for the pods, 0.1 s for the
// margin, 5 s for the other steps, and nothing for the hold.
func TestPlanWarnsOfShortenedStepsBesideTheKills(t *testing.T) {
	steps := allButPrepareAndHold()
	steps.Hold = true
	pods := list(pod("a", withGrace(20)))
	p := plan.New(twoBuckets(), pods, plan.Options{Steps: steps, Limit: 35100 * time.Millisecond})
	require.Equal(t, []string{
		"the hold gets 0s of the requested 10s",
		"publishing, readiness, unmounts and final statuses get 5s of the requested 10s",
	}, p.Warnings)

	p = plan.New(twoBuckets(), pods, plan.Options{Steps: steps, Limit: 52500 * time.Millisecond})
	require.Empty(t, p.Warnings)
}

// Three of four pods ask for more than their bucket's 20 s. One warning counts them and names the pod that
// asks for the most; of two that ask for the same, the first.
func TestPlanWarnsOfShortBuckets(t *testing.T) {
	p := plan.New(twoBuckets(), list(
		pod("short", withGrace(20)), pod("long", withGrace(60)), pod("longer", withGrace(90)), pod("alike", withGrace(90)),
	), plan.Options{})
	require.Equal(t, []string{"bucket 0 is too short for 3 of its 4 pods: test/longer asks for 90s and gets 20s"}, p.Warnings)
}

// Both buckets have 0 s. The first one has two pods, and a warning, which names no pod. The second one has no pods, and no
// warning.
func TestPlanWarnsOfABucketWithoutTime(t *testing.T) {
	p := plan.New(plan.Schedule{{0, 0}, {1, 0}}, list(pod("a"), pod("b", withGrace(9))), plan.Options{})
	require.Equal(t, []string{"bucket 0 has no time, its pods (2) are killed at once"}, p.Warnings)
}

// A budget of a schedule that is not ascending is the budget of the sorted one: a pod of priority 0 gets the time of the
// bucket 0. The schedule itself is not changed.
func TestABudgetSortsItsSchedule(t *testing.T) {
	unsorted := plan.Schedule{{Priority: 1000, Seconds: 5}, {Priority: 0, Seconds: 20}}
	pods := list(pod("a", withGrace(60)))
	p := plan.NewBudget(unsorted, plan.Options{}).Plan(pods, plan.Options{})
	require.Equal(t, []int32{0, 1000}, []int32{p.Buckets[0].Priority, p.Buckets[1].Priority})
	require.Equal(t, int64(20), p.Buckets[0].Pods[0].GrantedSeconds)
	require.Equal(t, int32(1000), unsorted[0].Priority)
}

// The schedule has the priorities 10, 0 and 10: it is not ascending, and has a priority twice. Two warnings say so.
func TestPlanWarnsOfAnUnsortedSchedule(t *testing.T) {
	p := plan.New(plan.Schedule{{Priority: 10, Seconds: 5}, {Priority: 0, Seconds: 5}, {Priority: 10, Seconds: 1}}, nil, plan.Options{})
	require.Equal(t, []string{
		"the schedule was not ascending by priority, and has been sorted",
		"the schedule has the priority 10 twice: only one of its buckets gets pods",
	}, p.Warnings)
}

// A schedule without buckets drains no pod, which matters only if there are pods. Nil pods are none.
func TestPlanWarnsOfAnEmptySchedule(t *testing.T) {
	require.Equal(t, []string{"the schedule is empty: no pod is drained"}, plan.New(nil, list(nil, pod("a")), plan.Options{}).Warnings)
	require.Empty(t, plan.New(nil, list(nil), plan.Options{}).Warnings)
}

// Three pods, b, c and static, have a class that is unknown, so they count as priority 0. One warning counts them and names
// the first. The pod a has no class, and the pod d has a priority of its own.
func TestPlanWarnsOfUnknownClasses(t *testing.T) {
	static := pod("static", withClass("lead"), withAnnotation(source, "file"))
	p := plan.New(twoBuckets(), list(
		pod("a"), pod("b", withClass("gold")), pod("c", withClass("lead")), pod("d", withClass("lead"), withPriority(1)), static,
	), plan.Options{})
	require.Equal(t, []string{`pods of unknown priority classes count as priority 0 (pods: 3, first: test/b of class "gold")`}, p.Warnings)
}
