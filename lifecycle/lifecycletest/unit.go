package lifecycletest

import (
	"context"
	"errors"
	"sync"

	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/lifecycle"
)

// Unit is a [lifecycle.PodStopper] for pods whose containers stop together. All methods may be
// called concurrently.
type Unit struct {
	// Runtime has the containers; it must not be nil.
	Runtime *Runtime
	// IDs returns the IDs of the containers of a pod; nil: those that run by its status.
	IDs func(*v1.Pod) []string
}

// StopPod calls [Runtime.StopContainer] for all containers of the pod at the same time, so that
// each behaves as its [Script] says, and waits for all of them. The error joins theirs. Those that
// are not there do not count, unless there is none; then it wraps
// [lifecycle.ErrContainerNotFound].
func (u Unit) StopPod(ctx context.Context, pod *v1.Pod, timeoutSeconds int64) error {
	var ids []string
	if u.IDs != nil {
		ids = u.IDs(pod)
	} else {
		for _, c := range lifecycle.ContainersOf(pod) {
			ids = append(ids, c.ID)
		}
	}
	errs := make([]error, len(ids))
	var stops sync.WaitGroup
	for i, id := range ids {
		stops.Add(1)
		go func() {
			defer stops.Done()
			errs[i] = u.Runtime.StopContainer(ctx, id, timeoutSeconds)
		}()
	}
	stops.Wait()
	missing := 0
	for i, err := range errs {
		if errors.Is(err, lifecycle.ErrContainerNotFound) {
			errs[i] = nil
			missing++
		}
	}
	if missing == len(ids) {
		return lifecycle.ErrContainerNotFound
	}
	return errors.Join(errs...)
}
