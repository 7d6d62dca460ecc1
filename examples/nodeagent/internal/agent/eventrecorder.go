package agent

import (
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/klog/v2"

	"github.com/kubegrace/kubegrace/lifecycle"
)

var _ lifecycle.EventRecorder = eventRecorder{}

// eventRecorder writes the events of pods and of the node into the log, and sends them to
// the API server if there is one.
type eventRecorder struct {
	logger    klog.Logger
	apiServer lifecycle.EventRecorder // nil: there is none
}

// Event logs an event, a warning always and others from verbosity 1 on, and sends it to the API server
// if there is one.
func (e eventRecorder) Event(object runtime.Object, eventtype, reason, message string) {
	logger := e.logger
	if eventtype != v1.EventTypeWarning {
		logger = logger.V(1)
	}
	logger.Info("Event", "object", nameOf(object), "type", eventtype, "reason", reason, "message", message)
	if e.apiServer != nil {
		e.apiServer.Event(object, eventtype, reason, message)
	}
}

// nameOf returns the name of the container or node that an event refers to.
func nameOf(object runtime.Object) string {
	ref, ok := object.(*v1.ObjectReference)
	switch {
	case !ok:
		return ""
	case ref.Namespace == "":
		return ref.Name
	}
	return ref.Namespace + "/" + ref.Name + " " + ref.FieldPath
}
