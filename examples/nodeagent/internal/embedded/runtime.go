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

// Runtime keeps scripted containers in the process. Make one with [New].
type Runtime struct {
	*lifecycletest.Runtime

	mu      sync.Mutex // guards all below; never held while anything waits
	pods    map[types.UID][]lifecycle.Container
	started map[string]time.Time // the containers of pods, by ID
	again   int                  // how many were started again, for their IDs
}

// New makes a runtime without pods.
func New() *Runtime {
	return &Runtime{
		Runtime: lifecycletest.NewRuntime(),
		pods:    map[types.UID][]lifecycle.Container{},
		started: map[string]time.Time{},
	}
}

// StartPod plays the init containers one after the other, and starts sidecars and
// main containers in the order of the manifest.
func (r *Runtime) StartPod(ctx context.Context, pod *v1.Pod) ([]lifecycle.Container, error) {
	if running, ok := r.running(pod.UID); ok {
		return running, nil
	}
	var started []lifecycle.Container
	for i, c := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
		script, err := scriptOf(pod, c.Name)
		if err != nil {
			return started, fmt.Errorf("failed to start container %s: %w", c.Name, err)
		}
		id := string(pod.UID) + "/" + c.Name
		began := time.Now()
		r.Start(id, script)
		if i >= len(pod.Spec.InitContainers) || c.RestartPolicy != nil {
			started = append(started, lifecycle.Container{Name: c.Name, ID: id})
			r.note(pod.UID, started, began)
			continue
		}
		if err := r.playInit(ctx, id, script); err != nil {
			return started, fmt.Errorf("failed to run init container %s: %w", c.Name, err)
		}
	}
	return started, nil
}

// RestartContainer plays the script of a container from its beginning.
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
	r.again++
	id := fmt.Sprintf("%s/%s/%d", pod.UID, exited.Name, r.again)
	r.Start(id, script)
	r.Remove(exited.ID)
	delete(r.started, exited.ID)
	r.started[id] = time.Now()
	running = slices.Clone(running)
	running[i].ID = id
	r.pods[pod.UID] = running
	return id, nil
}

// Adopt returns the containers of a pod that was started.
func (r *Runtime) Adopt(_ context.Context, pod *v1.Pod) ([]lifecycle.Container, bool, error) {
	running, found := r.running(pod.UID)
	return running, found, nil
}

// playInit waits for the end of a plain init container.
func (r *Runtime) playInit(ctx context.Context, id string, script lifecycletest.Script) error {
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

// StopPod forgets the containers of a pod. One that still runs is ended.
func (r *Runtime) StopPod(_ context.Context, pod *v1.Pod) error {
	running, _ := r.running(pod.UID)
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

// Close does nothing: the containers end with the process.
func (r *Runtime) Close() error { return nil }

func (r *Runtime) running(uid types.UID) ([]lifecycle.Container, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	running, ok := r.pods[uid]
	return slices.Clone(running), ok
}

// note keeps the containers of a pod, the last of which has just begun.
func (r *Runtime) note(uid types.UID, running []lifecycle.Container, began time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.pods[uid] = slices.Clone(running)
	r.started[running[len(running)-1].ID] = began
}
