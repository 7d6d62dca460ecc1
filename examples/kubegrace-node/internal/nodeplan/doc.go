// Package nodeplan computes what the shutdown of each node would do to its pods, and what to
// change so that no pod is cut short:
//
//	settings, err := nodeplan.NewSettings(nodeplan.Kubelet, config, gates, options)
//	document := settings.Document(cluster.Nodes())
//
// The arithmetic of [Kubegrace] is that of package shutdown/plan, by which such an agent drains, and
// that of [Kubelet] is killPods of the kubelet's nodeshutdown manager.
//
// # What is proposed
//
// A proposed configuration gives every critical pod what it asks for, and of the other pods of a bucket
// 99 in 100, or all if they are fewer than 100. No bucket gets more than ten minutes, unless it has more
// already: the pods that ask for more, critical ones too, are named, and cut short.
//
// # The document
//
// [Document] is what kubegrace-node plan prints with -o json and -o yaml, and an agent answers with on its socket. Within one [APIVersion],
// fields may be added; no field is removed or changes its meaning. Times are seconds since
// the announcement of the shutdown.
//
// # Concurrency properties
//
// Several goroutines may use the same Settings.
//
// # Failure modes
//
// NewSettings returns an error for a configuration that a kubelet refuses. A plan works for all
// pods.
//
// # Testing
//
// The tests drain random nodes with a real agent, in synctest bubbles, and compare its report
// with the plan. A kubelet's plan is compared with the kubelet's loop, for random nodes too.
package nodeplan
