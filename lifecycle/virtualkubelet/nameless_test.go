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

// nameless is a runtime that returns no IDs.
type nameless struct {
	*scriptedRuntime

	mu    sync.Mutex
	asked []string // of whose exit
}

func (*nameless) StartContainer(context.Context, *v1.Pod, *v1.Container) (string, error) {
	return "", nil
}

func (n *nameless) Exited(id string) <-chan struct{} {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.asked = append(n.asked, id)
	return n.scriptedRuntime.Exited(id)
}

func TestAContainerWithoutAnIDHasNotStarted(t *testing.T) {
	rt := &nameless{}
	inBubble(t, func(b *bed) {
		b.create(podOf(plain("app")))
		wait(second)
		status := b.last().pod.Status
		require.Equal(b, v1.PodFailed, status.Phase)
		require.Equal(b, "StartError", terminated(b, status, "app").Reason)
		require.Empty(b, rt.asked, "nobody asks for the exit of no container")
	}, func(o *virtualkubelet.Options) {
		rt.scriptedRuntime = o.Runtime.(*scriptedRuntime)
		o.Runtime = rt
	})
}
