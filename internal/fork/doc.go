// Package fork shows the maintainers of a kubelet fork how to use kubegrace: it has the
// functions of the kubelet's termination code with the kubelet's signatures, implemented
// with kubegrace. It is compiled and tested with the rest of the repository, and nobody
// imports it. A fork copies each file over the one that it replaces, and takes the types
// from Kubernetes.
//
//	file              replaces, in k8s.io/kubernetes
//	nodeshutdown.go   pkg/kubelet/nodeshutdown: all but its interface and its Config
//	kuberuntime.go    pkg/kubelet/kuberuntime: killContainer, killContainersWithSyncResult,
//	                  killPodWithSyncResult and executePreStopHook in kuberuntime_container.go
//	                  and kuberuntime_manager.go, all of kuberuntime_termination_order.go
//	handlers.go       pkg/kubelet/lifecycle/handlers.go
//	podworkers.go     pkg/kubelet/pod_workers.go: calculateEffectiveGracePeriod, killPodNow
//	eviction.go       pkg/kubelet/eviction/eviction_manager.go: evictPod, and the choice of
//	                  the grace period in synchronize
//	strategy.go       pkg/registry/core/pod/strategy.go: CheckGracefulDelete
//	kubelet.go        nothing: the kubelet's types, as far as the files need them
//
// The signatures are those of Kubernetes v1.32 to v1.37. Comments say where releases
// differ, and where a parameter is left out because it has no use here.
//
// # Differences from the kubelet
//
// README.md has a table of all intended differences. These three matter
// most to a maintainer. Start of the shutdown manager returns its error and goes on
// trying, where the kubelet gives up. The delay that is requested from logind includes
// time for what is done besides the kills. A container that is not in its pod's spec is
// stopped, where the kubelet refuses.
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
