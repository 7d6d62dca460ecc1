// Package volumemanager declares what the shutdown manager uses of the volume manager.
package volumemanager

import (
	"context"

	v1 "k8s.io/api/core/v1"
)

// VolumeManager waits for volumes.
type VolumeManager interface {
	WaitForAllPodsUnmount(ctx context.Context, pods []*v1.Pod) error
}
