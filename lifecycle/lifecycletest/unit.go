package lifecycletest

import (
	"context"
	"errors"
	"sync"

	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/lifecycle"
)

var _ lifecycle.PodStopper = Unit{}

// Unit is a [lifecycle.PodStopper] for pods whose containers stop together. Its Running is that of
// the runtime. All methods may be called concurrently.
type Unit struct {
	*Runtime // has the containers; it must not be nil
}

// StopPod calls [Runtime.StopContainer] for all containers of the pod that run, at the same time, so
// that each behaves as its [Script] says, and waits for all of them. The error joins theirs. If none
// runs, it wraps [lifecycle.ErrContainerNotFound], and while the runtime is [Runtime.Away] it is
// [ErrAway].
func (u Unit) StopPod(ctx context.Context, pod *v1.Pod, timeoutSeconds int64) error {
	_, cancel, isAway := u.limit(ctx)
	cancel()
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
