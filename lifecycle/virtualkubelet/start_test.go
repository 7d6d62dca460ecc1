//go:build go1.25

package virtualkubelet_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/internal/times"
	"github.com/kubegrace/kubegrace/lifecycle/lifecycletest"
)

// startsTake makes each start take the time takes, or until its context ends.
func (r *scriptedRuntime) startsTake(takes time.Duration) {
	r.beforeStart = func(ctx context.Context, _ string) error { return times.Sleep(ctx, takes) }
}

// startedNames returns the names of the containers whose start has begun, in order.
func (r *scriptedRuntime) startedNames() (names []string) {
	r.change(func() {
		for _, start := range r.starts {
			names = append(names, start.name)
		}
	})
	return names
}

// Each start takes 1 s. The sidecar starts from 0 to 1 s and the init container from 1 to 2 s, which then runs for 5 s. Only
// after that do the regular containers start, from 7 to 8 s and from 8 to 9 s. The pod is ready when the last one runs, at 9 s.
func TestContainersStartInOrder(t *testing.T) {
	inBubble(t, func(b *testbed) {
		b.rt.startsTake(second)
		readyCondition := func() v1.PodCondition { return conditionOf(b, b.lastStatus(), v1.PodReady) }
		b.rt.scripts["init"] = lifecycletest.Script{ExitAfter: 5 * second}
		pod := podOf(container("one"), container("two"))
		pod.Spec.InitContainers = []v1.Container{sidecar("proxy"), container("init")}
		b.create(pod)
		wait(7 * second)
		require.Equal(b, []string{"proxy", "init", "one"}, b.rt.startedNames())
		require.Equal(b, v1.PodPending, b.lastStatus().Phase)
		require.Equal(b, v1.ContainerState{}, b.lastStatus().ContainerStatuses[0].State)
		require.Equal(b, v1.ConditionFalse, readyCondition().Status)

		wait(2 * second)
		require.Equal(b, []string{"proxy", "init", "one", "two"}, b.rt.startedNames())
		require.Equal(b, v1.PodRunning, b.lastStatus().Phase)
		require.Equal(b, v1.ConditionTrue, readyCondition().Status)
		require.True(b, readyCondition().LastTransitionTime.Time.Equal(b.began.Add(9*second)))
		require.Zero(b, terminatedState(b, b.lastStatus(), "init").ExitCode)
		require.True(b, b.lastStatus().InitContainerStatuses[1].Ready, "an init container that has succeeded is ready")
	})
}

// Each start takes 1 s: the sidecar starts from 0 to 1 s, the init container from 1 to 2 s, which then runs until 7 s, and
// the regular container from 7 to 8 s. Each case deletes the pod at another of these steps. Only what runs is stopped,
// nothing more is started, and the pod ends at once.
func TestADeletionCancelsTheStart(t *testing.T) {
	for name, test := range map[string]struct {
		at      time.Duration
		stopped []string // the IDs of the containers that run at this time
	}{
		"the sidecar starts":           {at: 500 * time.Millisecond},
		"the init container runs":      {at: 3 * second, stopped: []string{"uid/init", "uid/proxy"}},
		"the regular container starts": {at: 7500 * time.Millisecond, stopped: []string{"uid/proxy"}},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(b *testbed) {
				b.rt.startsTake(second)
				b.rt.scripts["init"] = lifecycletest.Script{ExitAfter: 5 * second}
				pod := podOf(container("app"))
				pod.Spec.InitContainers = []v1.Container{sidecar("proxy"), container("init")}
				b.create(pod)
				wait(test.at)
				b.deleteWithGrace(pod, 30)
				synctest.Wait()
				var want []stop
				for _, id := range test.stopped {
					want = append(want, stop{id: id, timeout: 30, at: test.at})
				}
				require.Equal(b, want, b.sortedStops())
				require.Equal(b, test.at, b.lastNotification().at)
				require.Equal(b, v1.PodFailed, b.lastStatus().Phase)
				app := terminatedState(b, b.lastStatus(), "app")
				require.Equal(b, "ContainerStatusUnknown", app.Reason)
				require.EqualValues(b, 137, app.ExitCode)
			})
		})
	}
}
