// Package config declares what the shutdown manager uses of the kubelet's configuration.
package config

// ShutdownGracePeriodByPodPriority is the grace period of the pods from a priority upwards.
type ShutdownGracePeriodByPodPriority struct {
	Priority                   int32
	ShutdownGracePeriodSeconds int64
}
