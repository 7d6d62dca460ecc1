// Package fork shows the maintainers of a kubelet fork how to use kubegrace: it has the
// functions of the kubelet's termination code with the kubelet's signatures, implemented
// with kubegrace. It is compiled and tested with the rest of the repository, and nobody
// imports it. A fork copies each file over the one that it replaces, and takes the types
// from Kubernetes.
//
// README.md says which file replaces what, how the shutdown of the node is put into a fork, and
// where kubegrace differs from the kubelet.
//
// The signatures are those of Kubernetes v1.32 to v1.37. Comments say where releases
// differ, and where a parameter is left out because it has no use here.
//
// # Metrics
//
// The metrics are registered in the registry of Kubernetes (legacyregistry). Four of them
// are the kubelet's own; they are shared with the kubelet if it has registered them
// before. But the manager and the runner, which register them, are made before the
// kubelet calls its metrics.Register, and that panics if a metric is registered already.
// The fork must therefore remove GracefulShutdownStartTime, GracefulShutdownEndTime,
// LifecycleHandlerHTTPFallbacks and LifecycleHandlerSleepTerminated from
// metrics.Register.
//
// # Feature gates
//
// Feature gates are read from DefaultFeatureGate, where the kubelet has gates of the same
// names. A gate that a later kubelet has removed counts with its last default.
package fork
