package fork

import (
	"context"

	v1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/record"
	"k8s.io/klog/v2"

	"github.com/kubegrace/kubegrace/shutdown"
	"github.com/kubegrace/kubegrace/shutdown/podkiller"
)

// managerImpl has those fields of the eviction manager that are needed to evict.
type managerImpl struct {
	maxPodGracePeriodSeconds int64 // Config.MaxPodGracePeriodSeconds
	killPodFunc              KillPodFunc
	recorder                 record.EventRecorder
}

// request returns the kill request of synchronize for a crossed threshold. Evictions for
// exceeded limits of local storage use [podkiller.LocalStorageEviction] instead.
func (m *managerImpl) request(pod *v1.Pod, isHardThreshold bool, message string) shutdown.KillRequest {
	if isHardThreshold {
		return podkiller.HardEviction(message)
	}
	return podkiller.SoftEviction(pod, m.maxPodGracePeriodSeconds, message)
}

// evictPod evicts a pod unless it is critical. The request replaces three parameters of
// the kubelet's evictPod: the grace period override, the message of the status, and the
// condition.
func (m *managerImpl) evictPod(ctx context.Context, pod *v1.Pod, req shutdown.KillRequest, message string, annotations map[string]string) bool {
	logger := klog.FromContext(ctx)
	if !podkiller.Evictable(pod) {
		logger.Info("Eviction manager: cannot evict a critical pod", "pod", klog.KObj(pod))
		return false
	}
	m.recorder.AnnotatedEventf(pod, annotations, v1.EventTypeWarning, podkiller.EvictedReason, "%s", message)
	if err := m.killPodFunc(pod, req.Evict, req.GracePeriodSeconds, req.SetStatus); err != nil {
		logger.Error(err, "Eviction manager: pod failed to evict", "pod", klog.KObj(pod))
	}
	return true
}
