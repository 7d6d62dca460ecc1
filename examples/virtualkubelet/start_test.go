package virtualkubelet_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/lifecycle/lifecycletest"
)

// starts makes each start take a while, and gives what is being started or was.
func (r *played) starts(while time.Duration) func() []string {
	var mu sync.Mutex
	var names []string
	r.start = func(ctx context.Context, name string) error {
		mu.Lock()
		names = append(names, name)
		mu.Unlock()
		select {
		case <-time.After(while):
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return func() []string {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(names)
	}
}

func TestContainersStartInOrder(t *testing.T) {
	inBubble(t, func(b *bed) {
		names := b.rt.starts(second)
		b.rt.scripts["init"] = lifecycletest.Script{ExitAfter: 5 * second}
		pod := podOf(plain("one"), plain("two"))
		pod.Spec.InitContainers = []v1.Container{sidecar("proxy"), plain("init")}
		b.create(pod)
		require.Zero(b, b.at())
		wait(7 * second)
		require.Equal(b, []string{"proxy", "init", "one"}, names())
		require.Equal(b, v1.PodPending, b.last().pod.Status.Phase)
		require.Equal(b, v1.ContainerState{}, b.last().pod.Status.ContainerStatuses[0].State)
		require.Equal(b, v1.ConditionFalse, b.last().pod.Status.Conditions[1].Status)
		wait(2 * second)
		last := b.last()
		require.Equal(b, []string{"proxy", "init", "one", "two"}, names())
		require.Equal(b, v1.PodRunning, last.pod.Status.Phase)
		require.Equal(b, v1.ConditionTrue, last.pod.Status.Conditions[1].Status)
		require.True(b, last.pod.Status.Conditions[1].LastTransitionTime.Time.Equal(b.began.Add(9*second)))
		require.Equal(b, int32(0), terminated(b, last.pod.Status, "init").ExitCode)
	})
}

func TestDeletionDuringTheStart(t *testing.T) {
	for name, test := range map[string]struct {
		at    time.Duration
		stops []stop
	}{
		"of the sidecar":           {at: second / 2},
		"in the init container":    {at: 3 * second, stops: []stop{{"uid/init", 30, 3 * second}, {"uid/proxy", 30, 3 * second}}},
		"of the regular container": {at: 7*second + second/2, stops: []stop{{"uid/proxy", 30, 7*second + second/2}}},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(b *bed) {
				b.rt.starts(second)
				b.rt.scripts["init"] = lifecycletest.Script{ExitAfter: 5 * second}
				pod := podOf(plain("app"))
				pod.Spec.InitContainers = []v1.Container{sidecar("proxy"), plain("init")}
				b.create(pod)
				wait(test.at)
				b.remove(pod, 30)
				wait(0)
				require.ElementsMatch(b, test.stops, b.stops())
				require.Equal(b, test.at, b.last().at)
				require.Equal(b, v1.PodFailed, b.last().pod.Status.Phase)
				app := terminated(b, b.last().pod.Status, "app")
				require.Equal(b, "ContainerStatusUnknown", app.Reason)
				require.Equal(b, int32(137), app.ExitCode)
			})
		})
	}
}

// A start that does not hear of the deletion is waited for, and what it brings up is
// stopped.
func TestAStartThatIsDeaf(t *testing.T) {
	inBubble(t, func(b *bed) {
		b.rt.start = func(context.Context, string) error {
			<-time.After(20 * second)
			return nil
		}
		pod := podOf(plain("app"))
		b.create(pod)
		b.remove(pod, 10)
		wait(15 * second)
		require.ErrorContains(b, b.DeletePod(b.Context(), pod), "its start had not returned when the grace was over")
		wait(10 * second)
		require.Equal(b, []stop{{"uid/app", 2, 20 * second}}, b.stops())
		require.Equal(b, 20*second, b.last().at)
		require.Equal(b, "Completed", terminated(b, b.last().pod.Status, "app").Reason)
	})
}

func TestAPodThatCannotStartFails(t *testing.T) {
	inBubble(t, func(b *bed) {
		b.rt.start = func(_ context.Context, name string) error {
			if name == "app" {
				return errors.New("no such image")
			}
			return nil
		}
		pod := podOf(plain("first"), plain("app"))
		b.create(pod)
		status := b.last().pod.Status
		require.Equal(b, v1.PodFailed, status.Phase)
		app := terminated(b, status, "app")
		require.Equal(b, "StartError", app.Reason)
		require.Equal(b, int32(128), app.ExitCode)
		require.Contains(b, app.Message, "no such image")
		require.Equal(b, []stop{{"uid/first", 30, 0}}, b.stops())

		_, err := b.GetPod(b.Context(), "ns", "pod")
		require.NoError(b, err, "it is kept until it is deleted")
		b.remove(pod, 30)
		wait(0)
		_, err = b.GetPod(b.Context(), "ns", "pod")
		require.True(b, errdefs.IsNotFound(err))
	})
}

func TestAnInitContainerThatFails(t *testing.T) {
	inBubble(t, func(b *bed) {
		b.rt.scripts["init"] = lifecycletest.Script{ExitAfter: second}
		b.rt.codes["init"] = 3
		pod := podOf(plain("app"))
		pod.Spec.InitContainers = []v1.Container{plain("init")}
		b.create(pod)
		wait(second)
		status := b.last().pod.Status
		require.Equal(b, v1.PodFailed, status.Phase)
		require.Equal(b, int32(3), terminated(b, status, "init").ExitCode)
		require.Equal(b, "Error", terminated(b, status, "init").Reason)
	})
}

func TestAPostStartHookThatFails(t *testing.T) {
	inBubble(t, func(b *bed) {
		b.rt.scripts["app"] = lifecycletest.Script{Exec: func(context.Context, []string) ([]byte, error) { return nil, errors.New("no") }}
		b.rt.codes["app"] = 143
		app := running("app")
		app.Lifecycle.PostStart, app.Lifecycle.PreStop = app.Lifecycle.PreStop, nil
		b.create(podOf(app))
		require.Equal(b, v1.PodFailed, b.last().pod.Status.Phase)
		require.Equal(b, "FailedPostStartHook", b.events.All()[0].Reason)
	})
}
