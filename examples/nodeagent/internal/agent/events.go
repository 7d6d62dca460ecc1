package agent

import (
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/klog/v2"

	"github.com/kubegrace/kubegrace/lifecycle"
)

var _ lifecycle.EventRecorder = events{}

// events writes into the log what a kubelet records in the API server, and records
// it there too, if there is one.
type events struct {
	logger    klog.Logger
	apiServer lifecycle.EventRecorder // nil: there is none
}

// Event logs a warning always, and anything else from verbosity 1 on.
func (e events) Event(object runtime.Object, eventtype, reason, message string) {
	logger := e.logger
	if eventtype != v1.EventTypeWarning {
		logger = logger.V(1)
	}
	logger.Info("Event", "object", nameOf(object), "type", eventtype, "reason", reason, "message", message)
	if e.apiServer != nil {
		e.apiServer.Event(object, eventtype, reason, message)
	}
}

// nameOf says what an event is about, where it is a container or the node.
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
