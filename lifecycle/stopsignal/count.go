package stopsignal

import v1 "k8s.io/api/core/v1"

// Count returns the number of running containers for each stop signal, by the result of [Of]
// without an image. Nil pods are left out. The map is empty, and never nil, if no container
// runs.
//
// The result is for metrics.Lifecycle.StopSignals, which shows the counts of the last call
// only: pass all pods of the node each time.
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
