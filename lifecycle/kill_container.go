package lifecycle

import (
	"context"
	"fmt"

	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/graceperiod"
)

// KillContainer stops one container of a pod that goes on, and waits until it has ended.
// Call it when the liveness or startup probe or the postStart hook of the container has
// failed, or when its definition has changed. The grace period is that of
// [graceperiod.ForContainer]; the Killing event, the preStop hook and the stop are as in
// [Pod.Kill], but the container does not wait for a turn. Concurrent calls for several
// containers take as long as the longest of them, not as their sum (k/k#138146).
//
// When ctx ends first, the container is still stopped, and the error is a
// [*StillRunningError]. If the container is being stopped already, alone or with its pod,
// KillContainer waits for that, and a grace period in the request can shorten it. One that
// has ended is asked to stop again, without a hook and with the grace period of this request,
// unless the [ExitWatcher] says within 100 ms that it has exited. If the termination of the
// pod starts meanwhile, it includes the container and gives it its deadline. A container that
// is [RuntimeStuck] is stopped again, under its old deadline. No hook runs twice. A nil pod and
// an empty ID are errors; with a [PodStopper] the error is [ErrUnit].
func (p *Pod) KillContainer(ctx context.Context, c Container, req ContainerRequest) (ContainerResult, error) {
	return p.killContainer(ctx, nil, c, req)
}

// killContainer is KillContainer; pod is nil for that of the handle.
func (p *Pod) killContainer(ctx context.Context, pod *v1.Pod, c Container, req ContainerRequest) (ContainerResult, error) {
	s, err := p.lock()
	if err != nil {
		return ContainerResult{Name: c.Name, ID: c.ID}, err
	}
	defer s.mu.Unlock()
	if err := p.terminator.settings.refuseContainer(c); err != nil {
		return ContainerResult{Name: c.Name, ID: c.ID}, err
	}
	if pod == nil {
		pod = s.pod
	}
	confirmed := p.confirm(ctx, s, pod, func() []Container { return []Container{c} })
	if s != p.state.Load() {
		return ContainerResult{Name: c.Name, ID: c.ID}, ErrForgotten
	}
	p.begin(s, pod)
	a := s.named(pod, c)
	if !a.isOver() || !confirmed[c.ID] {
		s.kill(ctx, a, pod, req)
	}
	s.sweep()
	a.waitLocked(func() bool { return a.run == nil }, nil, ctx.Done)
	if a.run != nil {
		return a.result, &StillRunningError{Containers: []string{fullName(a.pod, a.result.Name)}, Cause: context.Cause(ctx)}
	}
	return a.result, resultOf(a.result).Err()
}

// refuseContainer returns the error for a container that cannot be stopped alone.
func (s *settings) refuseContainer(c Container) error {
	switch {
	case s.Pods != nil:
		return fmt.Errorf("failed to stop container %q alone: %w", c.Name, ErrUnit)
	case c.ID == "":
		return unknownError(c.Name)
	default:
		return nil
	}
}

// killMessage returns the kubelet's message for the Killing event of a container whose
// probe has failed, "" for other reasons.
func killMessage(pod *v1.Pod, name string, reason graceperiod.KillReason) string {
	var probe string
	switch reason {
	case graceperiod.ReasonLivenessProbe:
		probe = "liveness"
	case graceperiod.ReasonStartupProbe:
		probe = "startup"
	default:
		return ""
	}
	spec, role := findContainer(pod, name)
	if role >= roleFirstSidecar {
		return fmt.Sprintf("Init container %s failed %s probe", name, probe)
	}
	message := fmt.Sprintf("Container %s failed %s probe", name, probe)
	if spec != nil && pod.Spec.RestartPolicy == v1.RestartPolicyNever {
		return message
	}
	return message + ", will be restarted"
}
