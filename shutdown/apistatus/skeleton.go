package apistatus

import (
	"context"

	"github.com/kubegrace/kubegrace/shutdown"
	v1 "k8s.io/api/core/v1"
)

// PublishNode is the reporter's part of [shutdown.Reporter].
func (r *Reporter) PublishNode(ctx context.Context, state shutdown.NodeState) error {
	return nil
}

// FlushPods is the reporter's part of [shutdown.Reporter].
func (r *Reporter) FlushPods(ctx context.Context, pods []*v1.Pod) error {
	return nil
}

// MarkReady is the reporter's part of [shutdown.ReadinessMarker].
func (r *Reporter) MarkReady(ctx context.Context, pods []*v1.Pod, ready bool) error {
	return nil
}
