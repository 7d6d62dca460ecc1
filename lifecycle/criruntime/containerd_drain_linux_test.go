package criruntime_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubegrace/kubegrace/lifecycle"
	"github.com/kubegrace/kubegrace/lifecycle/criruntime"
	"github.com/kubegrace/kubegrace/lifecycle/criruntime/containerdtest"
	"github.com/kubegrace/kubegrace/shutdown"
	"github.com/kubegrace/kubegrace/shutdown/plan"
	"github.com/kubegrace/kubegrace/shutdown/podkiller"
	"github.com/kubegrace/kubegrace/shutdown/shutdowntest"
	"github.com/kubegrace/kubegrace/shutdown/source"
)

// hooked is a script that exits 6 s after TERM, with 7 if its preStop hook has written the file /tmp/hooked and with 9 if not.
const hooked = `trap 'sleep 6; [ -e /tmp/hooked ] && exit 7; exit 9' TERM; touch /tmp/ready; while :; do sleep 1000 & wait; done`

// A kubelet's pods are drained without an API server. Each container has its own grace period and hook, buckets and sidecars
// are stopped in order, and the report is complete. In the case "restarted" the same holds although containerd is killed
// before the shutdown and during it, and comes back each time.
func TestContainerdIsDrained(t *testing.T) {
	containerdtest.Each(t, func(t *testing.T, build containerdtest.Build) {
		for name, restarts := range map[string]bool{"not restarted": false, "restarted": true} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				testContainerdIsDrained(t, build, restarts)
			})
		}
	})
}

// drainedNode is a node with a manager and pods that a kubelet has started.
type drainedNode struct {
	*containerd

	ids     map[string]string // container IDs by name
	host    *shutdowntest.Host
	reports chan shutdown.Report
	hooks   chan string // the pod of each hook that has run
	failed  chan error  // the errors of ListPods
}

// addPriorityAndSidecar adds what no kubelet stores in its runtime: the pod critical gets a priority, and in the pod meshed the
// container proxy becomes a sidecar.
func addPriorityAndSidecar(pod *v1.Pod) {
	always, critical := v1.ContainerRestartPolicyAlways, int32(2000000000)
	switch pod.Name {
	case "critical":
		pod.Spec.Priority = &critical
	case "meshed":
		i := slices.IndexFunc(pod.Spec.Containers, func(c v1.Container) bool { return c.Name == "proxy" })
		if i < 0 {
			return
		}
		proxy := pod.Spec.Containers[i]
		proxy.RestartPolicy = &always
		pod.Spec.InitContainers = []v1.Container{proxy}
		pod.Spec.Containers = slices.Delete(pod.Spec.Containers, i, i+1)
	}
}

// newDrainedNode starts a containerd with four pods, each of another kind, and a manager that will drain them.
func newDrainedNode(t *testing.T, build containerdtest.Build) *drainedNode {
	t.Helper()
	server := build.Start(t,
		containerdtest.Image{Name: "hooked:1", Command: []string{"/bin/sh", "-c", hooked}},
		containerdtest.Image{Name: "obedient:1", Command: []string{"/bin/sh", "-c", obedient}},
		containerdtest.Image{Name: "stubborn:1", Command: []string{"/bin/sh", "-c", stubborn}})
	runtime := dial(t, server.Endpoint(), criruntime.Options{})
	d := &drainedNode{
		containerd: &containerd{kubelet{server.Runtime()}, server, runtime},
		ids:        map[string]string{}, host: &shutdowntest.Host{},
		reports: make(chan shutdown.Report, 1), hooks: make(chan string, 8), failed: make(chan error, 64),
	}
	hook := v1.LifecycleHandler{Exec: &v1.ExecAction{Command: []string{"/bin/touch", "/tmp/hooked"}}}
	for _, pod := range []*v1.Pod{
		podWithGrace("web", 30, withHook(hook), func(pod *v1.Pod) { pod.Spec.Containers[0].Image = "hooked:1" }),
		podWithGrace("stubborn", 4, func(pod *v1.Pod) { pod.Spec.Containers[0].Image = "stubborn:1" }),
		podWithGrace("critical", 5, func(pod *v1.Pod) { pod.Spec.Containers[0].Image = "obedient:1" }),
		podWithGrace("meshed", 20, func(pod *v1.Pod) {
			pod.Spec.Containers = []v1.Container{{Name: "proxy", Image: "obedient:1"}, {Name: "main", Image: "hooked:1"}}
		}),
	} {
		_, ids := d.runPod(t, pod)
		for i, id := range ids {
			d.awaitReady(t, id)
			d.ids[pod.Spec.Containers[i].Name] = id
		}
	}
	d.run(t)
	return d
}

