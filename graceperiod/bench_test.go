package graceperiod_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubegrace/kubegrace/graceperiod"
)

// A node agent asks these for every pod and container, again and again.
func TestPlainFunctionsDoNotAllocate(t *testing.T) {
	pod, deleted := scheduled(new(int64(30))), ending(9*time.Second, new(int64(30)))
	pod.Spec.Containers = []v1.Container{container("app", new(int64(10)), nil)}
	options, override, now := asking(nil), new(int64(10)), today()
	var span time.Duration
	require.Zero(t, testing.AllocsPerRun(100, func() {
		graceperiod.ForContainer(pod, &pod.Spec.Containers[0], graceperiod.ReasonLivenessProbe)
		graceperiod.ForPod(pod, 20, override)
		graceperiod.ForDelete(pod, options)
		graceperiod.ForHardEviction()
		graceperiod.ForSoftEviction(pod, -1)
		graceperiod.ForNodeShutdown(pod, 20)
		graceperiod.KillTimeout(30)
		graceperiod.Remaining(30, time.Second)
		graceperiod.LeftOfDeletion(deleted, now)
		span = graceperiod.Duration(30)
	}))
	require.Equal(t, 30*time.Second, span)
}

func BenchmarkForContainer(b *testing.B) {
	pod := podOf(container("app", new(int64(10)), new(int64(20))))
	pod.Spec.TerminationGracePeriodSeconds = new(int64(30))
	b.ReportAllocs()
	for b.Loop() {
		graceperiod.ForContainer(pod, &pod.Spec.Containers[0], graceperiod.ReasonLivenessProbe)
	}
}

func BenchmarkForPod(b *testing.B) {
	pod, override := podWith(new(int64(30)), new(int64(25))), new(int64(10))
	b.ReportAllocs()
	for b.Loop() {
		graceperiod.ForPod(pod, 20, override)
	}
}

func BenchmarkForNodeShutdown(b *testing.B) {
	pod := podWith(new(int64(30)), nil)
	b.ReportAllocs()
	for b.Loop() {
		graceperiod.ForNodeShutdown(pod, 60)
	}
}

func BenchmarkForDelete(b *testing.B) {
	pod, options := scheduled(new(int64(30))), asking(nil)
	b.ReportAllocs()
	for b.Loop() {
		graceperiod.ForDelete(pod, options)
	}
}

func BenchmarkForHardEviction(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		graceperiod.ForHardEviction()
	}
}

func BenchmarkForSoftEviction(b *testing.B) {
	pod := podWith(new(int64(30)), nil)
	b.ReportAllocs()
	for b.Loop() {
		graceperiod.ForSoftEviction(pod, -1)
	}
}

// The two below write into the pod or the options, and allocate what they write.

func BenchmarkBeforeDelete(b *testing.B) {
	pod, now := scheduled(new(int64(30))), today()
	b.ReportAllocs()
	for b.Loop() {
		pod.DeletionTimestamp = nil
		if _, _, err := graceperiod.BeforeDelete(pod, asking(nil), now); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkCheckGracefulDelete(b *testing.B) {
	var strategy graceperiod.PodDeleteStrategy
	pod, options := scheduled(new(int64(30))), asking(nil)
	b.ReportAllocs()
	for b.Loop() {
		options.GracePeriodSeconds = nil
		strategy.CheckGracefulDelete(b.Context(), pod, options)
	}
}

// What an explanation costs beside its plain function.
func BenchmarkExplainContainer(b *testing.B) {
	pod := podOf(container("app", new(int64(10)), new(int64(20))))
	pod.Spec.TerminationGracePeriodSeconds = new(int64(30))
	b.ReportAllocs()
	for b.Loop() {
		graceperiod.ExplainContainer(pod, &pod.Spec.Containers[0], graceperiod.ReasonLivenessProbe)
	}
}

func BenchmarkRemaining(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		graceperiod.Remaining(30, 12*time.Second)
	}
}

func BenchmarkKillTimeout(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		graceperiod.KillTimeout(30)
	}
}

func BenchmarkDuration(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		graceperiod.Duration(30)
	}
}

func BenchmarkLeftOfDeletion(b *testing.B) {
	now := time.Date(2026, 5, 4, 3, 2, 1, 0, time.UTC)
	pod := podWith(nil, new(int64(30)))
	pod.DeletionTimestamp = &metav1.Time{Time: now.Add(9 * time.Second)}
	b.ReportAllocs()
	for b.Loop() {
		graceperiod.LeftOfDeletion(pod, now)
	}
}
