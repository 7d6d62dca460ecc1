package graceperiod_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/graceperiod"
)

// A node agent calls these functions repeatedly for every pod and container, so they must not allocate.
func TestForFunctionsDoNotAllocate(t *testing.T) {
	pod, deleted := scheduledPod(seconds(30)), podEndingIn(9*time.Second, seconds(30))
	pod.Spec.Containers = []v1.Container{containerWithProbes("app", seconds(10), nil)}
	options, override, now := deleteOptions(nil), seconds(10), testTime()
	var span time.Duration // keeps the compiler from leaving out the call of Duration
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