// run runs the manager until the end of the test, and returns when it holds the inhibitor lock.
func (d *drainedNode) run(t *testing.T) {
	t.Helper()
	terminator, err := lifecycle.NewTerminator(lifecycle.TerminatorOptions{
		Runtime: d.runtime, Commands: d.runtime, Exits: d.runtime,
		OnHook: func(pod *v1.Pod, _ lifecycle.Container, _ lifecycle.HookResult) { d.hooks <- pod.Name },
	})
	require.NoError(t, err)
	manager, err := shutdown.NewManager(shutdown.Options{
		Config: plan.Config{
			ShutdownGracePeriod:             metav1.Duration{Duration: 60 * time.Second},
			ShutdownGracePeriodCriticalPods: metav1.Duration{Duration: 10 * time.Second},
		},
		Source: d.host,
		ListPods: func(ctx context.Context) ([]*v1.Pod, error) {
			pods, err := d.runtime.Pods(ctx)
			if err != nil {
				d.failed <- err
			}
			for _, pod := range pods {
				addPriorityAndSidecar(pod)
			}
			return pods, err
		},
		Killer:   podkiller.New(terminator, podkiller.Options{Status: d.runtime.PodStatus}),
		OnReport: func(_ context.Context, report shutdown.Report) { d.reports <- report },
	})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	ran := make(chan error, 1)
	go func() { ran <- manager.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-ran)
		require.NoError(t, terminator.Close(context.WithoutCancel(t.Context())))
	})
	<-manager.Ready()
}

// testContainerdIsDrained announces a poweroff on a node with four pods, and checks the report, the exit codes and the order of
// the ends. web, stubborn and meshed are in the first bucket of 50 s, and critical is in the second one of 10 s.
func testContainerdIsDrained(t *testing.T, build containerdtest.Build, restarts bool) {
	d := newDrainedNode(t, build)
	if restarts {
		d.server.Kill(t)
		require.Eventually(t, func() bool { _, err := d.runtime.Pods(t.Context()); return err != nil }, waitAtMost, pollEvery)
	}
	d.host.Announce(source.Event{Kind: source.KindPoweroff})
	require.Equal(t, "web", <-d.hooks)
	if restarts {
		d.server.Kill(t)
	}
	report := <-d.reports
	require.Equal(t, restarts, len(d.failed) > 0, "ListPods fails only while containerd is down")
	if restarts {
		require.Len(t, report.Errors, 1)
		require.Contains(t, report.Errors[0], "failed to list the pods of the container runtime")
	} else {
		require.NoError(t, report.Err())
	}
	outcomes := map[string]string{}
	var granted []int64
	for _, pod := range report.Pods {
		outcomes[pod.Name] = pod.Outcome
		granted = append(granted, pod.GrantedSeconds)
	}
	if restarts && outcomes["stubborn"] == "Forced" { // containerd was down at this pod's deadline
		outcomes["stubborn"] = "GraceExceeded"
	}
	require.Equal(t, map[string]string{"web": "Graceful", "meshed": "Graceful", "stubborn": "GraceExceeded", "critical": "Graceful"}, outcomes)
	require.ElementsMatch(t, []int64{30, 20, 4, 5}, granted, "each pod's own grace period")
	firstBucket, last := report.Pods[:3], report.Pods[3]
	require.Equal(t, "critical", last.Name, "the only pod of the second bucket")
	for _, pod := range firstBucket {
		require.False(t, pod.Ended.After(last.Started), "the first bucket ends before the second begins")
	}
	require.Empty(t, d.hooks, "the hook has run once")

	for name, code := range map[string]int32{
		"web": 7, "main": 9, // of the script hooked: web's hook has run, main has none
		"critical": 7, "proxy": 7, // of the script obedient, after TERM
		"stubborn": 128 + 9, // SIGKILL
	} {
		require.Equal(t, code, d.status(t, d.ids[name]).GetExitCode(), name)
	}
	require.GreaterOrEqual(t, d.status(t, d.ids["proxy"]).GetFinishedAt(), d.status(t, d.ids["main"]).GetFinishedAt(), "the sidecar ends last")
	for _, pod := range report.Pods {
		if pod.Name == "stubborn" {
			require.GreaterOrEqual(t, pod.Ended.Sub(pod.Started), 4*time.Second, "the grace period of the pod stubborn")
		}
	}
}
