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

// A node agent asks these for every pod and container, again and again.
func TestPlainFunctionsDoNotAllocate(t *testing.T) {
	pod, deleted := scheduled(ptr.To(int64(30))), ending(9*time.Second, ptr.To(int64(30)))
	pod.Spec.Containers = []v1.Container{container("app", ptr.To(int64(10)), nil)}
	options, override, now := asking(nil), ptr.To(int64(10)), today()
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

func BenchmarkForContainer(b *testing.B) {
	pod := podOf(container("app", ptr.To(int64(10)), ptr.To(int64(20))))
	pod.Spec.TerminationGracePeriodSeconds = ptr.To(int64(30))
	b.ReportAllocs()
	for b.Loop() {
		graceperiod.ForContainer(pod, &pod.Spec.Containers[0], graceperiod.ReasonLivenessProbe)
	}
}

func BenchmarkForPod(b *testing.B) {
	pod, override := podWith(ptr.To(int64(30)), ptr.To(int64(25))), ptr.To(int64(10))
	b.ReportAllocs()
	for b.Loop() {
		graceperiod.ForPod(pod, 20, override)
	}
}

func BenchmarkForNodeShutdown(b *testing.B) {
	pod := podWith(ptr.To(int64(30)), nil)
	b.ReportAllocs()
	for b.Loop() {
		graceperiod.ForNodeShutdown(pod, 60)
	}
}

func BenchmarkForDelete(b *testing.B) {
	pod, options := scheduled(ptr.To(int64(30))), asking(nil)
	b.ReportAllocs()
	for b.Loop() {
		graceperiod.ForDelete(pod, options)
	}
}

func BenchmarkForSoftEviction(b *testing.B) {
	pod := podWith(ptr.To(int64(30)), nil)
	b.ReportAllocs()
	for b.Loop() {
		graceperiod.ForSoftEviction(pod, -1)
	}
}

// The two below write into the pod or the options, and allocate what they write.

func BenchmarkBeforeDelete(b *testing.B) {
	pod, now := scheduled(ptr.To(int64(30))), today()
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
	pod, options := scheduled(ptr.To(int64(30))), asking(nil)
	b.ReportAllocs()
	for b.Loop() {
		options.GracePeriodSeconds = nil
		strategy.CheckGracefulDelete(b.Context(), pod, options)
	}
}

// What an explanation costs beside its plain function.
func BenchmarkExplainContainer(b *testing.B) {
	pod := podOf(container("app", ptr.To(int64(10)), ptr.To(int64(20))))
	pod.Spec.TerminationGracePeriodSeconds = ptr.To(int64(30))
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
	pod := podWith(nil, ptr.To(int64(30)))
	pod.DeletionTimestamp = &metav1.Time{Time: now.Add(9 * time.Second)}
	b.ReportAllocs()
	for b.Loop() {
		graceperiod.LeftOfDeletion(pod, now)
	}
}
