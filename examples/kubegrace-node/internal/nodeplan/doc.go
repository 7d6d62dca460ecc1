// Package nodeplan computes what the shutdown of each node would do to its pods, and which changes
// of the configuration would let every pod have its grace period:
//
//	settings, err := nodeplan.NewSettings(nodeplan.Kubelet, config, options)
//	document := settings.Document(cluster.Nodes())
//
// For [Kubegrace], package shutdown/plan does the arithmetic, as it does in the agent itself. For
// [Kubelet], the arithmetic is that of killPods in the kubelet's nodeshutdown manager.
//
// # What is proposed
//
// A proposed configuration gives every critical pod its whole grace period. Of the other pods of a bucket, it
// gives 99 in 100 their whole grace period, or all if they are fewer than 100. No bucket gets more than ten
// minutes, unless it already has more. Pods with a longer grace period, critical or not, stay cut short; the
// summary names them as outliers.
//
// # The document
//
// kubegrace-node plan prints a [Document] with -o json and -o yaml, and an agent sends one over its socket.
// Within one [APIVersion], fields may be added; no field is removed or changes its meaning. Times are seconds
// since the announcement of the shutdown.
//
// # Concurrency properties
//
// Several goroutines may use the same Settings.
//
// # Failure modes
//
// NewSettings returns an error for a configuration that a kubelet refuses. Planning itself cannot fail,
// whatever the pods are.
//
// # Testing
//
// The tests compare the plan of a kubelet with a copy of the kubelet's loop, for random nodes, and follow the proposals for
// random nodes. The plan of [Kubegrace] is that of package shutdown/plan, which has tests of its own.
package nodeplan
