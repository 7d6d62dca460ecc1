//go:build go1.25

package lifecycle_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"

	"github.com/kubegrace/kubegrace/graceperiod"
	"github.com/kubegrace/kubegrace/lifecycle"
	"github.com/kubegrace/kubegrace/lifecycle/lifecycletest"
	"github.com/kubegrace/kubegrace/metrics"
)

// Five pods, each in a bubble of its own, share a registry. Their containers end in different ways. The comment of each bubble
// says what it adds to the counters, and the expected counters are the sums.
func TestMetricsOfTerminations(t *testing.T) {
	registry := prometheus.NewPedanticRegistry()
	counters, err := metrics.NewLifecycle(registry, metrics.Options{})
	require.NoError(t, err)
	counted := func(o *lifecycle.TerminatorOptions) {
		o.Metrics = counters
		o.Hooks = lifecycle.NewHandlerRunner(lifecycle.HandlerRunnerOptions{Metrics: counters, Commands: o.Runtime.(*lifecycletest.Runtime)})
	}
	// Two containers killed after their grace period, in one pod, and a sleep terminated early.
	inBubble(t, graceSeconds(10), func(b *testBed) {
		b.addMainWithHook("app", sleepHandler(60), lifecycletest.Script{IgnoreTerm: true})
		b.addMain("web", lifecycletest.Script{IgnoreTerm: true})
		b.killPod()
		b.killPod() // counts nothing: the pod has ended
	}, counted)
	// A stop that hangs and is repeated with timeout 0: the runtime's fault, so not a container killed after its grace period.
	inBubble(t, graceSeconds(10), func(b *testBed) {
		b.addMain("app", lifecycletest.Script{HangStops: 1})
		require.Equal(b, lifecycle.OutcomeForced, b.killPod().Outcome())
	}, counted)
	// A sleep that ends because its container exits.
	inBubble(t, graceSeconds(10), func(b *testBed) {
		b.addMainWithHook("app", sleepHandler(5), lifecycletest.Script{ExitAfter: time.Second})
		b.killPod()
	}, counted)
	// A third container killed after its grace period, by KillContainer, which does not count as a pod.
	inBubble(t, graceSeconds(10), func(b *testBed) {
		b.addMain("app", lifecycletest.Script{IgnoreTerm: true})
		_, err := b.KillContainer(b.Context(), b.pod, containerNamed("app"), lifecycle.ContainerRequest{Reason: graceperiod.ReasonUnknown})
		require.NoError(b, err)
	}, counted)
	// A hook that ignores its cancellation and is abandoned.
	var release chan struct{}
	inBubble(t, graceSeconds(3), func(b *testBed) {
		release = make(chan struct{})
		b.addMainWithHook("app", scriptedExec(), lifecycletest.Script{Exec: func(context.Context, []string) ([]byte, error) { <-release; return nil, nil }})
		b.killPod()
		close(release)
	}, counted)
	require.NoError(t, testutil.GatherAndCompare(registry, strings.NewReader(`
# HELP kubelet_containers_killed_after_grace_total Containers that were killed because their grace period had ended.
# TYPE kubelet_containers_killed_after_grace_total counter
kubelet_containers_killed_after_grace_total 3
# HELP kubelet_pod_termination_grace_period_exceeded_total Pods with a container that was killed because the termination grace period had ended.
# TYPE kubelet_pod_termination_grace_period_exceeded_total counter
kubelet_pod_termination_grace_period_exceeded_total 1
# HELP kubelet_prestop_hooks_abandoned_total PreStop hooks that did not return when their context was cancelled.
# TYPE kubelet_prestop_hooks_abandoned_total counter
kubelet_prestop_hooks_abandoned_total 1
# HELP kubelet_sleep_action_ended_by_container_exit_total Sleep hooks that ended because their container had exited.
# TYPE kubelet_sleep_action_ended_by_container_exit_total counter
kubelet_sleep_action_ended_by_container_exit_total 1
# HELP kubelet_sleep_action_terminated_early_total [ALPHA] The number of times lifecycle sleep handler got terminated before it finishes
# TYPE kubelet_sleep_action_terminated_early_total counter
kubelet_sleep_action_terminated_early_total 1
`), "kubelet_containers_killed_after_grace_total", "kubelet_pod_termination_grace_period_exceeded_total",
		"kubelet_prestop_hooks_abandoned_total", "kubelet_sleep_action_ended_by_container_exit_total",
		"kubelet_sleep_action_terminated_early_total"))

	hooks, err := testutil.GatherAndCount(registry, "kubelet_prestop_hook_duration_seconds")
	require.NoError(t, err)
	require.Equal(t, 2, hooks, "one series per kind and outcome: sleep Cut (two hooks) and exec Abandoned")
	pods, err := testutil.GatherAndCount(registry, "kubelet_pod_termination_duration_seconds")
	require.NoError(t, err)
	require.Equal(t, 3, pods, "one series per outcome: GraceExceeded, Forced and Graceful (two pods)")
}
