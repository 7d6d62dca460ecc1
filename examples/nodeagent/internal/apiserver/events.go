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

// component is the source of the agent's events.
const component = "nodeagent"

// recorder sends events in the background. Its callers never wait.
type recorder struct {
	record.EventRecorder
	hashes *sync.Map // from the UID of a static pod to its hash, both types.UID
	logger klog.Logger
	close  context.CancelFunc
}

// newRecorder starts the goroutines that send events. client-go gets no logger: sink logs
// failures in fewer words.
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
		r.addStaticPod(pod)
	}
	return r
}

// addStaticPod makes events on a pod appear on its mirror.
func (r *recorder) addStaticPod(pod *v1.Pod) {
	r.hashes.Store(pod.UID, types.UID(pod.Annotations[hashAnnotation]))
}

// Event sends an event on the node, a pod or a container. An event on a static pod gets
// the pod's hash as the UID, as from the kubelet: kubectl describe finds the events of a
// mirror by it.
func (c *Client) Event(object runtime.Object, eventtype, reason, message string) {
	ref, err := reference.GetReference(scheme.Scheme, object)
	if err != nil {
		c.events.logger.Error(err, "Failed to record an event, its object cannot be referred to", "reason", reason)
		return
	}
	onMirror := *ref
	if hash, static := c.events.hashes.Load(ref.UID); static {
		onMirror.UID, onMirror.ResourceVersion = hash.(types.UID), ""
	}
	c.events.Event(&onMirror, eventtype, reason, message)
}

// sink is a [record.EventSink] that writes events to the API server until the Client is
// closed.
type sink struct {
	ctx    context.Context // cancels requests; the methods of an EventSink take no context
	logger klog.Logger
	events typedv1.EventInterface
}

// Create writes a new event.
func (s *sink) Create(event *v1.Event) (*v1.Event, error) {
	return s.logFailed(s.events.CreateWithEventNamespaceWithContext(s.ctx, event))
}

// Update writes an event over its older version.
func (s *sink) Update(event *v1.Event) (*v1.Event, error) {
	return s.logFailed(s.events.UpdateWithEventNamespaceWithContext(s.ctx, event))
}

// Patch raises the count of an event that is already written.
func (s *sink) Patch(event *v1.Event, data []byte) (*v1.Event, error) {
	return s.logFailed(s.events.PatchWithEventNamespaceWithContext(s.ctx, event, data))
}

// logFailed logs the error of a request and returns its arguments. The broadcaster
// decides whether to try again.
func (s *sink) logFailed(event *v1.Event, err error) (*v1.Event, error) {
	if err != nil && s.ctx.Err() == nil {
		s.logger.V(1).Info("Failed to send an event", "err", err)
	}
	return event, err
}
