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
	// pollInterval is the pause between two lists of the containers. The kubelet lists them as often (its PLEG).
	pollInterval = time.Second
	// listTimeout bounds one list, so that polling continues if an answer is lost.
	listTimeout = 5 * time.Second
)

// exitWatcher detects the exits of watched containers. While any container is watched, one goroutine lists the
// runtime's containers every pollInterval. CRI's events would be faster, but not every runtime has them.
type exitWatcher struct {
	ctx    context.Context
	cancel context.CancelFunc
	list   func(context.Context) ([]*runtimeapi.Container, error) // all containers, in every state

	polling sync.WaitGroup
	mu      sync.Mutex
	watched map[string]chan struct{} // by container ID; closed and deleted on exit
}

// newExitWatcher returns a watcher that runs until close. Of ctx it uses only the values, such as the logger.
func newExitWatcher(ctx context.Context, list func(context.Context) ([]*runtimeapi.Container, error)) *exitWatcher {
	w := &exitWatcher{list: list, watched: map[string]chan struct{}{}}
	w.ctx, w.cancel = context.WithCancel(context.WithoutCancel(ctx))
	return w
}

// close stops the watcher and waits for its goroutine. The channels of containers that have not exited
// stay open.
func (w *exitWatcher) close() {
	w.mu.Lock()
	w.cancel()
	w.mu.Unlock()
	w.polling.Wait()
}

// watch returns a channel that is closed when the container exits, or nil after close. All calls for one
// container return the same channel.
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
		if len(w.watched) == 1 { // no container was watched before, so no goroutine polls
			w.polling.Add(1)
			go w.poll()
		}
	}
	return exited
}

// poll lists the containers until none is watched or the watcher is closed. Of several failures in a row
// it logs the first.
func (w *exitWatcher) poll() {
	defer w.polling.Done()
	hasFailed := false
	for w.ctx.Err() == nil {
		isIdle, err := w.pollOnce()
		if isIdle {
			return
		}
		if err != nil && !hasFailed && w.ctx.Err() == nil {
			klog.FromContext(w.ctx).Error(err, "Failed to list containers, exits are not detected until the runtime answers")
		}
		hasFailed = err != nil
		select {
		case <-w.ctx.Done():
		case <-time.After(pollInterval):
		}
	}
}

// pollOnce lists the containers once, and closes the channels of those that have exited or are no longer
// listed. isIdle says that no container is watched any more: poll must then return, because the next call of watch
// starts it again.
func (w *exitWatcher) pollOnce() (isIdle bool, err error) {
	ids := w.watchedIDs() // read before the list: a container that is created and watched after the list is not in it
	ctx, cancel := context.WithTimeout(w.ctx, listTimeout)
	defer cancel()
	containers, err := w.list(ctx)
	if err != nil {
		return false, err
	}
	notExited := make(map[string]bool, len(containers))
	for _, container := range containers {
		notExited[container.GetId()] = container.GetState() != runtimeapi.ContainerState_CONTAINER_EXITED
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, id := range ids {
		if !notExited[id] {
			close(w.watched[id])
			delete(w.watched, id)
		}
	}
	return len(w.watched) == 0, nil
}

// watchedIDs returns the IDs of the containers that are watched now.
func (w *exitWatcher) watchedIDs() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Collect(maps.Keys(w.watched))
}
