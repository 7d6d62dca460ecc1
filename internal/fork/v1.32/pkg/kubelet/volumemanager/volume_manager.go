// Package volumemanager stands in for the kubelet's package of this name. It declares only what package nodeshutdown uses
// of it.
package volumemanager

import (
	"context"

	v1 "k8s.io/api/core/v1"
)

// VolumeManager waits for volumes.
type VolumeManager interface {
	WaitForAllPodsUnmount(ctx context.Context, pods []*v1.Pod) error
}
