package criruntime

import (
	"context"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/klog/v2"
)

// reopenAfter is the pause before a stream of events that has ended is opened again.
const reopenAfter = time.Second

// eventStream is the stream of GetContainerEvents, without the methods of gRPC.
type eventStream interface {
	Recv() (*runtimeapi.ContainerEventResponse, error)
}

// readStreams reads the runtime's events until ctx ends. A stream that ends, as it does when
// the runtime is restarted, is opened again; polling takes over meanwhile and misses no exit.
// It returns at once if the runtime has no events: polling is cheap.
func (w *exitWatcher) readStreams(ctx context.Context, client runtimeapi.RuntimeServiceClient) {
	logger := klog.FromContext(ctx)
	for ctx.Err() == nil {
		stream, err := client.GetContainerEvents(ctx, &runtimeapi.GetEventsRequest{}, grpc.WaitForReady(true))
		if err == nil {
			err = w.readEvents(stream)
		}
		if status.Code(err) == codes.Unimplemented {
			logger.V(1).Info("Container runtime has no events, polling for exits", "interval", pollInterval)
			return
		}
		if ctx.Err() == nil {
			logger.V(2).Info("Stream of the container runtime's events has ended, polling for exits until it is open again", "reason", err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(reopenAfter):
		}
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
