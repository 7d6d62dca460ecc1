package lifecycle

import (
	"context"
	"slices"
	"time"

	"k8s.io/klog/v2"

	"github.com/kubegrace/kubegrace/graceperiod"
)

// Deadline returns when the grace period ends. Hooks and waits end then, and every
// container has at most [graceperiod.MinimumContainerSeconds] left to stop. The deadline
// only moves earlier.
func (t *Termination) Deadline() time.Time {
	t.life.mu.Lock()
	defer t.life.mu.Unlock()
	return t.deadline().at()
}

// Shorten moves the deadline to seconds from now, at least 1, if that is earlier, and
// returns whether it did. It takes effect at once: a hook or a wait ends at the new
// deadline, and for a StopContainer that is under way a second, concurrent call with a
// shorter timeout is made.
func (t *Termination) Shorten(seconds int64) bool {
	t.life.mu.Lock()
	shortened, a := t.shorten(seconds), t.active
	t.life.mu.Unlock()
	if shortened {
		a.logger.Info("Shortened the termination of a pod", "pod", klog.KObj(a.pod), "gracePeriod", seconds)
	}
	return shortened
}

// Done returns a channel that is closed when every container has ended or was given up.
func (t *Termination) Done() <-chan struct{} {
	t.life.mu.Lock()
	defer t.life.mu.Unlock()
	if t.active != nil {
		return t.active.done
	}
	ended := make(chan struct{})
	close(ended)
	return ended
}

// Wait waits until every container has ended or was given up, and returns the result with
// the error of [Result.Err]. When ctx ends first, the termination goes on: the result is
// that of now, and the error is a [*StillRunningError] with the containers that have not
// ended. If the deadline passed [graceperiod.MinimumContainerSeconds] ago or more, an
// ExceededGracePeriod event is recorded, as by the kubelet after its own timeout.
func (t *Termination) Wait(ctx context.Context) (Result, error) {
	select {
	case <-t.Done():
	case <-ctx.Done():
	}
	t.life.mu.Lock()
	defer t.life.mu.Unlock()
	result, a := t.result(), t.active
	if a == nil {
		return result, result.Err()
	}
	running := &StillRunningError{Cause: context.Cause(ctx)}
	var last *attempt
	for _, c := range a.attempts {
		if c.run != nil {
			last = c
			running.Containers = append(running.Containers, fullName(a.pod, c.result.Name))
		}
	}
	slices.Sort(running.Containers)
	if last != nil && time.Since(a.deadline.at()) >= graceperiod.Duration(graceperiod.MinimumContainerSeconds) {
		recordWarningLocked(ctx, last, a.pod, "ExceededGracePeriod", "Container runtime did not kill the pod within specified grace period.")
	}
	return result, running
}

// Result returns a copy of the containers' results so far, those of the request first. It
// is final once [Termination.Done] is closed.
func (t *Termination) Result() Result {
	t.life.mu.Lock()
	defer t.life.mu.Unlock()
	return t.result()
}

// result returns the records of a termination that has ended, or the results so far. What
// has ended and was started again is left out, but for its hook.
func (t *Termination) result() Result {
	result := Result{GracePeriodSeconds: t.deadline().granted}
	records := t.records
	if t.active != nil {
		records = t.active.carried
	}
	var hooks map[string]HookResult
	add := func(hidden bool) { // the last one
		c := &result.Containers[len(result.Containers)-1]
		if before := hooks[c.Name]; before.Outcome != "" && (c.Hook.Outcome == "" || c.Hook.Outcome == HookSkipped) {
			c.Hook = before
		}
		if !hidden {
			return
		}
		if hooks == nil {
			hooks = map[string]HookResult{}
		}
		hooks[c.Name] = c.Hook
		result.Containers = result.Containers[:len(result.Containers)-1]
	}
	for i := range records {
		result.Containers = append(result.Containers, records[i].unpack())
		add(records[i].hidden)
	}
	if t.active != nil {
		for _, a := range t.active.attempts {
			if !a.flags.left {
				result.Containers = append(result.Containers, a.result)
				add(a.isReplaced())
			}
		}
	}
	return result
}

// ShouldRestart reports whether a sidecar that has exited while its pod is being terminated
// should be started again, with [Pod.Start], because the main containers may still need it
// (KEP-4438). left is the time until the deadline. The result is true while there are
// containers that must be stopped before the sidecar, also if KillContainer has stopped it,
// unless the grace period is 1 s or less. It is false for a name that is not that of a sidecar in
// the termination.
func (t *Termination) ShouldRestart(name string) (restart bool, left time.Duration) {
	t.life.mu.Lock()
	defer t.life.mu.Unlock()
	if t.restartable(name) == nil {
		return false, 0
	}
	return true, time.Until(t.active.deadline.at())
}

// isBeforeTurn reports whether the turn of a container to stop has not come: it waits for it, or
// KillContainer has stopped it before.
func (a *active) isBeforeTurn(c *attempt, order *live) bool {
	if c.run != nil {
		return c.run.mustWaitLocked()
	}
	_, role := findContainer(a.pod, c.result.Name)
	return c.flags.alone && c.isOver() && !a.deadline.isOver() && order.mustWait(role)
}

// restartable returns the last attempt of a sidecar that may be started again, nil if the
// name is not that of one.
func (t *Termination) restartable(name string) (last *attempt) {
	if t.active == nil || t.active.deadline.granted <= graceperiod.MinimumPodSeconds || t.active.unit != nil {
		return nil
	}
	for _, a := range t.life.live.all() {
		switch {
		case a.result.Name != name:
		case a.isStarting():
			return nil
		case t.isOf(a) && t.active.isBeforeTurn(a, t.life.live):
			last = a
		}
	}
	return last
}
