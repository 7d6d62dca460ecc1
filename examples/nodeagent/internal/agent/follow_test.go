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

// files are manifests that change.
type files struct {
	changed chan struct{}
	pods    []*v1.Pod
	err     error
}

// follows makes an agent go by manifests, which are its pods at first.
func (b *bench) follows() *files {
	f := &files{changed: make(chan struct{}), pods: slices.Clone(b.opts.Pods)}
	b.opts.Manifests = agent.Manifests{Changed: f.changed, Load: func() ([]*v1.Pod, error) { return f.pods, f.err }}
	return f
}

// change has the agent look at them.
func (f *files) change(b *bench, pods ...*v1.Pod) {
	f.pods = pods
	f.changed <- struct{}{}
	b.pass(200 * time.Millisecond) // the view is brought up to date ten times a second
}

func TestPodsFollowTheirManifests(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bench) {
		web, db := b.pod("web", 0, "exits 2s after TERM"), b.pod("db", 1000, "exits 1s after TERM")
		f := b.follows()
		b.run()
		require.Contains(t, b.output(), "2 of 2 pods run.")

		cache := b.pod("cache", 0, "")
		f.change(b, web, db, cache)
		require.Empty(t, b.order(), "what has not changed runs on")
		require.Contains(t, b.output(), "ns/cache                 runs")

		changed := web.DeepCopy()
		changed.Spec.TerminationGracePeriodSeconds = ptr.To(int64(7))
		f.change(b, changed, db, cache)
		require.Equal(t, "web/app", b.order(), "a changed one is terminated")
		b.pass(1700 * time.Millisecond)
		require.NotContains(t, b.output(), "ns/web                   gone")
		require.Zero(t, started(b, "ns/web"), "and not started before it has ended")
		b.pass(400 * time.Millisecond)
		require.Equal(t, 1, started(b, "ns/web"))

		f.change(b, changed, cache)
		b.pass(2 * time.Second)
		require.Equal(t, "web/app db/app", b.order(), "one that is gone is terminated")

		f.err = errors.New("half a file")
		f.change(b)
		require.Equal(t, "web/app db/app", b.order(), "a folder that cannot be read changes nothing")
		f.err = nil

		b.signals <- syscall.SIGTERM
		require.NoError(t, b.end())
		require.Contains(t, b.output(), "2 of 2 pods stopped in time.")
		require.Contains(t, b.output(), " ns/web           0      0+      7 s")
	})
}

// started is how often it was said that a pod runs after something has changed.
func started(b *bench, name string) int {
	n := 0
	for line := range strings.SplitSeq(b.output(), "\n") {
		if line == name+"                   runs" {
			n++
		}
	}
	return n - 1 // the first time was the start of the agent
}

// In a shutdown nothing is started, and the shutdown alone decides when a pod is stopped.
func TestManifestsAreNotFollowedInAShutdown(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bench) {
		web := b.pod("web", 0, "exits 3s after TERM")
		b.pod("db", 1000, "")
		f := b.follows()
		b.run()
		b.signals <- syscall.SIGTERM
		b.pass(time.Second)
		f.change(b, web, b.pod("new", 0, ""))
		require.Equal(t, "web/app", b.order(), "the turn of a pod has not come because its manifest has gone")
		require.NoError(t, b.end())
		require.Equal(t, "web/app db/app", b.order())
	})
}

// The mirror of a changed pod is that of its new manifest, and one of a pod that is gone
// is removed.
func TestMirrorsFollowTheManifests(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bench) {
		b.pod("web", 0, "exits 1s after TERM")
		b.pod("db", 0, "exits 1s after TERM")
		server := b.withAPIServer()
		f := b.follows()
		b.run()
		b.pass(time.Second)
		before := b.mirrorOf(server, "web").Annotations[v1.MirrorPodAnnotationKey]

		changed := f.pods[0].DeepCopy()
		changed.Spec.TerminationGracePeriodSeconds = ptr.To(int64(7))
		changed.Annotations["kubernetes.io/config.hash"] = "another"
		f.change(b, changed)
		b.pass(20 * time.Second)
		mirror := b.mirrorOf(server, "web")
		require.NotEqual(t, before, mirror.Annotations[v1.MirrorPodAnnotationKey])
		require.EqualValues(t, 7, *mirror.Spec.TerminationGracePeriodSeconds)
		require.Equal(t, v1.PodRunning, mirror.Status.Phase)
		_, err := server.CoreV1().Pods("ns").Get(t.Context(), "db-node", metav1.GetOptions{})
		require.True(t, apierrors.IsNotFound(err), "%v", err)
		b.signals <- syscall.SIGTERM
		require.NoError(t, b.end())
	})
}

// What is started once its turn comes must not be what is not wanted any more.
func TestPodsThatAreStillStartingAreFollowed(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bench) {
		slow := b.pod("slow", 0, "")
		slow.Spec.InitContainers = []v1.Container{{Name: "init"}}
		slow.Annotations["nodeagent.kubegrace.dev/script.init"] = "exits by itself after 1h"
		f := b.follows()
		b.run()
		f.change(b, b.pod("web", 0, ""))
		b.pass(time.Second)
		require.Contains(t, b.output(), "ns/slow: its manifest is gone, it is stopped.")
		require.Contains(t, b.output(), "ns/web                   runs")
		b.signals <- syscall.SIGTERM
		require.NoError(t, b.end())
	})
}

// outdated finds what runs to be that of another manifest.
type outdated struct{ *embedded.Runtime }

// Adopt gives the containers of the pod.
func (o outdated) Adopt(ctx context.Context, pod *v1.Pod) ([]lifecycle.Container, bool, error) {
	containers, found, err := o.Runtime.Adopt(ctx, pod)
	return containers, found, errors.Join(err, podruntime.ErrChanged)
}

// A manifest was changed while the agent was away: the pod runs until the first look.
func TestPodsThatAnotherManifestHasStartedAreReplaced(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bench) {
		web := b.pod("web", 0, "exits 1s after TERM")
		_, err := b.runtime.StartPod(t.Context(), web)
		require.NoError(t, err)
		b.opts.Runtime = outdated{b.runtime}
		f := b.follows()
		b.run()
		b.pass(time.Minute)
		require.Empty(t, b.order())
		f.change(b, web)
		b.pass(2 * time.Second)
		require.Equal(t, "web/app", b.order())
		require.Contains(t, b.output(), "ns/web: its manifest has changed, it is stopped and then started again.")
		f.change(b, web)
		require.Equal(t, "web/app", b.order(), "once")
		b.signals <- syscall.SIGTERM
		require.NoError(t, b.end())
		require.Contains(t, b.output(), "1 of 1 pod stopped in time.")
	})
}
