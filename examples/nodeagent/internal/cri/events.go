package cri

import (
	"context"
	"fmt"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/klog/v2"
)

// eventStream is the stream of GetContainerEvents, without the methods of gRPC.
type eventStream interface {
	Recv() (*runtimeapi.ContainerEventResponse, error)
}

// readEvents reads the runtime's events until their stream ends. The stream is not
// opened again: polling takes over, misses no exit and is cheap.
func (r *Runtime) readEvents(ctx context.Context) {
	stream, err := r.runtime.GetContainerEvents(ctx, &runtimeapi.GetEventsRequest{})
	if err == nil {
		err = r.exits.readEvents(stream)
	}
	if ctx.Err() == nil {
		klog.FromContext(ctx).V(1).Info("Container runtime sends no events, polling for exits", "reason", err, "interval", pollInterval)
	}
}

// readEvents reports the exits that a stream announces, and returns the error with
// which the stream ends. Polling becomes rare only when the first event has arrived:
// opening a stream succeeds also on a runtime that has none.
func (w *exitWatcher) readEvents(stream eventStream) error {
	for {
		event, err := stream.Recv()
		if err != nil {
			w.streaming.Store(false)
			w.pollNow() // finds what has exited since the last event
			return err
		}
		w.streaming.Store(true)
		if endsContainer(event.GetContainerEventType()) {
			w.reportExit(event.GetContainerId())
		}
	}
}

// endsContainer reports whether a container no longer runs after an event of a type. A
// deletion counts, because a runtime that was restarted may never send the stop.
func endsContainer(eventType runtimeapi.ContainerEventType) bool {
	return eventType == runtimeapi.ContainerEventType_CONTAINER_STOPPED_EVENT ||
		eventType == runtimeapi.ContainerEventType_CONTAINER_DELETED_EVENT
}

// listContainers lists the containers of the runtime, in every state.
func (r *Runtime) listContainers(ctx context.Context) ([]*runtimeapi.Container, error) {
	response, err := r.runtime.ListContainers(ctx, &runtimeapi.ListContainersRequest{})
	if err != nil {
		return nil, fmt.Errorf("failed to list containers: %w", err)
	}
	return response.GetContainers(), nil
}
