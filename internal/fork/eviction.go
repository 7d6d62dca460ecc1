package fork

import (
	"context"

	v1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/record"
	"k8s.io/klog/v2"

	"github.com/kubegrace/kubegrace/shutdown"
	"github.com/kubegrace/kubegrace/shutdown/podkiller"
)

// managerImpl has, of the eviction manager's fields, those that evict.
type managerImpl struct {
	maxPodGracePeriodSeconds int64 // of its config
	killPodFunc              KillPodFunc
	recorder                 record.EventRecorder
}

// request is what synchronize asks for when a threshold was crossed. Evictions for the limits
// of local storage ask for a [podkiller.LocalStorageEviction].
func (m *managerImpl) request(pod *v1.Pod, isHardThreshold bool, message string) shutdown.KillRequest {
	if isHardThreshold {
		return podkiller.HardEviction(message)
	}
	return podkiller.SoftEviction(pod, m.maxPodGracePeriodSeconds, message)
}

// evictPod evicts a pod, unless it is critical. The request has what the kubelet's evictPod
// has as three parameters: the grace, the message and the condition.
func (m *managerImpl) evictPod(ctx context.Context, pod *v1.Pod, req shutdown.KillRequest, message string, annotations map[string]string) bool {
	logger := klog.FromContext(ctx)
	if !podkiller.Evictable(pod) {
		logger.Info("Eviction manager: cannot evict a critical pod", "pod", klog.KObj(pod))
		return false
	}
	m.recorder.AnnotatedEventf(pod, annotations, v1.EventTypeWarning, podkiller.EvictedReason, "%s", message)
	if err := m.killPodFunc(pod, req.Evict, &req.GracePeriodSeconds, req.SetStatus); err != nil {
		logger.Error(err, "Eviction manager: pod failed to evict", "pod", klog.KObj(pod))
	}
	return true
}
