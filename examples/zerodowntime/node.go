package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/lifecycle"
)

// node runs containers and is the runtime of a [lifecycle.Terminator]. Each container is a web server in this
// process. It treats SIGTERM as most web servers do: it stops listening at once, answers the requests that it
// has accepted, and ends.
type node struct {
	network network
	serving errgroup.Group // has a goroutine for each container

	mu      sync.Mutex              // guards running
	running map[string]*http.Server // by container ID
}

// newNode returns a node without containers.
func newNode(network network) *node {
	return &node{network: network, running: map[string]*http.Server{}}
}

// containerID returns the ID of a container. A pod's name and a container's name are enough, because no
// container is started twice.
func containerID(pod, container string) string { return pod + "/" + container }

// start starts a container whose web server has this handler, and returns its address.
func (n *node) start(ctx context.Context, id string, handler http.Handler) (string, error) {
	listener, err := n.network.listen(ctx)
	if err != nil {
		return "", fmt.Errorf("failed to start %s: %w", id, err)
	}
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second}
	n.serving.Go(func() error {
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			return fmt.Errorf("%s failed: %w", id, err)
		}
		return nil
	})
	n.mu.Lock()
	defer n.mu.Unlock()
	n.running[id] = server
	return listener.Addr().String(), nil
}

// find returns the web server of a running container; nil: no container with this ID runs.
func (n *node) find(id string) *http.Server {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.running[id]
}

// Running lists the running containers of a pod.
func (n *node) Running(_ context.Context, pod *v1.Pod) ([]lifecycle.Container, error) {
	var running []lifecycle.Container
	for _, c := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
		if id := containerID(pod.Name, c.Name); n.find(id) != nil {
			running = append(running, lifecycle.Container{Name: c.Name, ID: id})
		}
	}
	return running, nil
}

// StopContainer stops a container as SIGTERM does: it returns when the web server has answered all requests that
// it had accepted. That takes far less than any timeout, so nothing is killed.
func (n *node) StopContainer(ctx context.Context, id string, _ int64) error {
	server := n.find(id)
	if server == nil {
		return fmt.Errorf("%s: %w", id, lifecycle.ErrContainerNotFound)
	}
	if err := server.Shutdown(ctx); err != nil {
		return fmt.Errorf("failed to stop %s: %w", id, err)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.running, id)
	return nil
}

// close kills the containers that still run, waits until all have ended, and returns their errors.
func (n *node) close() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	var errs []error
	for _, id := range slices.Sorted(maps.Keys(n.running)) {
		errs = append(errs, n.running[id].Close())
	}
	clear(n.running)
	return errors.Join(append(errs, n.serving.Wait())...)
}
