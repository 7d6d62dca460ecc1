//go:build go1.25

package plan_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/shutdown/plan"
)

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
	other := v1.ContainerRestartPolicy("Never") // a constant since v0.34
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

// The plan of a drain whose times are known already is that of New with the same times.
func TestPlanOfADrain(t *testing.T) {
	opts := plan.Options{Hooks: allHooks(), Limit: 35 * time.Second}
	pods := list(pod("a", withGrace(99)), nil, pod("b", critical(), withGrace(99)))
	p := plan.New(twoBuckets(), pods, opts)
	d := plan.Drain{Wanted: p.Wanted, Fitted: p.Fitted, First: p.Buckets[0].Start, Release: p.Release}
	require.Equal(t, p, d.Plan(pods, opts))
}
