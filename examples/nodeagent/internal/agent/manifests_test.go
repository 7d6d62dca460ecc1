package agent_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/kubegrace/kubegrace/examples/nodeagent/internal/agent"
	"github.com/kubegrace/kubegrace/examples/nodeagent/internal/embedded"
	"github.com/kubegrace/kubegrace/examples/nodeagent/internal/podruntime"
	"github.com/kubegrace/kubegrace/lifecycle"
)

// manifests are what agent.Manifests.Load returns.
type manifests struct {
	changed chan struct{}
	pods    []*v1.Pod
	err     error
}

// followManifests makes the agent follow manifests. At first they define its pods.
func (b *testbed) followManifests() *manifests {
	f := &manifests{changed: make(chan struct{}), pods: slices.Clone(b.opts.Pods)}
	b.opts.Manifests = agent.Manifests{Changed: f.changed, Load: func() ([]*v1.Pod, error) { return f.pods, f.err }}
	return f
}

// change replaces the pods, and waits until the view shows what the agent does.
func (f *manifests) change(b *testbed, pods ...*v1.Pod) {
	f.pods = pods
	f.changed <- struct{}{}
	b.advance(200 * time.Millisecond) // the view is updated ten times a second
}

func TestPodsFollowTheirManifests(t *testing.T) {
	inBubble(t, func(t *testing.T, b *testbed) {
		web, db := b.addPod("web", 0, "exits 2s after TERM"), b.addPod("db", 1000, "exits 1s after TERM")
		f := b.followManifests()
		b.run()
		require.Contains(t, b.output(), "2 of 2 pods run.")

		cache := b.addPod("cache", 0, "")
		f.change(b, web, db, cache)
		require.Empty(t, b.stopOrder(), "pods whose manifests have not changed run on")
		require.Contains(t, b.output(), "ns/cache                 runs")

		changed := web.DeepCopy()
		changed.Spec.TerminationGracePeriodSeconds = ptr.To(int64(7))
		f.change(b, changed, db, cache)
		require.Equal(t, "web/app", b.stopOrder(), "a pod with a changed manifest is terminated")
		b.advance(1700 * time.Millisecond)
		require.NotContains(t, b.output(), "ns/web                   gone")
		require.Zero(t, restartsShown(b, "ns/web"), "it is not started before it has ended")
		b.advance(400 * time.Millisecond)
		require.Equal(t, 1, restartsShown(b, "ns/web"))

		f.change(b, changed, cache)
		b.advance(2 * time.Second)
		require.Equal(t, "web/app db/app", b.stopOrder(), "a pod without a manifest is terminated")

		f.err = errors.New("half a file")
		f.change(b)
		require.Equal(t, "web/app db/app", b.stopOrder(), "a folder that cannot be read changes nothing")
		f.err = nil

		require.NoError(t, b.terminate())
		require.Contains(t, b.output(), "2 of 2 pods stopped in time.")
		require.Contains(t, b.output(), " ns/web           0      0+      7 s")
	})
}

// restartsShown returns how often the output says that a pod runs, without the first time.
func restartsShown(b *testbed, name string) int {
	n := 0
	for line := range strings.SplitSeq(b.output(), "\n") {
		if line == name+"                   runs" {
			n++
		}
	}
	return n - 1
}

// In a shutdown a changed manifest neither starts nor stops a pod.
func TestManifestsAreNotFollowedInAShutdown(t *testing.T) {
	inBubble(t, func(t *testing.T, b *testbed) {
		web := b.addPod("web", 0, "exits 3s after TERM")
		b.addPod("db", 1000, "")
		f := b.followManifests()
		b.run()
		b.signals <- syscall.SIGTERM
		b.advance(time.Second)
		f.change(b, web, b.addPod("new", 0, ""))
		require.Equal(t, "web/app", b.stopOrder(), "a pod whose manifest is gone is not stopped before its bucket")
		require.NoError(t, b.waitEnd())
		require.Equal(t, "web/app db/app", b.stopOrder())
	})
}

// The mirror pod of a changed manifest is replaced, that of a removed one is deleted.
func TestMirrorPodsFollowTheManifests(t *testing.T) {
	inBubble(t, func(t *testing.T, b *testbed) {
		b.addPod("web", 0, "exits 1s after TERM")
		b.addPod("db", 0, "exits 1s after TERM")
		server := b.withAPIServer()
		f := b.followManifests()
		b.run()
		b.advance(time.Second)
		before := b.mirrorOf(server, "web").Annotations[v1.MirrorPodAnnotationKey]

		changed := f.pods[0].DeepCopy()
		changed.Spec.TerminationGracePeriodSeconds = ptr.To(int64(7))
		changed.Annotations["kubernetes.io/config.hash"] = "another"
		f.change(b, changed)
		b.advance(20 * time.Second)
		mirror := b.mirrorOf(server, "web")
		require.NotEqual(t, before, mirror.Annotations[v1.MirrorPodAnnotationKey])
		require.EqualValues(t, 7, *mirror.Spec.TerminationGracePeriodSeconds)
		require.Equal(t, v1.PodRunning, mirror.Status.Phase)
		_, err := server.CoreV1().Pods("ns").Get(t.Context(), "db-node", metav1.GetOptions{})
		require.True(t, apierrors.IsNotFound(err), "%v", err)
		require.NoError(t, b.terminate())
	})
}

// A manifest that is removed while its pod is being started stops the pod.
func TestManifestsAreFollowedWhilePodsAreStarting(t *testing.T) {
	inBubble(t, func(t *testing.T, b *testbed) {
		slow := b.addPod("slow", 0, "")
		slow.Spec.InitContainers = []v1.Container{{Name: "init"}}
		slow.Annotations["nodeagent.kubegrace.dev/script.init"] = "exits by itself after 1h"
		f := b.followManifests()
		b.run()
		f.change(b, b.addPod("web", 0, ""))
		b.advance(time.Second)
		require.Contains(t, b.output(), "ns/slow: its manifest is gone, it is stopped.")
		require.Contains(t, b.output(), "ns/web                   runs")
		require.NoError(t, b.terminate())
	})
}

// outdatedRuntime is a runtime whose running pods were started from older manifests.
type outdatedRuntime struct{ *embedded.Runtime }

func (r outdatedRuntime) Adopt(ctx context.Context, pod *v1.Pod) ([]lifecycle.Container, bool, error) {
	containers, found, err := r.Runtime.Adopt(ctx, pod)
	return containers, found, errors.Join(err, podruntime.ErrChanged)
}

// A pod whose manifest was changed while no agent ran is replaced at the first change of
// the manifests.
func TestOutdatedPodsAreReplaced(t *testing.T) {
	inBubble(t, func(t *testing.T, b *testbed) {
		web := b.addPod("web", 0, "exits 1s after TERM")
		_, err := b.runtime.StartPod(t.Context(), web)
		require.NoError(t, err)
		b.opts.Runtime = outdatedRuntime{b.runtime}
		f := b.followManifests()
		b.run()
		b.advance(time.Minute)
		require.Empty(t, b.stopOrder())
		f.change(b, web)
		b.advance(2 * time.Second)
		require.Equal(t, "web/app", b.stopOrder())
		require.Contains(t, b.output(), "ns/web: its manifest has changed, it is stopped and then started again.")
		f.change(b, web)
		require.Equal(t, "web/app", b.stopOrder(), "it is replaced once")
		require.NoError(t, b.terminate())
		require.Contains(t, b.output(), "1 of 1 pod stopped in time.")
	})
}
