package shutdown

import (
	"context"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/shutdown/internal/node"
)

// noKiller is never called.
type noKiller struct{ PodKiller }

// Embedder code is called after the step that calls it. OnReport of a cancelled shutdown, for example, must not see in
// ShutdownStatus that the shutdown is still under way.
func TestACallBeginsAfterItsStep(t *testing.T) {
	noPods := func() []*v1.Pod { return nil }
	m, err := NewManager(Options{ListPods: ListPodsFunc(noPods, nil), Killer: noKiller{}})
	require.NoError(t, err)
	called := make(chan struct{})

	m.shell.mu.Lock() // a step is under way
	m.shell.start(node.Effect{}, "a call", func(context.Context) error {
		close(called)
		return nil
	}, func(answer) node.Input { return nil })
	for range 1000 {
		runtime.Gosched() // the goroutine of the call runs as far as it can
	}
	select {
	case <-called:
		require.Fail(t, "the call has begun during the step")
	default:
	}
	m.shell.mu.Unlock()
	<-called
}
