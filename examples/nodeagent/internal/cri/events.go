package cri

import (
	"context"
	"fmt"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/klog/v2"
)

// eventStream is what a runtime sends when it is asked for GetContainerEvents.
type eventStream interface {
	Recv() (*runtimeapi.ContainerEventResponse, error)
}

// followEvents hands the runtime's events on until the stream ends. A stream that
// ends is not opened again: polling, which takes over, misses nothing and is cheap.
func (r *Runtime) followEvents(ctx context.Context) {
	stream, err := r.runtime.GetContainerEvents(ctx, &runtimeapi.GetEventsRequest{})
	if err == nil {
		err = r.exits.hear(stream)
	}
	if ctx.Err() == nil {
		klog.FromContext(ctx).V(1).Info("Container runtime sends no events, polling for exits", "reason", err, "interval", pollInterval)
	}
}

// hear takes events until the stream ends. The first one proves that there is a
// stream: a runtime that has none says so as late as it would send one.
func (e *exits) hear(stream eventStream) error {
	for {
		event, err := stream.Recv()
		if err != nil {
			e.streaming.Store(false)
			e.lookNow() // for what has exited since the last event
			return err
		}
		e.streaming.Store(true)
		if isEnd(event.GetContainerEventType()) {
			e.exited(event.GetContainerId())
		}
	}
}

// isEnd tells whether a container runs no more after an event. One that is deleted
// had stopped, but a runtime that was restarted may not have said so.
func isEnd(kind runtimeapi.ContainerEventType) bool {
	return kind == runtimeapi.ContainerEventType_CONTAINER_STOPPED_EVENT ||
		kind == runtimeapi.ContainerEventType_CONTAINER_DELETED_EVENT
}

// listAll lists the containers of the runtime, whatever their state.
func (r *Runtime) listAll(ctx context.Context) ([]*runtimeapi.Container, error) {
	response, err := r.runtime.ListContainers(ctx, &runtimeapi.ListContainersRequest{})
	if err != nil {
		return nil, fmt.Errorf("failed to list containers: %w", err)
	}
	return response.GetContainers(), nil
}
