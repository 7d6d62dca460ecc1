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

// terminateAll is what TerminateAll of a manager with a terminator says about one pod, which
// runs, and how long it takes.
func terminateAll(t *testing.T, script lifecycletest.Script, before func(context.Context, *lifecycle.Terminator)) (took time.Duration, report shutdown.Report, err error) {
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
		before(ctx, terminator)
		began := time.Now()
		report, err = m.TerminateAll(ctx)
		took = time.Since(began)
		require.NoError(t, terminator.Close(ctx))
	})
	return took, report, err
}

// A pod that could not be killed is an error of TerminateAll.
func TestAPodThatCannotBeKilledIsAnError(t *testing.T) {
	_, report, err := terminateAll(t, lifecycletest.Script{FailStops: -1}, func(context.Context, *lifecycle.Terminator) {})
	require.ErrorContains(t, err, "web")
	require.Error(t, report.Err())
	require.Zero(t, report.Pods[0].Ended)
}

// A terminator that was closed stops nothing any more, and is not asked again.
func TestAClosedTerminatorIsNotAskedAgain(t *testing.T) {
	took, report, err := terminateAll(t, lifecycletest.Script{}, func(ctx context.Context, terminator *lifecycle.Terminator) {
		require.NoError(t, terminator.Close(ctx))
	})
	require.Error(t, err)
	require.Less(t, took, 3*time.Second)
	require.Zero(t, report.Pods[0].Ended)
	require.Contains(t, report.Pods[0].Error, shutdown.ErrNoRetry.Error())
}

// The error of a terminator that was closed says so.
func TestTheErrorOfAClosedTerminator(t *testing.T) {
	terminator, err := lifecycle.NewTerminator(lifecycle.TerminatorOptions{Runtime: lifecycletest.NewRuntime()})
	require.NoError(t, err)
	require.NoError(t, terminator.Close(t.Context()))
	_, err = podkiller.New(terminator, podkiller.Options{}).KillPod(t.Context(), shutdowntest.Pod("web", 0, 5), shutdown.KillRequest{})
	require.ErrorIs(t, err, shutdown.ErrNoRetry)
	require.ErrorIs(t, err, lifecycle.ErrClosed)
}

// A killer without a terminator is refused where it is given.
func TestAKillerNeedsATerminator(t *testing.T) {
	_, err := shutdown.NewManager(shutdown.Options{
		Config:   plan.Config{ShutdownGracePeriod: metav1.Duration{Duration: 30 * time.Second}},
		ListPods: shutdown.ListPodsFunc(func() []*v1.Pod { return nil }, nil),
		Killer:   podkiller.New(nil, podkiller.Options{}),
	})
	require.ErrorContains(t, err, "Killer")
}
