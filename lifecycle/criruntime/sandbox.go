package criruntime

import (
	"context"
	"errors"
	"fmt"

	v1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// StopPodSandbox stops the sandboxes of a pod, which releases its network; they are not
// removed. It is for a pod whose containers have ended: a runtime kills those that still
// run without a grace period. A pod that the runtime does not know is no error.
func (r *Runtime) StopPodSandbox(ctx context.Context, pod *v1.Pod) error {
	ctx, cancel := context.WithTimeout(ctx, stopMargin)
	defer cancel()
	sandboxes, err := r.client.ListPodSandbox(ctx, &runtimeapi.ListPodSandboxRequest{})
	if err != nil {
		return fmt.Errorf("failed to list the sandboxes of pod %s: %w", identityOf(pod), known(err))
	}
	var errs []error
	for _, sandbox := range sandboxes.GetItems() {
		if sandboxIdentity(sandbox) != identityOf(pod) {
			continue
		}
		_, err := r.client.StopPodSandbox(ctx, &runtimeapi.StopPodSandboxRequest{PodSandboxId: sandbox.GetId()})
		if err != nil && !isNotFound(err) {
			errs = append(errs, fmt.Errorf("failed to stop sandbox %q of pod %s: %w", sandbox.GetId(), identityOf(pod), known(err)))
		}
	}
	return errors.Join(errs...)
}
