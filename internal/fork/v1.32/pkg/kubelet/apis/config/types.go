// Package config stands in for the kubelet's package of this name. It declares only what package nodeshutdown uses of it.
package config

// ShutdownGracePeriodByPodPriority is the grace period of the pods from a priority upwards.
type ShutdownGracePeriodByPodPriority struct {
	Priority                   int32
	ShutdownGracePeriodSeconds int64
}
