package nodeshutdown

import (
	"context"

	v1 "k8s.io/api/core/v1"

	"k8s.io/kubernetes/pkg/kubelet/lifecycle"
)

func syncs(f func()) func(context.Context) { return func(context.Context) { f() } }

// startManager starts a manager until ctx ends.
func startManager(ctx context.Context, m Manager) error {
	return m.Start(ctx)
}

func admit(m Manager, pod *v1.Pod) lifecycle.PodAdmitResult {
	if pod == nil {
		return m.Admit(context.Background(), nil)
	}
	return m.Admit(context.Background(), &lifecycle.PodAdmitAttributes{Pod: pod})
}
