package criruntime

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/klog/v2"
)

const (
	// pollInterval is the time between two lists of the containers.
	pollInterval = 100 * time.Millisecond
	// listTimeout bounds one list, so that polling goes on after an answer that never comes.
	listTimeout = 5 * time.Second
)

// exitWatcher notices the exits of containers that somebody waits for. One goroutine lists the
// containers of the runtime while there are any.
type exitWatcher struct {
	ctx    context.Context
	cancel context.CancelFunc
	list   func(context.Context) ([]*runtimeapi.Container, error) // all containers of the runtime, in every state

	polling sync.WaitGroup
	mu      sync.Mutex
	watched map[string]chan struct{} // by container ID; closed and deleted on exit
}

// newExitWatcher returns a watcher that uses the logger of ctx. The end of ctx does not end it.
func newExitWatcher(ctx context.Context, list func(context.Context) ([]*runtimeapi.Container, error)) *exitWatcher {
	w := &exitWatcher{list: list, watched: map[string]chan struct{}{}}
	w.ctx, w.cancel = context.WithCancel(context.WithoutCancel(ctx))
	return w
}

// close ends the watcher and waits for its goroutine. Channels that are open stay open.
func (w *exitWatcher) close() {
	w.mu.Lock()
	w.cancel()
	w.mu.Unlock()
	w.polling.Wait()
}

// watch returns the channel that is closed when a container exits, or nil after close. All callers
// get the same channel for one container.
func (w *exitWatcher) watch(containerID string) <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ctx.Err() != nil {
		return nil
	}
	exited := w.watched[containerID]
	if exited == nil {
		exited = make(chan struct{})
		w.watched[containerID] = exited
		if len(w.watched) == 1 {
			w.polling.Add(1)
			go w.poll()
		}
	}
	return exited
}

// poll lists the containers until none is watched, or the watcher is closed. It logs the first of
// several failures in a row.
func (w *exitWatcher) poll() {
	defer w.polling.Done()
	for failed := false; w.pollOnce(&failed); {
		select {
		case <-w.ctx.Done():
			return
		case <-time.After(pollInterval):
		}
	}
}

// pollOnce lists the containers once, and reports whether any is still watched. A container that has
// exited, or that the list lacks, is watched no longer. Those that are watched are taken before the
// list: one that is created after the list was made would count as missing.
func (w *exitWatcher) pollOnce(failed *bool) bool {
	ids := w.watchedIDs()
	ctx, cancel := context.WithTimeout(w.ctx, listTimeout)
	defer cancel()
	containers, err := w.list(ctx)
	if err != nil && !*failed && w.ctx.Err() == nil {
		klog.FromContext(w.ctx).Error(err, "Failed to list containers, their exits go unnoticed until it works again")
	}
	if *failed = err != nil; *failed {
		return true
	}
	alive := make(map[string]bool, len(containers))
	for _, container := range containers {
		alive[container.GetId()] = container.GetState() != runtimeapi.ContainerState_CONTAINER_EXITED
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, id := range ids {
		if !alive[id] {
			close(w.watched[id])
			delete(w.watched, id)
		}
	}
	return len(w.watched) > 0
}

// watchedIDs returns the IDs of the containers that are watched.
func (w *exitWatcher) watchedIDs() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Collect(maps.Keys(w.watched))
}
