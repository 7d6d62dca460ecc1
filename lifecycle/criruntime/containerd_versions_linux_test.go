package criruntime_test

import (
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/lifecycle/criruntime"
	"github.com/kubegrace/kubegrace/lifecycle/criruntime/containerdtest"
)

const (
	eventsMethod = "/runtime.v1.RuntimeService/GetContainerEvents"
	listMethod   = "/runtime.v1.RuntimeService/ListContainers"
)

// Exits of a runtime that sends events are noticed although it refuses every list, and
// exits of one that sends none although it refuses the stream of events.
func TestContainerdExitsAreNoticedByEventsOrByPolling(t *testing.T) {
	for name, c := range map[string]struct {
		build   func(*testing.T) containerdtest.Build
		refused string
	}{
		"containerd of PATH, polled":     {func(*testing.T) containerdtest.Build { return containerdtest.Build{} }, eventsMethod},
		"containerd 2.2, by events":      {func(t *testing.T) containerdtest.Build { return containerdtest.V22(t) }, listMethod},
		"containerd 2.2, without events": {func(t *testing.T) containerdtest.Build { return containerdtest.V22(t) }, eventsMethod},
		"containerd 2.4, by events":      {func(t *testing.T) containerdtest.Build { return containerdtest.V24(t) }, listMethod},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := c.build(t).Start(t, containerdtest.Image{Name: "obedient:1", Command: []string{"/bin/sh", "-c", obedient}})
			runtime := dial(t, server.Proxy(t, c.refused), criruntime.Options{})
			_, ids := kubelet{server.Runtime()}.runPod(t, onePod("exits", 30, func(pod *v1.Pod) {
				pod.Spec.Containers = []v1.Container{{Name: "main", Image: "obedient:1"}, {Name: "other", Image: "obedient:1"}}
			}))
			exited, other := runtime.Exited(ids[0]), runtime.Exited(ids[1])
			requireRunning(t, exited)
			require.NoError(t, runtime.StopContainer(t.Context(), ids[0], 60))
			awaitExit(t, exited)
			requireRunning(t, other)
		})
	}
}

// The stream of events is opened again when containerd is back. Lists are refused, so that only events tell of exits.
func TestContainerdSendsEventsAfterARestart(t *testing.T) {
	for name, build := range map[string]func(testing.TB) containerdtest.Build{"containerd 2.2": containerdtest.V22, "containerd 2.4": containerdtest.V24} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := build(t).Start(t, containerdtest.Image{Name: "obedient:1", Command: []string{"/bin/sh", "-c", obedient}})
			runtime, kubelet := dial(t, server.Proxy(t, listMethod), criruntime.Options{}), kubelet{server.Runtime()}
			exitIsNoticed := func(pod string) bool {
				_, ids := kubelet.runPod(t, onePod(pod, 30, func(pod *v1.Pod) { pod.Spec.Containers[0].Image = "obedient:1" }))
				exited := runtime.Exited(ids[0])
				require.NoError(t, runtime.StopContainer(t.Context(), ids[0], 60))
				select {
				case <-exited:
					return true
				case <-time.After(time.Second): // the stream may not be open yet, and the event is lost
					return false
				}
			}
			noticed := func(when string) (found bool) {
				for i := 0; i < 20 && !found; i++ {
					found = exitIsNoticed(when + "-" + strconv.Itoa(i))
				}
				return found
			}
			require.True(t, noticed("before"))
			server.Kill(t)
			require.Eventually(t, func() bool { _, _, err := runtime.Version(t.Context()); return err != nil }, waitAtMost, pollEvery)
			require.Eventually(t, func() bool { _, _, err := runtime.Version(t.Context()); return err == nil }, waitAtMost, 100*time.Millisecond)
			require.True(t, noticed("after"))
		})
	}
}
