//go:build go1.25

package virtualkubelet_test

import (
	"context"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/lifecycle/virtualkubelet"
)

// noIDRuntime is a runtime that returns no IDs.
type noIDRuntime struct {
	*scriptedRuntime

	mu    sync.Mutex
	asked []string // IDs passed to Exited
}

func (*noIDRuntime) StartContainer(context.Context, *v1.Pod, *v1.Container) (string, error) {
	return "", nil
}

// Exited notes for which IDs it is called.
func (n *noIDRuntime) Exited(id string) <-chan struct{} {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.asked = append(n.asked, id)
	return n.scriptedRuntime.Exited(id)
}

// A StartContainer that returns no ID and no error is a bug of the Runtime. The pod fails, instead of running
// with a container that nobody could stop.
func TestAContainerWithoutAnIDHasNotStarted(t *testing.T) {
	rt := &noIDRuntime{}
	inBubble(t, func(b *testbed) {
		b.create(podOf(plain("app")))
		wait(second)
		status := b.last().pod.Status
		require.Equal(b, v1.PodFailed, status.Phase)
		require.Equal(b, "StartError", terminated(b, status, "app").Reason)
		require.Empty(b, rt.asked, "Exited is not called without an ID")
	}, func(o *virtualkubelet.Options) {
		rt.scriptedRuntime = o.Runtime.(*scriptedRuntime)
		o.Runtime = rt
	})
}
