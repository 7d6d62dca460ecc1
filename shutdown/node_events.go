package shutdown

import (
	"context"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kubegrace/kubegrace/internal/call"
)

const (
	// eventReason and the two messages are those of the kubelet's node shutdown.
	eventReason      = "Shutdown"
	messageDetected  = "Shutdown manager detected shutdown event"
	messageCancelled = "Shutdown manager detected shutdown cancellation"
)

// nodeEvents records events on the node, in order, in goroutines of its own. Only the event loop
// uses it.
type nodeEvents struct {
	ctx      context.Context // of Run
	calls    *call.Group
	recorder EventRecorder // nil: nothing is recorded
	node     runtime.Object
	last     *call.Future[struct{}] // nil: none yet
}

// record records an event after all earlier ones.
func (e *nodeEvents) record(eventtype, message string) {
	if e.recorder == nil {
		return
	}
	before := e.last
	e.last = call.Start(e.ctx, e.calls, "Options.Events", func(ctx context.Context) (struct{}, error) {
		if before != nil {
			_, _ = before.Wait(ctx) // an event that could not be recorded does not keep back the next one
		}
		e.recorder.Event(e.node, eventtype, eventReason, message)
		return struct{}{}, nil
	})
}

// detected records an announced shutdown.
func (e *nodeEvents) detected() { e.record(v1.EventTypeNormal, messageDetected) }

// cancelled records a cancelled shutdown.
func (e *nodeEvents) cancelled() { e.record(v1.EventTypeNormal, messageCancelled) }

// capped records that the host waits for so little that pods lose time.
func (e *nodeEvents) capped(message string) { e.record(v1.EventTypeWarning, message) }
