package lifecycle

import (
	"cmp"
	"context"
	"fmt"

	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/graceperiod"
)

// KillContainer stops one container of a pod that goes on, and waits until it has ended.
// Call it when the liveness or startup probe or the postStart hook of the container has
// failed, or when its definition has changed. The grace period is that of
// [graceperiod.ForContainer]; the Killing event, the preStop hook and the stop are as in
// [Terminator.KillPod], but the container does not wait for a turn. Concurrent calls for
// several containers take as long as the longest of them, not as their sum (k/k#138146).
//
// When ctx ends first, the container is still stopped, and the error is a
// [*StillRunningError]. If the container is being stopped already, alone or with its pod,
// KillContainer waits for that, and a grace period in the request can shorten it. A
// container that has ended is not stopped again. If the termination of the pod starts
// meanwhile, it includes the container and gives it its deadline. A container that is
// [RuntimeStuck] is stopped again, under its old deadline. No hook runs twice. A nil pod and
// an empty ID are errors.
func (tr *Terminator) KillContainer(ctx context.Context, pod *v1.Pod, c Container, req ContainerRequest) (ContainerResult, error) {
	return tr.kill(ctx, pod, c, req, false)
}

// RunOnExit runs the preStop hook of a container that has exited by itself, for agents that
// want that. The kubelet does not do it (k/k#55807). The hook has the grace period of the
// container, and [Terminator.Close] ends it. It does not run again if the container is
// killed or the pod is terminated later. An exec hook fails, because its container is gone;
// with an [ExitWatcher], a sleep ends at once.
//
// An error of the hook is in the result. When ctx ends first, the hook runs on, and the
// error is a [*StillRunningError].
func (tr *Terminator) RunOnExit(ctx context.Context, pod *v1.Pod, c Container) (HookResult, error) {
	result, err := tr.kill(ctx, pod, c, ContainerRequest{}, true)
	if err == nil && result.Hook.Cause == AgentStopping {
		err = AgentStopping
	}
	return result.Hook, err
}

// kill starts to stop a container, if it is not being stopped yet, and waits until it has
// ended. If hookOnly is true, it runs only the preStop hook.
func (tr *Terminator) kill(ctx context.Context, pod *v1.Pod, named Container, req ContainerRequest, hookOnly bool) (ContainerResult, error) {
	if pod == nil {
		return ContainerResult{Name: named.Name, ID: named.ID}, errNoPod
	}
	if named.ID == "" {
		return ContainerResult{Name: named.Name}, unknownContainer(nil, named.Name).result.Err
	}
	p := tr.lock(podKey(pod), true)
	defer p.unlock()
	if p.current != nil && p.current.active == nil {
		p.restoreRecordsLocked()
	}
	c := p.findOrAddLocked(pod, named)
	c.killLocked(ctx, pod, req, hookOnly)
	p.removeObsoleteLocked()
	p.wakeLocked()
	p.waitLocked(func() bool { return c.run == nil }, nil, ctx.Done())
	if c.run != nil {
		return c.result, &StillRunningError{Containers: []string{fullName(c.pod, c.result.Name)}, Cause: context.Cause(ctx)}
	}
	return c.result, resultOf(c.result).Err()
}

// killLocked starts to stop a container, unless it has ended or is being stopped. If the
// termination of the pod is under way, it includes the container and limits its deadline;
// with hookOnly it only limits the deadline.
func (c *container) killLocked(ctx context.Context, pod *v1.Pod, req ContainerRequest, hookOnly bool) {
	spec, _ := findContainer(pod, c.result.Name)
	until := grant(graceperiod.ForContainer(pod, spec, req.Reason))
	if req.GracePeriodSeconds != nil {
		until.granted = *req.GracePeriodSeconds
	}
	if c.run != nil && req.GracePeriodSeconds != nil {
		c.limitLocked(until)
	}
	wasHookOnly := c.run != nil && c.run.hookOnly && !hookOnly
	if !c.isToStop() && !wasHookOnly || hookOnly && c.hasEnded() {
		return
	}
	if t := c.table.current; t != nil && t.active != nil {
		if !hookOnly && !c.isPartOf(t) {
			t.active.containers = append(t.active.containers, c)
		}
		if !hookOnly {
			c.termination = t
		}
		if t.deadline.at().Before(until.at()) {
			until = t.deadline
		}
	}
	if wasHookOnly {
		c.run.hookOnly = false
		c.limitLocked(until)
		return
	}
	r := &run{message: cmp.Or(req.Message, killMessage(pod, c.result.Name, req.Reason)), hookOnly: hookOnly}
	c.startRunLocked(context.WithoutCancel(ctx), pod, until, r)
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
