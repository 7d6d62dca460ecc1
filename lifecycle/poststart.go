package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"sync"

	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/graceperiod"
)

// PostStart runs the postStart hook of a container that has been started, in the
// caller's goroutine, through the same runner as preStop hooks. It gives nil if there
// is none. If the hook fails, a FailedPostStartHook event is recorded, the container
// is killed as [Terminator.KillContainer] does, and the error wraps what the hook said
// and what went wrong in the kill; the agent's restart policy decides what comes next.
//
// The hook's context is the caller's. It ends as well when the container exits during
// a sleep, which is no failure; when the grace of its pod is over, though not when
// the termination begins (KEP-4438); and, with the cause [AgentStopping], when the
// terminator is closed, which kills nobody. A hook that ignores its context holds up
// the caller and nobody else.
func (tr *Terminator) PostStart(ctx context.Context, pod *v1.Pod, c Container) error {
	spec, _ := findContainer(pod, c.Name)
	if spec == nil || spec.Lifecycle == nil || spec.Lifecycle.PostStart == nil {
		return nil
	}
	err := tr.runPostStart(ctx, pod, c, spec)
	if err == nil {
		return nil
	}
	err = fmt.Errorf("postStart hook of container %q in pod %q failed: %w", c.Name, podText(pod), err)
	if errors.Is(err, AgentStopping) {
		return err
	}
	tr.event(pod, c.Name, v1.EventTypeWarning, reasonFailedPostStart, messageFailedPostStart)
	_, killErr := tr.killFor(ctx, pod, c, graceperiod.ReasonFailedPostStartHook, reasonFailedPostStart)
	return errors.Join(err, killErr)
}

// runPostStart runs the hook as a guest of its pod.
func (tr *Terminator) runPostStart(ctx context.Context, pod *v1.Pod, c Container, spec *v1.Container) (err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	g := &guest{name: c.Name, cancel: cancel}
	if err := tr.admit(pod, g); err != nil {
		return err
	}
	defer tr.dismiss(g, "", false)
	if kindOf(spec.Lifecycle.PostStart) == kindSleep && tr.opts.Exits != nil {
		defer cutBeside(ctx, cancel, tr.opts.Exits.Exited(c.ID))()
	}
	defer func() {
		if r := recover(); r != nil {
			err = panicked(ctx, pod, c.Name, r)
		}
	}()
	_, err = tr.opts.Hooks.Run(ctx, c.ID, pod, spec, spec.Lifecycle.PostStart)
	return err
}

// cutBeside ends a sleep when its container exits, until the function that it gives
// is called.
func cutBeside(ctx context.Context, cancel context.CancelCauseFunc, exited <-chan struct{}) (end func()) {
	var watcher sync.WaitGroup
	watcher.Go(func() {
		select {
		case <-exited:
			cancel(ContainerExited)
		case <-ctx.Done():
		}
	})
	return func() {
		cancel(nil)
		watcher.Wait()
	}
}
