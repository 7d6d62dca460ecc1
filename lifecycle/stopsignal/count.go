package stopsignal

import v1 "k8s.io/api/core/v1"

// Count tells how many of the containers that run, by the status of their pods, are
// stopped with which signal, as [Of] gives it without an image. It is what
// metrics.Lifecycle.StopSignals takes: that shows the counts of one call and forgets those
// before it, so hand in all pods of the node whenever they have changed. Without a
// running container the map is empty, never nil.
func Count(pods ...*v1.Pod) map[string]int {
	counts := map[string]int{}
	for _, pod := range pods {
		if pod == nil {
			continue
		}
		for status := range running(&pod.Status) {
			counts[string(Of(pod, status.Name, ""))]++
		}
	}
	return counts
}
