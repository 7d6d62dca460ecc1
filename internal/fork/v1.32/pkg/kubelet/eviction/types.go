// Package eviction stands in for the kubelet's package of this name. A fork copies only the files with
// kubegrace in their path (SERIES.md). The other files declare just what those need.
package eviction

import v1 "k8s.io/api/core/v1"

// KillPodFunc kills a pod and waits for its end.
type KillPodFunc func(pod *v1.Pod, isEvicted bool, gracePeriodOverride *int64, fn func(*v1.PodStatus)) error

// ActivePodsFunc returns the running pods.
type ActivePodsFunc func() []*v1.Pod

// Config configures the manager.
type Config struct{ MaxPodGracePeriodSeconds int64 }

// managerImpl stands in for the kubelet's eviction manager.
type managerImpl struct{ config Config }
