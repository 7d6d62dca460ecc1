package lifecycle

import (
	"cmp"
	"context"
	"fmt"

	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/graceperiod"
)

// KillContainer ends one container whose pod goes on: its liveness or startup probe
// has failed, its postStart hook has, or its definition has changed. It has its grace,
// a Killing event, its preStop hook, no order, and the stop. Several at once run in
// parallel, so that they take as long as the longest, not as their sum (k/k#138146).
//
// ctx bounds the waiting only, as in [Terminator.KillPod]. A container that is being
// ended already, alone or with its pod, is waited for and not ended twice; a grace in
// the request shortens what it has. One that has ended is not ended again. When its
// pod's termination begins later, it adopts the container and holds it to the pod's
// grace. A container that is [RuntimeStuck] is asked for again, under its old deadline;
// no hook is run twice. A nil pod and an empty ID are errors.
func (tr *Terminator) KillContainer(ctx context.Context, pod *v1.Pod, c Container, req ContainerRequest) (ContainerResult, error) {
	return tr.kill(ctx, pod, c, req, false)
}

// RunOnExit runs the preStop hook of a container that has ended by itself, which the
// kubelet does not do (k/k#55807): an agent that wants it asks for it. The hook has
// the grace of the container, [Terminator.Close] ends it, and it is not run again if the
// container is killed or its pod terminated later. An exec hook fails, as its
// container is gone, and a sleep ends at once where there is an [ExitWatcher].
//
// ctx bounds the waiting only: when it ends, the error is a [*StillRunningError]. What
// the hook itself says is in the result.
func (tr *Terminator) RunOnExit(ctx context.Context, pod *v1.Pod, c Container) (HookResult, error) {
	result, err := tr.kill(ctx, pod, c, ContainerRequest{}, true)
	if err == nil && result.Hook.Cause == AgentStopping {
		err = AgentStopping
	}
	return result.Hook, err
}

// kill sends one container on its way, unless it is, and waits for its end.
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
		p.reviveLocked()
	}
	c := p.nameLocked(pod, named)
	c.killLocked(ctx, pod, req, hookOnly)
	p.tidyLocked()
	p.wakeLocked()
	p.waitLocked(func() bool { return c.run == nil }, nil, ctx.Done())
	if c.run != nil {
		return c.result, &StillRunningError{Containers: []string{fullName(c.pod, c.result.Name)}, Cause: context.Cause(ctx)}
	}
	return c.result, resultOf(c.result).Err()
}

// killLocked begins the end of a container that is not being ended and has not. Where
// the termination of its pod is under way, the container becomes a part of that, unless it
// has exited and only its hook is run.
func (c *container) killLocked(ctx context.Context, pod *v1.Pod, req ContainerRequest, hookOnly bool) {
	spec, _ := findContainer(pod, c.result.Name)
	until := grant(graceperiod.ForContainer(pod, spec, req.Reason))
	if req.GracePeriodSeconds != nil {
		until.granted = *req.GracePeriodSeconds
	}
	if c.run != nil && req.GracePeriodSeconds != nil {
		c.limitLocked(until)
	}
	wasThoughtGone := c.run != nil && c.run.hookOnly && !hookOnly
	if !c.isToStop() && !wasThoughtGone || hookOnly && c.hasEnded() {
		return
	}
	if t := c.table.current; t != nil && t.active != nil {
		if !hookOnly && !c.isPartOf(t) {
			t.active.containers = append(t.active.containers, c)
		}
		if !hookOnly {
			c.part = t
		}
		if t.deadline.at().Before(until.at()) {
			until = t.deadline
		}
	}
	if wasThoughtGone {
		c.run.hookOnly = false
		c.limitLocked(until)
		return
	}
	r := &run{message: cmp.Or(req.Message, killMessage(pod, c.result.Name, req.Reason)), hookOnly: hookOnly}
	c.beginLocked(context.WithoutCancel(ctx), pod, until, r)
}

// killMessage is the kubelet's message for the end of a container whose probe has
// failed, "" for other reasons.
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
