package cri

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/klog/v2"
)

const (
	// pollInterval is how often the runtime is asked while it sends no events. Its
	// list costs well under a millisecond.
	pollInterval = 100 * time.Millisecond
	// checkInterval is how often it is asked although it sends events: a stream has
	// no sign of when it begins, so an event right at its start can be missed.
	checkInterval = time.Second
	// listTimeout bounds one list, so that an answer that never comes does not
	// blind the watcher.
	listTimeout = 5 * time.Second
)

// exits knows which containers somebody waits for, and tells of their exit.
type exits struct {
	list      func(context.Context) ([]*runtimeapi.Container, error)
	streaming atomic.Bool   // events have come in
	wake      chan struct{} // one token: look now

	mu      sync.Mutex
	watched map[string]chan struct{} // by container ID; closed and deleted on exit
}

// newExits takes what lists the containers of the runtime in every state.
func newExits(list func(context.Context) ([]*runtimeapi.Container, error)) *exits {
	return &exits{list: list, wake: make(chan struct{}, 1), watched: map[string]chan struct{}{}}
}

// Exited gives a channel that is closed once the container has exited or is unknown
// to the runtime: within milliseconds when the runtime sends events, within 200 ms
// otherwise. One that had exited before is told of as soon as the runtime has
// answered. While the runtime is silent, and after [Runtime.Close], it stays open.
func (r *Runtime) Exited(containerID string) <-chan struct{} {
	channel := r.exits.watch(containerID)
	r.exits.lookNow()
	return channel
}

// watch gives the channel of a container, the same one to all who wait for it.
func (e *exits) watch(id string) <-chan struct{} {
	e.mu.Lock()
	defer e.mu.Unlock()
	channel, ok := e.watched[id]
	if !ok {
		channel = make(chan struct{})
		e.watched[id] = channel
	}
	return channel
}

// lookNow makes the next look come at once. It does not block: a token that is there
// already means a look that is still to begin.
func (e *exits) lookNow() {
	select {
	case e.wake <- struct{}{}:
	default:
	}
}

// exited tells those who wait for id.
func (e *exits) exited(id string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if channel, ok := e.watched[id]; ok {
		close(channel)
		delete(e.watched, id)
	}
}

// waiting gives the IDs that are waited for.
func (e *exits) waiting() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	ids := make([]string, 0, len(e.watched))
	for id := range e.watched {
		ids = append(ids, id)
	}
	return ids
}

// run looks for exits while somebody waits for one, and costs nothing while nobody
// does. It returns when ctx ends.
func (e *exits) run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-e.wake:
			e.follow(ctx)
		}
	}
}

// follow looks again and again until nobody waits any more.
func (e *exits) follow(ctx context.Context) {
	for failed := false; ctx.Err() == nil; {
		waiting := e.waiting()
		if len(waiting) == 0 {
			return
		}
		err := e.look(ctx, waiting)
		if err != nil && !failed && ctx.Err() == nil {
			klog.FromContext(ctx).Error(err, "Failed to list containers, their exits go unnoticed until it works again")
		}
		failed = err != nil
		select {
		case <-ctx.Done():
		case <-e.wake:
		case <-time.After(e.interval()):
		}
	}
}

// interval is how long to wait for the next look.
func (e *exits) interval() time.Duration {
	if e.streaming.Load() {
		return checkInterval
	}
	return pollInterval
}

// look asks the runtime once. The IDs are collected before: a container that was
// made after the list must not be taken for one that is gone.
func (e *exits) look(ctx context.Context, waiting []string) error {
	ctx, cancel := context.WithTimeout(ctx, listTimeout)
	defer cancel()
	containers, err := e.list(ctx)
	if err != nil {
		return err
	}
	alive := make(map[string]bool, len(containers))
	for _, container := range containers {
		alive[container.GetId()] = container.GetState() != runtimeapi.ContainerState_CONTAINER_EXITED
	}
	for _, id := range waiting {
		if !alive[id] {
			e.exited(id)
		}
	}
	return nil
}
