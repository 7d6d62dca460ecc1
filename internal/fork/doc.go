// Package fork is the page for maintainers of a kubelet fork: it has the signatures of the
// kubelet's own termination code with kubegrace behind them. It is compiled and tested with
// the rest of the repository, and nobody imports it: a fork copies a file over the one that
// it replaces and takes the types from where they are in Kubernetes.
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
// The signatures are those of Kubernetes v1.32 to v1.37; a comment says where releases
// differ, and where a parameter has gone because there is nothing left for it to do.
//
// # What is different
//
// The README of kubegrace has a table of all that differs from the kubelet on purpose. A
// maintainer meets these first: Start of the shutdown manager gives its error and goes on
// trying, where the kubelet gives up; the delay that is asked of logind has room for what is
// done beside the kills; a container that its pod's spec does not have is stopped, where
// the kubelet refuses.
//
// # Metrics
//
// The series go into the registry of Kubernetes (legacyregistry). Four of them are the
// kubelet's own, and are shared with it if they are there already. They are registered when
// the manager and the runner are made, which is before the kubelet calls its
// metrics.Register, and that panics where a series is there: the fork takes
// GracefulShutdownStartTime, GracefulShutdownEndTime, LifecycleHandlerHTTPFallbacks and
// LifecycleHandlerSleepTerminated out of it.
//
// # Feature gates
//
// They are read from DefaultFeatureGate, in which the kubelet has its own of the same
// names. One that a later kubelet has removed counts with its last default.
package fork
