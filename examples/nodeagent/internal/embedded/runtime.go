package embedded

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubegrace/kubegrace/examples/nodeagent/internal/podruntime"
	"github.com/kubegrace/kubegrace/lifecycle"
	"github.com/kubegrace/kubegrace/lifecycle/lifecycletest"
)

var (
	_ podruntime.Runtime = (*Runtime)(nil)
	_ podruntime.Adopter = (*Runtime)(nil)
)

// Runtime plays pods in the process of the agent. [New] makes one.
type Runtime struct {
	*lifecycletest.Runtime

	mu       sync.Mutex // guards what follows; never held while anything waits
	pods     map[types.UID][]lifecycle.Container
	started  map[string]time.Time // when the containers in pods were started, by ID
	restarts int                  // how often a container was restarted; part of the new ID
}

// New makes a runtime without pods.
func New() *Runtime {
	return &Runtime{
		Runtime: lifecycletest.NewRuntime(),
		pods:    map[types.UID][]lifecycle.Container{},
		started: map[string]time.Time{},
	}
}

// StartPod plays the init containers one after the other, and then starts sidecars and
// main containers in the order of the manifest. If it fails, it returns the containers
// that run; StopPod removes them.
func (r *Runtime) StartPod(ctx context.Context, pod *v1.Pod) ([]lifecycle.Container, error) {
	if running, ok := r.runningContainers(pod.UID); ok {
		return running, nil
	}
	var started []lifecycle.Container
	for i, c := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
		script, err := scriptOf(pod, c.Name)
		if err != nil {
			return started, fmt.Errorf("failed to start container %s: %w", c.Name, err)
		}
		id := string(pod.UID) + "/" + c.Name
		startedAt := time.Now()
		r.Start(id, script)
		if i >= len(pod.Spec.InitContainers) || c.RestartPolicy != nil {
			started = append(started, lifecycle.Container{Name: c.Name, ID: id})
			r.addRunning(pod.UID, started, startedAt)
			continue
		}
		if err := r.waitForInitContainer(ctx, id, script); err != nil {
			return started, fmt.Errorf("failed to run init container %s: %w", c.Name, err)
		}
	}
	return started, nil
}

// RestartContainer starts the script of a container from the beginning, under a new ID.
func (r *Runtime) RestartContainer(_ context.Context, pod *v1.Pod, exited lifecycle.Container) (string, error) {
	script, err := scriptOf(pod, exited.Name)
	if err != nil {
		return "", err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	running := r.pods[pod.UID]
	i := slices.IndexFunc(running, func(c lifecycle.Container) bool { return c.ID == exited.ID })
	if i < 0 {
		return "", fmt.Errorf("failed to start container %s again: %w", exited.Name, lifecycle.ErrContainerNotFound)
	}
	r.restarts++
	id := fmt.Sprintf("%s/%s/%d", pod.UID, exited.Name, r.restarts)
	r.Start(id, script)
	r.Remove(exited.ID)
	delete(r.started, exited.ID)
	r.started[id] = time.Now()
	running = slices.Clone(running)
	running[i].ID = id
	r.pods[pod.UID] = running
	return id, nil
}

// Adopt returns the containers of a pod that this Runtime has started. It finds none
// after a restart of the agent, because they ended with the process.
func (r *Runtime) Adopt(_ context.Context, pod *v1.Pod) ([]lifecycle.Container, bool, error) {
	running, found := r.runningContainers(pod.UID)
	return running, found, nil
}

// waitForInitContainer returns when a plain init container has exited, which is at once
// unless its script says that it exits by itself.
func (r *Runtime) waitForInitContainer(ctx context.Context, id string, script lifecycletest.Script) error {
	defer r.Remove(id)
	if script.ExitAfter <= 0 {
		return nil
	}
	select {
	case <-r.Exited(id):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// StopPod ends the containers of a pod that still run, and forgets the pod.
func (r *Runtime) StopPod(_ context.Context, pod *v1.Pod) error {
	running, _ := r.runningContainers(pod.UID)
	for _, c := range running {
		r.Remove(c.ID)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.pods, pod.UID)
	for _, c := range running {
		delete(r.started, c.ID)
	}
	return nil
}

// Close does nothing. The containers end with the process.
func (r *Runtime) Close() error { return nil }

func (r *Runtime) runningContainers(uid types.UID) ([]lifecycle.Container, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	running, ok := r.pods[uid]
	return slices.Clone(running), ok
}

// addRunning records the containers of a pod, the last of which was started at startedAt.
func (r *Runtime) addRunning(uid types.UID, running []lifecycle.Container, startedAt time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.pods[uid] = slices.Clone(running)
	r.started[running[len(running)-1].ID] = startedAt
}
