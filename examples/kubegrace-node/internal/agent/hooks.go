package agent

import (
	"context"
	"maps"
	"slices"
	"sync"

	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/examples/kubegrace-node/internal/statefile"
	"github.com/kubegrace/kubegrace/lifecycle"
)

// hooksFile has the IDs of the containers whose preStop hook has run in this shutdown.
const hooksFile = statefile.Prefix + "hooks.json"

// hooks are the preStop hooks that have run in this shutdown, so that the agent that follows does not
// run them again. One that was cut off because its agent has died is not among them.
type hooks struct {
	stateDir string

	writing sync.Mutex // held while the file is changed
	mu      sync.Mutex // guards ran; never held while anything waits
	ran     map[string]bool
	written int // how many of ran are in the file; guarded by writing
}

func newHooks(stateDir string) (*hooks, error) {
	ids, err := statefile.Load[[]string](stateDir, hooksFile)
	h := &hooks{stateDir: stateDir, ran: map[string]bool{}, written: len(ids)}
	for _, id := range ids {
		h.ran[id] = true
	}
	return h, err
}

// add records that the hook of a container has run, and returns when that is on the disk. Several that
// end at the same moment are written together.
func (h *hooks) add(id string) error {
	h.mu.Lock()
	h.ran[id] = true
	h.mu.Unlock()
	h.writing.Lock()
	defer h.writing.Unlock()
	h.mu.Lock()
	ids := slices.Sorted(maps.Keys(h.ran))
	h.mu.Unlock()
	if len(ids) == h.written {
		return nil
	}
	err := statefile.Store(h.stateDir, hooksFile, ids)
	if err == nil {
		h.written = len(ids)
	}
	return err
}

// forget forgets all: the shutdown is over.
func (h *hooks) forget() error {
	h.writing.Lock()
	defer h.writing.Unlock()
	h.mu.Lock()
	clear(h.ran)
	h.mu.Unlock()
	if h.written == 0 {
		return nil
	}
	h.written = 0
	return statefile.Remove(h.stateDir, hooksFile)
}

// hookedRuntime is a runtime that lists containers with what is known of their hooks.
type hookedRuntime struct {
	Runtime
	hooks *hooks
}

// Running lists the containers of a pod that run.
func (r hookedRuntime) Running(ctx context.Context, pod *v1.Pod) ([]lifecycle.Container, error) {
	containers, err := r.Runtime.Running(ctx, pod)
	r.hooks.mu.Lock()
	defer r.hooks.mu.Unlock()
	for i, c := range containers {
		containers[i].PreStopDone = r.hooks.ran[c.ID]
	}
	return containers, err
}
