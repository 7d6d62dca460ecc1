package eviction

import v1 "k8s.io/api/core/v1"

// gracePeriodOf is the part of synchronize that computes the grace period of an eviction in seconds, at a hard or a soft
// threshold.
func (m *managerImpl) gracePeriodOf(pod *v1.Pod, hard bool) int64 {
	gracePeriodOverride := int64(1)
	if !hard {
		gracePeriodOverride = m.config.MaxPodGracePeriodSeconds
		if own := pod.Spec.TerminationGracePeriodSeconds; own != nil {
			gracePeriodOverride = min(m.config.MaxPodGracePeriodSeconds, *own)
		}
		gracePeriodOverride = m.softGracePeriod(pod, gracePeriodOverride)
	}
	return gracePeriodOverride
}
