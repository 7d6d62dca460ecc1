package shutdown

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kubegrace/kubegrace/internal/call"
)

// eventReason is the reason of the kubelet's events of a node shutdown.
const eventReason = "Shutdown"

// nodeEvents records events on the node, in order. It never blocks, even if the recorder does.
type nodeEvents struct {
	recorder EventRecorder // nil: nothing is recorded
	node     runtime.Object
	last     *call.Future[struct{}] // nil: no event yet
}

// record begins to record an event, and returns at once. The event is recorded after all earlier ones.
func (e *nodeEvents) record(ctx context.Context, calls *call.Group, eventtype, message string) {
	if e.recorder == nil {
		return
	}
	previous, recorder, object := e.last, e.recorder, e.node
	e.last = call.Start(ctx, calls, "Options.Events", func(ctx context.Context) (struct{}, error) {
		if previous != nil {
			_, _ = previous.Wait(ctx) // its error does not matter here
		}
		recorder.Event(object, eventtype, eventReason, message)
		return struct{}{}, nil
	})
}
