package kubelet

import (
	"context"
	"testing"

	"k8s.io/client-go/tools/record"

	"k8s.io/kubernetes/pkg/kubelet/eviction"
	"k8s.io/kubernetes/pkg/kubelet/kubegrace"
	"k8s.io/kubernetes/pkg/vectors"
)

// UpdatePod has the signature of this version of the kubelet.
func (w *scriptedWorkers) UpdatePod(_ context.Context, options UpdatePodOptions) { w.update(options) }

// killNow returns the function of killPodNow, with the gate on.
func killNow(t *testing.T, w PodWorkers, events record.EventRecorder) eviction.KillPodFunc {
	t.Helper()
	vectors.SetGate(t, kubegrace.Termination, true)
	return killPodNow(t.Context(), w, events)
}
