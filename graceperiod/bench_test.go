package graceperiod_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/kubegrace/kubegrace/graceperiod"
)

// A node agent calls these functions repeatedly for every pod and container, so they must not allocate.
func TestForFunctionsDoNotAllocate(t *testing.T) {
	pod, deleted := scheduledPod(ptr.To(int64(30))), deletedPod(9*time.Second, ptr.To(int64(30)))
	pod.Spec.Containers = []v1.Container{containerWithProbes("app", ptr.To(int64(10)), nil)}
	options, override, now := deleteOptions(nil), ptr.To(int64(10)), testTime()
	var span time.Duration
	require.Zero(t, testing.AllocsPerRun(100, func() {
		graceperiod.ForContainer(pod, &pod.Spec.Containers[0], graceperiod.ReasonLivenessProbe)
		graceperiod.ForPod(pod, 20, override)
		graceperiod.ForDelete(pod, options)
		graceperiod.ForSoftEviction(pod, -1)
		graceperiod.ForNodeShutdown(pod, 20)
		graceperiod.KillTimeout(30)
		graceperiod.Remaining(30, time.Second)
		graceperiod.LeftOfDeletion(deleted, now)
		span = graceperiod.Duration(30)
	}))
	require.Equal(t, 30*time.Second, span)
}

// compareWithHandwritten measures the handwritten rule and the package. Both return their result, so that
// the compiler does not remove the calculation.
func compareWithHandwritten[T any](b *testing.B, plain, kubegrace func() T) {
	b.Helper()
	for _, way := range []struct {
		name string
		call func() T
	}{{"way=plain", plain}, {"way=kubegrace", kubegrace}} {
		b.Run(way.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				way.call()
			}
		})
	}
}

// podWithProbe returns a pod with one container, whose liveness probe has a grace period.
func podWithProbe() (*v1.Pod, *v1.Container) {
	pod := podOf(containerWithProbes("app", ptr.To(int64(10)), ptr.To(int64(20))))
	pod.Spec.TerminationGracePeriodSeconds = ptr.To(int64(30))
	return pod, &pod.Spec.Containers[0]
}

func BenchmarkForContainer(b *testing.B) {
	pod, c := podWithProbe()
	compareWithHandwritten(b,
		func() int64 { return plainContainer(pod, c, graceperiod.ReasonLivenessProbe) },
		func() int64 { return graceperiod.ForContainer(pod, c, graceperiod.ReasonLivenessProbe) })
}

func BenchmarkForPod(b *testing.B) {
	pod, override := podWithSpecAndDeletion(ptr.To(int64(30)), ptr.To(int64(25))), ptr.To(int64(10))
	compareWithHandwritten(b,
		func() int64 { return plainPod(pod, 20, override) },
		func() int64 { seconds, _ := graceperiod.ForPod(pod, 20, override); return seconds })
}

func BenchmarkForNodeShutdown(b *testing.B) {
	pod := podWithSpecAndDeletion(ptr.To(int64(30)), nil)
	compareWithHandwritten(b,
		func() int64 { return plainNodeShutdown(pod, 60) },
		func() int64 { return graceperiod.ForNodeShutdown(pod, 60) })
}

func BenchmarkForDelete(b *testing.B) {
	pod, options := scheduledPod(ptr.To(int64(30))), deleteOptions(nil)
	compareWithHandwritten(b,
		func() int64 { return plainDelete(pod, options) },
		func() int64 { seconds, _ := graceperiod.ForDelete(pod, options); return seconds })
}

func BenchmarkForSoftEviction(b *testing.B) {
	pod := podWithSpecAndDeletion(ptr.To(int64(30)), nil)
	compareWithHandwritten(b,
		func() int64 { return plainSoftEviction(pod, -1) },
		func() int64 { return graceperiod.ForSoftEviction(pod, -1) })
}

func BenchmarkBeforeDelete(b *testing.B) {
	pod, now := scheduledPod(ptr.To(int64(30))), testTime()
	compareWithHandwritten(b,
		func() error {
			pod.DeletionTimestamp = nil
			return plainBeforeDelete(pod, deleteOptions(nil), now)
		},
		func() error {
			pod.DeletionTimestamp = nil
			_, _, err := graceperiod.BeforeDelete(pod, deleteOptions(nil), now)
			return err
		})
}

