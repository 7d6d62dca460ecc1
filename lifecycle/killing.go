package lifecycle

import (
	"context"
	"fmt"

	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/graceperiod"
)

// KillContainer ends one container whose pod goes on: its liveness or startup probe
// has failed, or its postStart hook has. It has the grace that
// [graceperiod.ForContainer] gives for the reason, a Killing event in the kubelet's
// words, its preStop hook, no order, and the stop. Several at once run in parallel,
// so that they take as long as the longest, not as their sum (k/k#138146).
//
// ctx bounds the waiting only, as in [Terminator.KillPod]. A container that is being
// ended already, alone or with its pod, is waited for and not ended twice; one that its
// pod's termination has ended is not ended again. When its pod's termination begins
// later, the kill becomes a part of it and is shortened to the pod's grace. A kill that
// ended [RuntimeStuck] may be repeated: the hook is not run again.
func (tr *Terminator) KillContainer(ctx context.Context, pod *v1.Pod, c Container, reason graceperiod.KillReason) (ContainerResult, error) {
	return tr.killFor(ctx, pod, c, reason, killMessage(pod, c.Name, reason))
}

// killFor is KillContainer with the message of its event.
func (tr *Terminator) killFor(ctx context.Context, pod *v1.Pod, c Container, reason graceperiod.KillReason, message string) (ContainerResult, error) {
	spec, _ := findContainer(pod, c.Name)
	return tr.kill(ctx, pod, c, graceperiod.ForContainer(pod, spec, reason), func(t *Termination) { t.message = message })
}

// killLate ends a container that came up after its pod had been terminated: at
// once, but for the floor of a stop. The waiting is bounded by the stop.
func (tr *Terminator) killLate(ctx context.Context, pod *v1.Pod, c Container) (ContainerResult, error) {
	return tr.kill(context.WithoutCancel(ctx), pod, c, 0, func(*Termination) {})
}

// kill ends one container and waits for it.
func (tr *Terminator) kill(ctx context.Context, pod *v1.Pod, c Container, seconds int64, set func(*Termination)) (ContainerResult, error) {
	target, existed := tr.enterKill(ctx, pod, c, seconds, set)
	if !existed {
		tr.send(target.termination)
	}
	select {
	case <-target.whenEnded():
		result := target.snapshot()
		return result, Result{Containers: []ContainerResult{result}}.Err()
	case <-ctx.Done():
		names := target.termination.names(func(other *container) bool { return other == target })
		return target.snapshot(), &StillRunningError{Containers: names, Cause: context.Cause(ctx)}
	}
}

// enterKill finds what is ending a container, or enters a new kill of it.
func (tr *Terminator) enterKill(ctx context.Context, pod *v1.Pod, c Container, seconds int64, set func(*Termination)) (target *container, existed bool) {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	state := tr.stateLocked(pod)
	if target := state.ending(c.ID); target != nil {
		return target, true
	}
	c.PreStopDone = c.PreStopDone || state.hookRan(c)
	t := newTermination(ctx, tr, pod, seconds, []Container{c}, nil)
	t.single = state
	set(t)
	put(&state.kills, c.ID, t)
	tr.working[t] = struct{}{}
	return &t.containers[0], false
}

// ending finds what is ending a container, or has ended it; nil if nothing has.
func (s *podState) ending(id string) *container {
	if kill := s.kills[id]; kill != nil {
		return &kill.containers[0]
	}
	if s.termination == nil {
		return nil
	}
	return s.termination.ending(id)
}

// ending finds the container of an ID, unless its end got stuck.
func (t *Termination) ending(id string) *container {
	t.mu.Lock()
	defer t.mu.Unlock()
	for i := range t.containers {
		if c := &t.containers[i]; c.result.ID == id && !c.starting && c.result.Outcome != RuntimeStuck {
			return c
		}
	}
	return nil
}

// killEnded lets go of a kill, and remembers that the hook has run of a container
// that may be killed again.
func (tr *Terminator) killEnded(t *Termination) {
	result := t.containers[0].snapshot()
	tr.mu.Lock()
	defer tr.mu.Unlock()
	delete(t.single.kills, result.ID)
	if result.Hook.Outcome != "" && (t.exited || result.Outcome == RuntimeStuck) {
		put(&t.single.hooksRun, result.Name, result.ID)
	}
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
	message := fmt.Sprintf("Container %s failed %s probe", name, probe)
	if spec, role := findContainer(pod, name); spec != nil && role < roleFirstSidecar && pod.Spec.RestartPolicy == v1.RestartPolicyNever {
		return message
	}
	return message + ", will be restarted"
}

// followLocked is the stage of a container that was being killed when its pod's
// termination began: the kill is held to the pod's grace, and awaited.
func (c *container) followLocked() stage {
	c.result.Phase = PhaseStopping
	c.shortenKillLocked()
	kill := c.kill
	return func(c *container) stage {
		<-kill.whenEnded()
		killed := kill.snapshot()
		c.termination.mu.Lock()
		defer c.termination.unlock()
		return c.killedLocked(killed, kill.termination.exited)
	}
}

// shortenKillLocked holds a kill to the grace of its pod.
func (c *container) shortenKillLocked() {
	if kill, seconds := c.kill, c.termination.granted; kill != nil {
		c.termination.deferLocked(func() { kill.termination.Shorten(seconds) })
	}
}

// killedLocked takes over what became of a kill. One that was of no use, and one that
// only ran the hook of an exited container, is followed by the container's own stop.
func (c *container) killedLocked(killed ContainerResult, hookOnly bool) stage {
	c.kill = nil
	if c.stop.ended {
		return nil
	}
	c.hook.state, c.result.Hook = hookEnded, killed.Hook
	if hookOnly || killed.Outcome == RuntimeStuck {
		return c.nextLocked()
	}
	c.result.Stopping, c.result.Err = killed.Stopping, killed.Err
	c.endLocked(killed.Outcome)
	return nil
}
