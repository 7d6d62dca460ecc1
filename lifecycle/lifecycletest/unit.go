package lifecycletest

import (
	"context"
	"errors"
	"sync"

	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/lifecycle"
)

var _ lifecycle.PodStopper = Unit{}

// Unit is a [lifecycle.PodStopper] for pods whose containers stop together. All methods may be called
// concurrently.
type Unit struct {
	*Runtime // must not be nil
}

// StopPod calls [Runtime.StopContainer] for all running containers of the pod concurrently, waits for
// all calls, and joins their errors. If no container runs, the error is
// [lifecycle.ErrContainerNotFound]. While the runtime is unavailable, it is [ErrAway].
func (u Unit) StopPod(ctx context.Context, pod *v1.Pod, timeoutSeconds int64) error {
	_, cancel, isAway := u.limit(ctx)
	cancel() // StopContainer limits its own context
	if isAway {
		return ErrAway
	}
	running := u.listed(pod, Lists{})
	if len(running) == 0 {
		return lifecycle.ErrContainerNotFound
	}
	errs := make([]error, len(running))
	var stops sync.WaitGroup
	for i, c := range running {
		stops.Add(1)
		go func() {
			defer stops.Done()
			errs[i] = u.StopContainer(ctx, c.ID, timeoutSeconds)
		}()
	}
	stops.Wait()
	return errors.Join(errs...)
}
