//go:build go1.25

package podkiller_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"

	"github.com/kubegrace/kubegrace/lifecycle"
	"github.com/kubegrace/kubegrace/lifecycle/lifecycletest"
	"github.com/kubegrace/kubegrace/shutdown"
	"github.com/kubegrace/kubegrace/shutdown/plan"
	"github.com/kubegrace/kubegrace/shutdown/podkiller"
	"github.com/kubegrace/kubegrace/shutdown/shutdowntest"
)

// terminateAll calls TerminateAll of a manager with a grace period of 30 s and one running pod, whose container
// behaves like script. It returns how long the call took, and its results. prepare is called before.
func terminateAll(t *testing.T, script lifecycletest.Script, prepare func(context.Context, *lifecycle.Terminator)) (took time.Duration, report shutdown.Report, err error) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		ctx := klog.NewContext(t.Context(), klog.Logger{})
		rt, pod := lifecycletest.NewRuntime(), shutdowntest.Pod("web", 0, 5)
		terminator, made := lifecycle.NewTerminator(lifecycle.TerminatorOptions{Runtime: rt, GiveUpAfter: time.Second})
		require.NoError(t, made)
		pod.Spec.Containers = []v1.Container{{Name: "web"}}
		rt.Start(pod, "web", "id", script)
		m, made := shutdown.NewManager(shutdown.Options{
			Config:   plan.Config{ShutdownGracePeriod: metav1.Duration{Duration: 30 * time.Second}},
			ListPods: shutdown.ListPodsFunc(func() []*v1.Pod { return []*v1.Pod{pod} }, nil),
			Killer:   podkiller.New(terminator, podkiller.Options{}),
		})
		require.NoError(t, made)
		prepare(ctx, terminator)
		began := time.Now()
		report, err = m.TerminateAll(ctx)
		took = time.Since(began)
		require.NoError(t, terminator.Close(ctx))
	})
	return took, report, err
}

// Each stop of the pod's container fails. TerminateAll returns an error that names the pod, and the report does not
// say that the pod has ended.
func TestAPodThatCannotBeKilledIsAnError(t *testing.T) {
	_, report, err := terminateAll(t, lifecycletest.Script{FailStops: -1}, func(context.Context, *lifecycle.Terminator) {})
	require.ErrorContains(t, err, "web")
	require.Error(t, report.Err())
	require.Zero(t, report.Pods[0].Ended)
}

// The terminator was closed, so the kill fails, and no later one can succeed. The manager does not retry the kill: that
// would take its whole grace period of 30 s.
func TestAKillIsNotRetriedAfterTheTerminatorWasClosed(t *testing.T) {
	took, report, err := terminateAll(t, lifecycletest.Script{}, func(ctx context.Context, terminator *lifecycle.Terminator) {
		require.NoError(t, terminator.Close(ctx))
	})
	require.Error(t, err)
	require.Less(t, took, 3*time.Second)
	require.Zero(t, report.Pods[0].Ended)
	require.Contains(t, report.Pods[0].Error, shutdown.ErrNoRetry.Error())
}

// After the terminator was closed, a kill fails with ErrClosed and ErrNoRetry.
func TestAClosedTerminatorFailsKills(t *testing.T) {
	terminator, err := lifecycle.NewTerminator(lifecycle.TerminatorOptions{Runtime: lifecycletest.NewRuntime()})
	require.NoError(t, err)
	require.NoError(t, terminator.Close(t.Context()))
	_, err = podkiller.New(terminator, podkiller.Options{}).KillPod(t.Context(), shutdowntest.Pod("web", 0, 5), shutdown.KillRequest{})
	require.ErrorIs(t, err, shutdown.ErrNoRetry)
	require.ErrorIs(t, err, lifecycle.ErrClosed)
}

// NewManager returns an error for a killer without a terminator.
func TestAKillerNeedsATerminator(t *testing.T) {
	_, err := shutdown.NewManager(shutdown.Options{
		Config:   plan.Config{ShutdownGracePeriod: metav1.Duration{Duration: 30 * time.Second}},
		ListPods: shutdown.ListPodsFunc(func() []*v1.Pod { return nil }, nil),
		Killer:   podkiller.New(nil, podkiller.Options{}),
	})
	require.ErrorContains(t, err, "Killer")
}
