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

// A total or a critical part of only 1 ns counts as a use of the two fields, so a list beside it is an error.
func TestValidateRejectsBothFormsHoweverShort(t *testing.T) {
	for _, c := range []plan.Config{config(1, 0, entry(0, 10)), config(0, 1, entry(0, 10))} {
		require.ErrorContains(t, c.Validate(gateOn, gateOn), "Cannot specify both")
	}
}

// The pods have init containers and a postStart hook, but neither preStop hooks nor sidecars. Their containers are stopped
// at once, so they have ended after the grace period of 10 s. Only a hook or a sidecar could add the 2 s that a container
// gets at least.
func TestPodsWithoutHooksEndWithTheirGracePeriod(t *testing.T) {
	initialized := pod("initialized", withGrace(10))
	initialized.Spec.InitContainers = []v1.Container{{}}
	notAlways := v1.ContainerRestartPolicy("Never") // a constant since v0.34
	never := pod("never", withGrace(10))
	never.Spec.InitContainers = []v1.Container{{RestartPolicy: &notAlways}}
	plain := pod("plain", withGrace(10))
	plain.Spec.Containers = []v1.Container{{}}
	started := pod("started", withGrace(10))
	started.Spec.Containers = []v1.Container{{Lifecycle: &v1.Lifecycle{PostStart: &v1.LifecycleHandler{}}}}
	p := plan.New(twoBuckets(), list(initialized, never, plain, started), plan.Options{})
	for _, planned := range p.Buckets[0].Pods {
		require.Equal(t, 10*time.Second, planned.End, planned.Pod.Name)
	}
}

// A pod that gets less than its grace period may run until the end of its bucket, even if that is between whole seconds. The
// limit of 20 s shortens the buckets of 20 s and 10 s to two thirds, 13.3 s and 6.7 s. So the pod a is granted 13 s, but may
// run for 13.3 s.
func TestTruncatedPodsEndWithTheirBucket(t *testing.T) {
	p := plan.New(twoBuckets(), list(pod("a", withGrace(99)), pod("b", critical(), withGrace(99))), plan.Options{Limit: 20 * time.Second})
	require.Equal(t, int64(13), p.Buckets[0].Pods[0].GrantedSeconds)
	require.Equal(t, p.Buckets[0].End, p.Buckets[0].Pods[0].End)
	require.Greater(t, p.Buckets[0].End, 13*time.Second)
}

// New fits a budget to the limit of 35 s, and plans the pods with it. Budget.Plan of that budget (Fitted), with the same pods
// and options, returns the same plan.
func TestBudgetPlanEqualsNew(t *testing.T) {
	opts := plan.Options{Steps: allButPrepareAndHold(), Limit: 35 * time.Second}
	pods := list(pod("a", withGrace(99)), nil, pod("b", critical(), withGrace(99)))
	p := plan.New(twoBuckets(), pods, opts)
	require.Equal(t, p, p.Fitted.Plan(pods, opts))
}

// The unmounts and the statuses, which follow the kills, take all the time of the first bucket. So the kills have none: all
// times of the bucket's window are 0, and the pod a gets 0 s.
func TestWindowIsEmptyIfTheLaterStepsTakeAllTime(t *testing.T) {
	opts := plan.Options{Steps: allButPrepareAndHold(), UnmountTimeout: math.MaxInt64, StatusesTimeout: math.MaxInt64}
	const firstBucket, atAnnouncement = 0, 0
	w := plan.NewBudget(twoBuckets(), opts).Window(firstBucket, atAnnouncement, opts)
	require.Zero(t, w.Ready)
	require.Zero(t, w.KillsEnd)
	require.Zero(t, w.UnmountsEnd)
	require.Zero(t, w.Seconds(pod("a", withGrace(99)), atAnnouncement))
}

// The schedule has the buckets 0 and 1. The window of any other bucket is zero.
func TestWindowOfNoBucketIsZero(t *testing.T) {
	for _, bucket := range []int{-1, 2} {
		require.Zero(t, plan.NewBudget(twoBuckets(), plan.Options{}).Window(bucket, time.Second, plan.Options{}))
	}
}
