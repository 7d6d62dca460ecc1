package stopsignal

import v1 "k8s.io/api/core/v1"

// Count returns how many running containers have each stop signal, by the signal's name. It uses [Of]
// without an image's signal, so a container whose signal only its image sets counts as SIGTERM, unless
// its status reports the signal. Nil pods are ignored. The map is never nil.
//
// Pass all pods of the node, because metrics.Lifecycle.StopSignals shows only the counts of the
// last call.
func Count(pods ...*v1.Pod) map[string]int {
	counts := map[string]int{}
	for _, pod := range pods {
		if pod == nil {
			continue
		}
		for _, status := range running(&pod.Status) {
			const imageSignal = "" // unknown
			counts[string(Of(pod, status.Name, imageSignal))]++
		}
	}
	return counts
}
