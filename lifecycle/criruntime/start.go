package criruntime

import (
	"context"
	"errors"
	"fmt"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/kubegrace/kubegrace/lifecycle"
)

// StartContainer creates a container and starts it. It is for agents that start containers
// themselves, in the function that they give to [lifecycle.Pod.Start]: once the container is
// created, its ID is returned, also with an error, because the runtime may have
// started it although the call has failed. The container is then stopped with its pod and
// its grace. The error of a create that failed wraps lifecycle.ErrContainerNotFound: nothing was started.
func (r *Runtime) StartContainer(ctx context.Context, request *runtimeapi.CreateContainerRequest) (id string, err error) {
	created, err := r.client.CreateContainer(ctx, request)
	if err != nil {
		if err = known(err); !errors.Is(err, lifecycle.ErrContainerNotFound) {
			err = fmt.Errorf("%w: %w", lifecycle.ErrContainerNotFound, err)
		}
		return "", fmt.Errorf("failed to create: %w", err)
	}
	id = created.GetContainerId()
	if _, err := r.client.StartContainer(ctx, &runtimeapi.StartContainerRequest{ContainerId: id}); err != nil {
		return id, fmt.Errorf("failed to start: %w", known(err))
	}
	return id, nil
}
