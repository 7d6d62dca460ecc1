package criruntime

import (
	"context"
	"errors"
	"fmt"

	v1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// StopPodSandbox stops the sandboxes of a pod, which releases its network, and does not remove them. Call it
// when the pod's containers have ended: a runtime kills running ones without a grace period. An unknown
// pod is not an error. The call fails if the runtime has not answered after 2 min.
func (r *Runtime) StopPodSandbox(ctx context.Context, pod *v1.Pod) error {
	if err := r.check(pod); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, stopMargin)
	defer cancel()
	sandboxes, err := r.sandboxesOf(ctx, pod)
	if err != nil {
		return fmt.Errorf("failed to list the sandboxes of pod %s: %w", identityOf(pod), withSentinel(err))
	}
	var errs []error
	for _, sandbox := range sandboxes {
		_, err := r.client.StopPodSandbox(ctx, &runtimeapi.StopPodSandboxRequest{PodSandboxId: sandbox.GetId()})
		if err != nil && !isNotFound(err) {
			errs = append(errs, fmt.Errorf("failed to stop sandbox %q of pod %s: %w", sandbox.GetId(), identityOf(pod), withSentinel(err)))
		}
	}
	return errors.Join(errs...)
}

// sandboxesOf lists the sandboxes of a pod in every state. After an error it returns those that were listed before.
func (r *Runtime) sandboxesOf(ctx context.Context, pod *v1.Pod) ([]*runtimeapi.PodSandbox, error) {
	all, err := r.listSandboxes(ctx)
	wanted := identityOf(pod)
	var sandboxes []*runtimeapi.PodSandbox
	for _, sandbox := range all {
		if wanted.matches(sandboxIdentity(sandbox)) {
			sandboxes = append(sandboxes, sandbox)
		}
	}
	return sandboxes, err
}
