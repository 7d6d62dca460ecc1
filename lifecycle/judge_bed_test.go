//go:build go1.25

package lifecycle_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"

	"github.com/kubegrace/kubegrace/lifecycle"
	"github.com/kubegrace/kubegrace/lifecycle/lifecycletest"
)

// lifeBed is a terminator on a fake runtime, and the life of a pod with a grace of 60 s, the
// container app and the sidecar proxy, which have preStop and postStart hooks.
type lifeBed struct {
	*testing.T

	rt     *lifecycletest.Runtime
	events *lifecycletest.Events
	tr     *lifecycle.Terminator
	spec   *v1.Pod
	life   *lifecycle.Pod
	ctx    context.Context //nolint:containedctx // with a silent logger
	began  time.Time

	mu    sync.Mutex
	hooks []string // the IDs of the preStop hooks that ran, in order
	takes time.Duration
}

// Run implements lifecycle.HandlerRunner.
func (b *lifeBed) Run(ctx context.Context, id string, _ *v1.Pod, _ *v1.Container, handler *v1.LifecycleHandler) (string, error) {
	if handler.Exec.Command[0] == "preStop" {
		b.mu.Lock()
		b.hooks = append(b.hooks, id)
		b.mu.Unlock()
	}
	return "", pause(ctx, b.takes)
}

func podWithHooks() *v1.Pod {
	hook := func(name string) *v1.LifecycleHandler {
		return &v1.LifecycleHandler{Exec: &v1.ExecAction{Command: []string{name}}}
	}
	hooks := &v1.Lifecycle{PreStop: hook("preStop"), PostStart: hook("postStart")}
	return &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "pod", UID: "uid"},
		Spec: v1.PodSpec{
			TerminationGracePeriodSeconds: ptr.To(int64(60)),
			Containers:                    []v1.Container{{Name: "app", Lifecycle: hooks}},
			InitContainers:                []v1.Container{{Name: "proxy", Lifecycle: hooks, RestartPolicy: ptr.To(v1.ContainerRestartPolicyAlways)}},
		},
	}
}

// inLife runs a test in a bubble, in which time is exact and no goroutine may be left.
func inLife(t *testing.T, do func(*lifeBed), change ...func(*lifeBed, *lifecycle.TerminatorOptions)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		b := &lifeBed{T: t, rt: lifecycletest.NewRuntime(), events: &lifecycletest.Events{}, spec: podWithHooks(), began: time.Now()}
		b.ctx = klog.NewContext(t.Context(), klog.Logger{})
		opts := lifecycle.TerminatorOptions{Runtime: b.rt, Hooks: b, Events: b.events, GiveUp: 5 * time.Second}
		for _, c := range change {
			c(b, &opts)
		}
		var err error
		b.tr, err = lifecycle.NewTerminator(opts)
		require.NoError(t, err)
		b.life = b.tr.Pod(b.spec)
		defer func() { // after a failure, too
			b.rt.Release()
			require.NoError(t, b.tr.Close(b.ctx))
		}()
		do(b)
	})
}

// watched makes the runtime the ExitWatcher.
func watched(b *lifeBed, o *lifecycle.TerminatorOptions) { o.Exits = b.rt }

// runs starts a container through Start.
func (b *lifeBed) runs(name, id string, script lifecycletest.Script) {
	b.Helper()
	require.NoError(b, b.start(name, id, script))
}

func (b *lifeBed) start(name, id string, script lifecycletest.Script) error {
	return b.life.Start(b.ctx, name, func(ctx context.Context) (string, error) { return b.rt.StartContainer(ctx, id, script) })
}

func (b *lifeBed) kill(req lifecycle.Request) (lifecycle.Outcome, error) {
	result, err := b.life.Kill(b.ctx, req)
	return result.Outcome(), err
}

// requireHooks compares the preStop hooks that ran, in any order.
func (b *lifeBed) requireHooks(ids ...string) {
	b.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	require.ElementsMatch(b, ids, b.hooks)
}

// requireStops compares the IDs of the stops, in any order.
func (b *lifeBed) requireStops(ids ...string) {
	b.Helper()
	var got []string
	for _, s := range b.rt.Stops() {
		got = append(got, s.ID)
	}
	require.ElementsMatch(b, ids, got)
}

func (b *lifeBed) requireExited(id string) {
	b.Helper()
	_, exited := b.rt.ExitCode(id)
	require.True(b, exited, "%s runs on", id)
}

// showing is the pod with the state of app in its status.
func (b *lifeBed) showing(id string, state v1.ContainerState) *v1.Pod {
	pod := b.spec.DeepCopy()
	pod.Status.ContainerStatuses = []v1.ContainerStatus{{Name: "app", ContainerID: "fake://" + id, State: state}}
	return pod
}

func runningSince(at time.Time) v1.ContainerState {
	return v1.ContainerState{Running: &v1.ContainerStateRunning{StartedAt: metav1.NewTime(at.Truncate(time.Second))}}
}

func terminatedAt(at time.Time) v1.ContainerState {
	return v1.ContainerState{Terminated: &v1.ContainerStateTerminated{FinishedAt: metav1.NewTime(at.Truncate(time.Second))}}
}

// only is a list of one container.
func only(name, id string) []lifecycle.Container {
	return []lifecycle.Container{{Name: name, ID: id}}
}

func withUID(pod *v1.Pod, uid types.UID) *v1.Pod {
	pod = pod.DeepCopy()
	pod.UID = uid
	return pod
}
