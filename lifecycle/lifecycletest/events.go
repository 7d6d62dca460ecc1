package lifecycletest

import (
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kubegrace/kubegrace/lifecycle"
)

var _ lifecycle.EventRecorder = (*Events)(nil)

// Event is one recorded event.
type Event struct {
	Object  runtime.Object
	Type    string // v1.EventTypeNormal or v1.EventTypeWarning
	Reason  string
	Message string
}

// Events is a [lifecycle.EventRecorder] that records events. The zero value is ready to use.
// All methods may be called concurrently.
type Events struct {
	mu  sync.Mutex
	all []Event
}

// Event implements [lifecycle.EventRecorder].
func (e *Events) Event(object runtime.Object, eventtype, reason, message string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.all = append(e.all, Event{Object: object, Type: eventtype, Reason: reason, Message: message})
}

// All returns the recorded events in order.
func (e *Events) All() []Event {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.all)
}
