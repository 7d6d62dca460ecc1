package virtualkubelet_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/lifecycle"
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

func TestRefusedPods(t *testing.T) {
	inBubble(t, func(b *bed) {
		b.rt.scripts["app"] = lifecycletest.Script{IgnoreTerm: true}
		pod := podOf(plain("app"))
		err := b.CreatePod(b.Context(), deleted(pod, 30, time.Now()))
		require.ErrorIs(b, err, lifecycle.ErrTerminating)
		require.True(b, errdefs.IsInvalidInput(err))

		b.create(pod)
		require.NoError(b, b.CreatePod(b.Context(), pod), "it runs already")
		b.remove(pod, 30)
		err = b.CreatePod(b.Context(), pod)
		require.ErrorIs(b, err, lifecycle.ErrTerminating)
		require.EqualError(b, err, "pod ns/pod is refused: pod is being terminated")
		require.Len(b, b.rt.Stops(), 0)
		wait(30 * second)

		require.NoError(b, b.Close(b.Context()))
		err = b.CreatePod(b.Context(), podOf(plain("app")))
		require.ErrorIs(b, err, lifecycle.AgentStopping)
		require.True(b, errdefs.IsInvalidInput(err))
	})
}

func TestANewPodOfTheSameNameWaits(t *testing.T) {
	for name, test := range map[string]struct {
		announced bool
		add       func(*bed, *v1.Pod) error
		ended     time.Duration // of the former one: its stop has 2 s, or the time that it needs
	}{
		"by force, created": {true, func(b *bed, pod *v1.Pod) error { return b.CreatePod(b.Context(), pod) }, 3 * second},
		"by force, updated": {true, func(b *bed, pod *v1.Pod) error { return b.UpdatePod(b.Context(), pod) }, 3 * second},
		"unheard, created":  {false, func(b *bed, pod *v1.Pod) error { return b.CreatePod(b.Context(), pod) }, 10 * second},
		"unheard, updated":  {false, func(b *bed, pod *v1.Pod) error { return b.UpdatePod(b.Context(), pod) }, 10 * second},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(b *bed) {
				names := b.rt.starts(0)
				b.rt.scripts["app"] = lifecycletest.Script{ExitAfterTerm: 9 * second}
				former, pod := podOf(plain("app")), podOf(plain("app"))
				pod.UID = "new"
				b.create(former)
				if test.announced {
					b.remove(former, 30)
				}
				wait(second)
				require.NoError(b, test.add(b, pod))
				synctest.Wait()
				require.Len(b, names(), 1)
				require.Equal(b, v1.PodPending, b.last().pod.Status.Phase)
				wait(10 * second)
				require.Equal(b, test.ended, b.rt.Exits()[0].At.Sub(b.began))
				require.Len(b, names(), 2)
				require.EqualValues(b, "new", b.last().pod.UID)
				require.Equal(b, v1.PodRunning, b.last().pod.Status.Phase)
				require.Len(b, b.Pods(), 1)
			})
		})
	}
}
