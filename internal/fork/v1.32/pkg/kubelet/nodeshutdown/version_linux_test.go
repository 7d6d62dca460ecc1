package nodeshutdown

import (
	"context"

	v1 "k8s.io/api/core/v1"

	"k8s.io/kubernetes/pkg/kubelet/lifecycle"
)

// syncFunc returns f with the type of SyncNodeStatusFunc.
func syncFunc(f func()) func() { return f }

// startManager runs kubegrace's manager until ctx ends. Start has no context in this version: it starts other managers.
func startManager(ctx context.Context, m Manager) error {
	if m, isKubegrace := m.(*kubegraceManager); isKubegrace {
		return m.start(ctx)
	}
	return m.Start()
}

// admit asks a manager to admit a pod, or nil.
func admit(m Manager, pod *v1.Pod) lifecycle.PodAdmitResult {
	if pod == nil {
		return m.Admit(nil)
	}
	return m.Admit(&lifecycle.PodAdmitAttributes{Pod: pod})
}
