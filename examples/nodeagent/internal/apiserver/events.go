package apiserver

import (
	"context"
	"sync"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	typedv1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/tools/reference"
	"k8s.io/klog/v2"
)

// component is whose events they are.
const component = "nodeagent"

// recorder sends events and keeps nobody waiting.
type recorder struct {
	record.EventRecorder
	hashes *sync.Map // of static pods: from types.UID to types.UID
	logger klog.Logger
	close  context.CancelFunc
}

// newRecorder starts the sending. What client-go has to say about it is said by the
// sink, in fewer words.
func newRecorder(ctx context.Context, opts Options) *recorder {
	logger := klog.FromContext(ctx)
	ctx, cancel := context.WithCancel(klog.NewContext(context.WithoutCancel(ctx), klog.Logger{}))
	broadcaster := record.NewBroadcaster(record.WithContext(ctx))
	broadcaster.StartRecordingToSink(&sink{ctx: ctx, logger: logger, events: opts.Ordinary.CoreV1().Events("")})
	source := v1.EventSource{Component: component, Host: opts.NodeName}
	r := &recorder{
		EventRecorder: broadcaster.NewRecorder(scheme.Scheme, source),
		hashes:        &sync.Map{},
		logger:        logger,
		close:         cancel,
	}
	for _, pod := range opts.Pods {
		r.know(pod)
	}
	return r
}

func (r *recorder) know(pod *v1.Pod) {
	r.hashes.Store(pod.UID, types.UID(pod.Annotations[hashAnnotation]))
}

// Event records an event on the node, or on a pod or a container of it. One on a
// static pod has the pod's hash for a UID, as the kubelet's have: by it kubectl
// describe finds the events of a mirror.
func (c *Client) Event(object runtime.Object, eventtype, reason, message string) {
	known, err := reference.GetReference(scheme.Scheme, object)
	if err != nil {
		c.events.logger.Error(err, "Failed to record an event, its object cannot be referred to", "reason", reason)
		return
	}
	about := *known
	if hash, static := c.events.hashes.Load(about.UID); static {
		about.UID, about.ResourceVersion = hash.(types.UID), ""
	}
	c.events.Event(&about, eventtype, reason, message)
}

// sink writes events for as long as the client is open.
type sink struct {
	ctx    context.Context // its end cuts what is being written; a sink's methods take none
	logger klog.Logger
	events typedv1.EventInterface
}

// Create, Update and Patch are those of a [record.EventSink].
func (s *sink) Create(event *v1.Event) (*v1.Event, error) {
	return s.said(s.events.CreateWithEventNamespaceWithContext(s.ctx, event))
}

// Update writes a changed event.
func (s *sink) Update(event *v1.Event) (*v1.Event, error) {
	return s.said(s.events.UpdateWithEventNamespaceWithContext(s.ctx, event))
}

// Patch counts an event that has been written.
func (s *sink) Patch(event *v1.Event, data []byte) (*v1.Event, error) {
	return s.said(s.events.PatchWithEventNamespaceWithContext(s.ctx, event, data))
}

// said logs what has failed; whether it is tried again is the broadcaster's business.
func (s *sink) said(event *v1.Event, err error) (*v1.Event, error) {
	if err != nil && s.ctx.Err() == nil {
		s.logger.V(1).Info("Failed to send an event", "err", err)
	}
	return event, err
}
