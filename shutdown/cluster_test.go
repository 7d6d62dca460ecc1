package shutdown_test

import (
	"context"
	"errors"
	"slices"
	"sync"

	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/shutdown"
)

// cluster is a StatusFlusher that keeps the pods with their final statuses. FlushPod fails while unreachable is set.
type cluster struct {
	mu          sync.Mutex // guards all below
	unreachable bool
	final       map[string]*v1.Pod // by name
}

// PublishNode succeeds at once.
func (*cluster) PublishNode(context.Context, shutdown.NodeState) error { return nil }

// FlushPod keeps the pod, or fails while the cluster is unreachable.
func (c *cluster) FlushPod(_ context.Context, pod *v1.Pod) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.unreachable {
		return errors.New("no route to host")
	}
	if c.final == nil {
		c.final = map[string]*v1.Pod{}
	}
	c.final[pod.Name] = pod
	return nil
}

// setUnreachable makes the API server unreachable, or reachable again.
func (c *cluster) setUnreachable(unreachable bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.unreachable = unreachable
}

// flushedPods returns the names of the pods whose final statuses were accepted, sorted.
func (c *cluster) flushedPods() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var names []string
	for name := range c.final {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
