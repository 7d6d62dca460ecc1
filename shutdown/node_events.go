package shutdown

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kubegrace/kubegrace/internal/call"
)

// eventReason is the reason of the kubelet's events of a node shutdown.
const eventReason = "Shutdown"

// nodeEvents records events on the node. It never blocks, and keeps their order.
type nodeEvents struct {
	recorder EventRecorder // nil: nothing is recorded
	node     runtime.Object
	last     *call.Future[struct{}] // nil: no event yet
}

// record records an event after all earlier events.
func (e *nodeEvents) record(ctx context.Context, calls *call.Group, eventtype, message string) {
	if e.recorder == nil {
		return
	}
	before, recorder, object := e.last, e.recorder, e.node
	e.last = call.Start(ctx, calls, "Options.Events", func(ctx context.Context) (struct{}, error) {
		if before != nil {
			_, _ = before.Wait(ctx) // even if the previous event failed
		}
		recorder.Event(object, eventtype, eventReason, message)
		return struct{}{}, nil
	})
}
