package view_test

import (
	"bytes"
	"errors"
	"net/url"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/kubegrace/kubegrace/examples/kubegrace-node/internal/api"
	"github.com/kubegrace/kubegrace/examples/kubegrace-node/internal/view"
	"github.com/kubegrace/kubegrace/lifecycle"
	"github.com/kubegrace/kubegrace/shutdown"
	"github.com/kubegrace/kubegrace/shutdown/plan"
)

// podWith returns the pod shop/web with one container, app, that has this preStop hook.
func podWith(hook *v1.LifecycleHandler) *v1.Pod {
	pod := &v1.Pod{Spec: v1.PodSpec{Containers: []v1.Container{{Name: "app", Lifecycle: &v1.Lifecycle{PreStop: hook}}}}}
	pod.Namespace, pod.Name = "shop", "web"
	return pod
}

// The output of a shutdown has a line that says how long it may take, lines about pods, and the report. Hooks are named
// without what may be secret: the arguments of commands and the queries of URLs.
func TestAShutdown(t *testing.T) {
	var out bytes.Buffer
	v := view.New(&out)
	v.Begin(plan.Plan{Release: 18 * time.Second, Buckets: []plan.BucketPlan{{Pods: make([]plan.PodPlan, 2)}, {}, {Pods: make([]plan.PodPlan, 1)}}})
	for _, hook := range []*v1.LifecycleHandler{
		nil,
		{Sleep: &v1.SleepAction{Seconds: 2}},
		{Exec: &v1.ExecAction{Command: []string{"flush", "--token=secret"}}},
		{HTTPGet: &v1.HTTPGetAction{Path: "/stop?token=secret", Port: intstr.FromInt32(80)}},
		{},
	} {
		v.Stopping(podWith(hook), 10)
	}
	v.Stopped(podWith(nil), 3*time.Second, lifecycle.Result{Containers: []lifecycle.ContainerResult{{Name: "app", Outcome: lifecycle.OutcomeGraceful}}}, nil)
	v.Stopped(podWith(nil), 3*time.Second, lifecycle.Result{}, errors.New("one\ntwo"))
	v.Finish(api.ReportOf(shutdown.Report{}))
	require.Equal(t, `Shutting down 3 pods in 2 buckets, the lowest priority first; it may take up to 18s.
shop/web                 has 10s to stop
shop/web                 has 10s to stop, its preStop hook first (sleep of 2s)
shop/web                 has 10s to stop, its preStop hook first (command flush)
shop/web                 has 10s to stop, its preStop hook first (request to 80/stop)
shop/web                 has 10s to stop, its preStop hook first (unknown)
shop/web                 gone after 3s: stopped in time
shop/web                 not stopped after 3s: one; two

No pod was stopped.

A shutdown, began at 0001-01-01T00:00:00Z; its end is not known.
`, out.String())
}

// If something went wrong with a container, a sentence about it follows the line of its pod. The pod had 10 s, and its preStop
// hook is a sleep of 2 s.
func TestWhatWentWrong(t *testing.T) {
	for name, test := range map[string]struct {
		container lifecycle.ContainerResult
		pod       string // how it has ended
		sentence  string // about the container; "": there is none
	}{
		"killed": {
			container: lifecycle.ContainerResult{Outcome: lifecycle.OutcomeGraceExceeded, Stopping: 2 * time.Second},
			pod:       "killed, its time was up", sentence: "did not end on SIGTERM and was killed 2s later, when the 10s of its pod were over.",
		},
		"forced": {
			container: lifecycle.ContainerResult{Outcome: lifecycle.OutcomeForced, Err: errors.New("broken")},
			pod:       "killed, its stop had failed", sentence: "was killed, because its stop failed: broken",
		},
		"its hook failed": {
			container: lifecycle.ContainerResult{Hook: lifecycle.HookResult{Outcome: lifecycle.HookFailed, Err: &url.Error{URL: "secret", Err: errors.New("broken")}}},
			pod:       "not known", sentence: "had a preStop hook (sleep of 2s) that failed: broken",
		},
		"its hook was cut": {
			container: lifecycle.ContainerResult{Hook: lifecycle.HookResult{Outcome: lifecycle.HookCut, Cause: lifecycle.CauseGraceSpent, Took: time.Second}},
			pod:       "not known", sentence: "had a preStop hook (sleep of 2s) that was cut off after 1s.",
		},
		"its hook was abandoned": {
			container: lifecycle.ContainerResult{Hook: lifecycle.HookResult{Outcome: lifecycle.HookAbandoned, Took: time.Second}},
			pod:       "not known", sentence: "had a preStop hook (sleep of 2s) that was cut off after 1s.",
		},
		"its hook ended with it": {
			container: lifecycle.ContainerResult{Hook: lifecycle.HookResult{Outcome: lifecycle.HookCut, Cause: lifecycle.CauseContainerExited}},
			pod:       "not known", sentence: "",
		},
	} {
		var out bytes.Buffer
		test.container.Name = "app"
		pod := podWith(&v1.LifecycleHandler{Sleep: &v1.SleepAction{Seconds: 2}})
		view.New(&out).Stopped(pod, 0, lifecycle.Result{GracePeriodSeconds: 10, Containers: []lifecycle.ContainerResult{test.container}}, nil)
		want := "shop/web                 gone after 0s: " + test.pod + "\n"
		if test.sentence != "" {
			want += "shop/web: container app " + test.sentence + "\n"
		}
		require.Equal(t, want, out.String(), name)
	}
}

// No pods are known when the drain begins: the node has none, or the list of its pods has not come yet.
func TestAShutdownWithoutKnownPods(t *testing.T) {
	var out bytes.Buffer
	view.New(&out).Begin(plan.Plan{Release: 18 * time.Second, Buckets: []plan.BucketPlan{{}}})
	require.Equal(t, "Shutting down; no pods are known so far. It may take up to 18s.\n", out.String())
}