func BenchmarkCheckGracefulDelete(b *testing.B) {
	var strategy graceperiod.PodDeleteStrategy
	pod, options := scheduledPod(ptr.To(int64(30))), deleteOptions(nil)
	compareWithHandwritten(b,
		func() bool {
			options.GracePeriodSeconds = nil
			options.GracePeriodSeconds = ptr.To(plainDelete(pod, options))
			return true
		},
		func() bool {
			options.GracePeriodSeconds = nil
			return strategy.CheckGracefulDelete(b.Context(), pod, options)
		})
}

func BenchmarkExplainContainer(b *testing.B) {
	pod, c := podWithProbe()
	compareWithHandwritten(b,
		func() string { return plainExplanation(pod, c, graceperiod.ReasonLivenessProbe) },
		func() string {
			return graceperiod.ExplainContainer(pod, c, graceperiod.ReasonLivenessProbe).String()
		})
}

func BenchmarkRemaining(b *testing.B) {
	compareWithHandwritten(b,
		func() int64 { return plainRemaining(30, 12*time.Second) },
		func() int64 { return graceperiod.Remaining(30, 12*time.Second) })
}

func BenchmarkKillTimeout(b *testing.B) {
	compareWithHandwritten(b,
		func() time.Duration { return plainKillTimeout(30) },
		func() time.Duration { return graceperiod.KillTimeout(30) })
}

func BenchmarkDuration(b *testing.B) {
	seconds := int64(30)
	compareWithHandwritten(b,
		func() time.Duration { return time.Duration(seconds) * time.Second },
		func() time.Duration { return graceperiod.Duration(seconds) })
}

func BenchmarkLeftOfDeletion(b *testing.B) {
	now := testTime()
	pod := podWithSpecAndDeletion(nil, ptr.To(int64(30)))
	pod.DeletionTimestamp = &metav1.Time{Time: now.Add(9 * time.Second)}
	compareWithHandwritten(b,
		func() int64 { return plainLeftOfDeletion(pod, now) },
		func() int64 { return graceperiod.LeftOfDeletion(pod, now) })
}

// The handwritten rules, with which the benchmarks compare this package, give the same results as the package.
func TestHandwrittenRulesGiveTheSameResults(t *testing.T) {
	pod, c := podWithProbe()
	for _, reason := range []graceperiod.KillReason{graceperiod.ReasonLivenessProbe, graceperiod.ReasonStartupProbe, graceperiod.ReasonUnknown} {
		require.Equal(t, graceperiod.ForContainer(pod, c, reason), plainContainer(pod, c, reason))
	}
	require.Equal(t, graceperiod.ExplainContainer(pod, c, graceperiod.ReasonLivenessProbe).String(), plainExplanation(pod, c, graceperiod.ReasonLivenessProbe))
	seconds, _ := graceperiod.ForPod(pod, 20, ptr.To(int64(10)))
	require.Equal(t, seconds, plainPod(pod, 20, ptr.To(int64(10))))
	require.Equal(t, graceperiod.ForNodeShutdown(pod, 60), plainNodeShutdown(pod, 60))
	require.Equal(t, graceperiod.ForSoftEviction(pod, -1), plainSoftEviction(pod, -1))
	require.Equal(t, graceperiod.Remaining(30, 12*time.Second), plainRemaining(30, 12*time.Second))
	require.Equal(t, graceperiod.KillTimeout(30), plainKillTimeout(30))
	ours, plain := scheduledPod(ptr.To(int64(30))), scheduledPod(ptr.To(int64(30)))
	_, _, err := graceperiod.BeforeDelete(ours, deleteOptions(nil), testTime())
	require.NoError(t, err)
	require.NoError(t, plainBeforeDelete(plain, deleteOptions(nil), testTime()))
	require.Equal(t, ours, plain)
	require.Equal(t, graceperiod.LeftOfDeletion(ours, testTime()), plainLeftOfDeletion(plain, testTime()))
}
