package plan_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/shutdown/plan"
)

// A budget that was made by hand may have no reserves at all.
func TestBudgetWithoutReserves(t *testing.T) {
	require.Equal(t, 30*time.Second, plan.Budget{Schedule: twoBuckets()}.Total())
}

// The least reserve of a bucket of a few seconds is a tenth of it.
func TestFitOfAShortBucketBesideItsReserve(t *testing.T) {
	opts := plan.Options{ReleaseMargin: -1, Hooks: plan.Hooks{Readiness: true, Unmount: true}}
	for limit, want := range map[time.Duration]int64{5499 * time.Millisecond: 4, 5500 * time.Millisecond: 5, 5460 * time.Millisecond: 4} {
		fitted := plan.NewBudget(plan.Schedule{{0, 20}}, opts).Fit(limit)
		require.Equal(t, want, fitted.Schedule[0].Seconds, limit)
	}
}

// The shortest span there is counts as a form that is used.
func TestValidateRefusesBothFormsWhateverTheirLength(t *testing.T) {
	for _, c := range []plan.Config{config(1, 0, entry(0, 10)), config(0, 1, entry(0, 10))} {
		require.ErrorContains(t, c.Validate(true), "Cannot specify both")
	}
	require.Equal(t, plan.Schedule{{0, 0}, {2_000_000_000, 20}}, config(20*time.Second, 20*time.Second).Schedule(false))
	require.Equal(t, plan.Schedule{{0, 0}, {2_000_000_000, 0}}, config(1, 0).Schedule(false))
}

// What is left of a bucket of which nobody knows the end goes to the next one with pods,
// and not to those after it.
func TestNewRollsOverOnce(t *testing.T) {
	for _, seconds := range []int64{1, 5} {
		p := plan.New(plan.Schedule{{0, math.MaxInt64}, {10, seconds}, {20, 10}}, list(
			pod("middle", withPriority(10), withGrace(99)), pod("last", withPriority(20), withGrace(99)),
		), plan.Options{})
		require.Equal(t, map[string]int64{"middle": 99, "last": 10}, granted(p))
	}
}

// Containers that are stopped at once do not take the floor after their grace.
func TestPodsWithoutHooksEndWithTheirGrace(t *testing.T) {
	initialized := pod("initialized", withGrace(10))
	initialized.Spec.InitContainers = []v1.Container{{}}
	other := v1.ContainerRestartPolicyNever
	never := pod("never", withGrace(10))
	never.Spec.InitContainers = []v1.Container{{RestartPolicy: &other}}
	plain := pod("plain", withGrace(10))
	plain.Spec.Containers = []v1.Container{{}}
	started := pod("started", withGrace(10))
	started.Spec.Containers = []v1.Container{{Lifecycle: &v1.Lifecycle{PostStart: &v1.LifecycleHandler{}}}}
	p := plan.New(twoBuckets(), list(initialized, never, plain, started), plan.Options{})
	for _, planned := range p.Buckets[0].Pods {
		require.Equal(t, 10*time.Second, planned.End, planned.Pod.Name)
	}
}

// The plan of a drain that another process has begun counts from its first bucket.
func TestPlanOfAResumedDrain(t *testing.T) {
	opts := plan.Options{Hooks: allHooks()}
	before := table(60*time.Second, opts)
	resumed := plan.ResumeTimetable(plan.Resumed{Schedule: before.Schedule(), First: before.First(), Release: before.Release()}, opts)
	require.Equal(t, before.Release().Add(250*time.Millisecond), before.Unlock(), "half of the margin")
	require.Equal(t, before.Unlock(), resumed.Unlock())
	require.Zero(t, resumed.NotBefore())
	require.Zero(t, resumed.Budget().Hold)
	require.Zero(t, resumed.Budget().Publish)

	p := resumed.Plan(list(pod("p", withGrace(5))), opts)
	require.Equal(t, []time.Duration{0, 24 * time.Second}, startsAndEnds(p)[:2])
	require.Equal(t, p.Wanted, p.Fitted)
	require.Empty(t, p.Warnings)

	late := plan.ResumeTimetable(plan.Resumed{Schedule: before.Schedule(), First: before.First(), Release: before.Release(), Late: true}, opts)
	require.Equal(t, before.First(), late.NotBefore())
}

func TestPlanWarnsOfWhatGivesWayBesideTheBuckets(t *testing.T) {
	hooks := allHooks()
	hooks.Hold = true
	p := plan.New(twoBuckets(), nil, plan.Options{Hooks: hooks, Limit: 34 * time.Second})
	require.Equal(t, twoBuckets(), p.Schedule)
	require.Equal(t, []string{
		"the hold has 0s of the 10s that it asks for",
		"publishing, readiness, unmounts and final statuses have 4s of the 10s that they ask for",
	}, p.Warnings)
}

func TestPlanWarnsOfOneUnknownClass(t *testing.T) {
	static := pod("static", withClass("lead"), withAnnotation("kubernetes.io/config.source", "file"))
	p := plan.New(twoBuckets(), list(static), plan.Options{})
	require.Empty(t, p.Warnings, "a static pod counts as node-critical")
	var chosen int32 = 7
	p = plan.New(twoBuckets(), list(static), plan.Options{StaticPods: &chosen})
	require.Empty(t, p.Warnings, "or as the options say")
	p = plan.New(twoBuckets(), list(pod("p", withClass("gold"))), plan.Options{})
	require.Equal(t, []string{`priority class "gold": value not known, counts as 0; pods: 1, among them test/p`}, p.Warnings)
}
