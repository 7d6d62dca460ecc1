package cri

import (
	"context"
	"fmt"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/klog/v2"
)

// followEvents hands the runtime's events on until the stream ends. A stream that
// ends is not opened again: polling, which takes over, misses nothing and is cheap.
func (r *Runtime) followEvents(ctx context.Context) {
	err := r.readEvents(ctx)
	r.exits.streaming.Store(false)
	r.exits.lookNow() // what exited while the stream broke
	if ctx.Err() == nil {
		klog.FromContext(ctx).V(1).Info("Container runtime sends no events, polling for exits", "reason", err, "interval", pollInterval)
	}
}

func (r *Runtime) readEvents(ctx context.Context) error {
	stream, err := r.runtime.GetContainerEvents(ctx, &runtimeapi.GetEventsRequest{})
	if err != nil {
		return err
	}
	for {
		event, err := stream.Recv()
		if err != nil {
			return err
		}
		r.exits.streaming.Store(true)
		switch event.GetContainerEventType() {
		case runtimeapi.ContainerEventType_CONTAINER_STOPPED_EVENT, runtimeapi.ContainerEventType_CONTAINER_DELETED_EVENT:
			r.exits.exited(event.GetContainerId())
		}
	}
}

// listAll lists the containers of the runtime, whatever their state.
func (r *Runtime) listAll(ctx context.Context) ([]*runtimeapi.Container, error) {
	response, err := r.runtime.ListContainers(ctx, &runtimeapi.ListContainersRequest{})
	if err != nil {
		return nil, fmt.Errorf("failed to list containers: %w", err)
	}
	return response.GetContainers(), nil
}
