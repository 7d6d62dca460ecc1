package criruntime

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/klog/v2"
)

const (
	// pollInterval is the time between two lists while the runtime sends no events. A
	// list costs the runtime well under a millisecond.
	pollInterval = 100 * time.Millisecond
	// pollIntervalWithEvents is the time between two lists while the runtime sends
	// events. Polling goes on then, because an event that is sent just before the
	// stream begins is lost, and nothing tells when the stream begins.
	pollIntervalWithEvents = time.Second
	// listTimeout bounds one list, so that polling goes on after an answer that never
	// comes.
	listTimeout = 5 * time.Second
)

// exitWatcher notices the exits of containers that somebody waits for, by polling
// ([exitWatcher.run]) and by events of the runtime ([exitWatcher.readEvents]).
type exitWatcher struct {
	list      func(context.Context) ([]*runtimeapi.Container, error) // all containers of the runtime, in every state
	streaming atomic.Bool                                            // an event has arrived, and the stream has not ended
	wake      chan struct{}                                          // holds one token: poll now

	mu      sync.Mutex
	watched map[string]chan struct{} // by container ID; closed and deleted on exit; nil: run has ended
}

func newExitWatcher(list func(context.Context) ([]*runtimeapi.Container, error)) *exitWatcher {
	return &exitWatcher{list: list, wake: make(chan struct{}, 1), watched: map[string]chan struct{}{}}
}

// start starts the two goroutines that notice exits. They run until the returned function is called,
// which waits for them. The end of ctx does not end them, because the caller of Dial may bound
// Dial by it.
func (w *exitWatcher) start(ctx context.Context, client runtimeapi.RuntimeServiceClient) (stop func()) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	polled, streamed := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(polled)
		w.run(ctx)
	}()
	go func() {
		defer close(streamed)
		w.readStreams(ctx, client)
	}()
	return func() {
		cancel()
		<-polled
		<-streamed
	}
}

// watch returns the channel that is closed when a container exits, or nil if run has ended.
// All callers get the same channel for one container.
func (w *exitWatcher) watch(containerID string) <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.watched == nil {
		return nil
	}
	exited, ok := w.watched[containerID]
	if !ok {
		exited = make(chan struct{})
		w.watched[containerID] = exited
	}
	return exited
}

// pollNow makes run poll without waiting for the interval. It does not block: if the
// token is there already, a poll is still to come.
func (w *exitWatcher) pollNow() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// reportExit closes the channel of a container. It does nothing if nobody watches it.
func (w *exitWatcher) reportExit(containerID string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if exited, ok := w.watched[containerID]; ok {
		close(exited)
		delete(w.watched, containerID)
	}
}

// watchedIDs returns the IDs of the containers that are watched.
func (w *exitWatcher) watchedIDs() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	ids := make([]string, 0, len(w.watched))
	for id := range w.watched {
		ids = append(ids, id)
	}
	return ids
}

// run polls while any container is watched, and is idle otherwise. It returns when ctx
// ends; nothing is watched then.
func (w *exitWatcher) run(ctx context.Context) {
	defer w.watchNothing()
	for {
		select {
		case <-ctx.Done():
			return
		case <-w.wake:
			w.pollWhileWatched(ctx)
		}
	}
}

// watchNothing forgets the containers that are watched, whose channels stay open.
func (w *exitWatcher) watchNothing() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.watched = nil
}

// pollWhileWatched polls until no container is watched or ctx ends. It logs the first
// of several failures in a row.
func (w *exitWatcher) pollWhileWatched(ctx context.Context) {
	for failed := false; ctx.Err() == nil; {
		ids := w.watchedIDs()
		if len(ids) == 0 {
			return
		}
		err := w.poll(ctx, ids)
		if err != nil && !failed && ctx.Err() == nil {
			klog.FromContext(ctx).Error(err, "Failed to list containers, their exits go unnoticed until it works again")
		}
		failed = err != nil
		select {
		case <-ctx.Done():
		case <-w.wake:
		case <-time.After(w.interval()):
		}
	}
}

// interval returns the time until the next poll.
func (w *exitWatcher) interval() time.Duration {
	if w.streaming.Load() {
		return pollIntervalWithEvents
	}
	return pollInterval
}

// poll lists the containers once and reports those of ids that have exited or are
// missing in the list. The caller collects ids before the call: a container that is
// created after the list was made would otherwise count as missing.
func (w *exitWatcher) poll(ctx context.Context, ids []string) error {
	ctx, cancel := context.WithTimeout(ctx, listTimeout)
	defer cancel()
	containers, err := w.list(ctx)
	if err != nil {
		return err
	}
	alive := make(map[string]bool, len(containers))
	for _, container := range containers {
		alive[container.GetId()] = container.GetState() != runtimeapi.ContainerState_CONTAINER_EXITED
	}
	for _, id := range ids {
		if !alive[id] {
			w.reportExit(id)
		}
	}
	return nil
}
