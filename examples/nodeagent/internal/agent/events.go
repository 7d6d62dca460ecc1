package agent

import (
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/klog/v2"

	"github.com/kubegrace/kubegrace/lifecycle"
)

var _ lifecycle.EventRecorder = events{}

// events writes into the log what a kubelet records in the API server.
type events struct{ logger klog.Logger }

// Event logs a warning always, and anything else from verbosity 1 on.
func (e events) Event(object runtime.Object, eventtype, reason, message string) {
	logger := e.logger
	if eventtype != v1.EventTypeWarning {
		logger = logger.V(1)
	}
	about := ""
	if ref, ok := object.(*v1.ObjectReference); ok {
		about = ref.Namespace + "/" + ref.Name + " " + ref.FieldPath
	}
	logger.Info("Event", "object", about, "type", eventtype, "reason", reason, "message", message)
}
