package virtualkubelet

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubegrace/kubegrace/internal/times"
	"github.com/kubegrace/kubegrace/lifecycle"
)

// startContainer starts one container and runs its postStart hook. The error is that of tryStart, or ErrClosed. A failed hook is
// no error here: the terminator's PostStart kills the container, and the container's state shows it.
func (p *containerPod) startContainer(c *container) error {
	id, err := p.tryStart(c)
	if err != nil {
		return err
	}
	err = p.provider.terminator.PostStart(p.ctx, p.podWithStatus(), lifecycle.Container{Name: c.spec.Name, ID: id})
	if errors.Is(err, lifecycle.ErrClosed) {
		return err
	}
	return nil // also if the pod's termination has ended the hook: p.startsAllowed has then ended, so that nothing else starts
}

// tryStart starts one container and returns its ID. A StartContainer that fails may have started the container nevertheless, so
// tryStart then lists the containers (checkFailedStart). The error is
//
//   - errWillRestart if the container does not run, and the restart policy repeats the start;
//   - that of StartContainer if the container does not run, and will not;
//   - ErrTerminating or ErrClosed, the cause of p.startsAllowed, if the pod may start nothing any more.
func (p *containerPod) tryStart(c *container) (id string, err error) {
	if p.startsAllowed.Err() != nil { // the terminator, which would refuse the start, may not know of the termination yet
		return "", context.Cause(p.startsAllowed)
	}
	var startErr error // from StartContainer; nil: it has succeeded or was not called
	pod := p.podWithStatus()
	err = p.provider.terminator.Start(p.ctx, pod, c.spec.Name, func(ctx context.Context) error {
		id, startErr = p.callStartContainer(ctx, pod, c)
		return startErr
	})
	switch {
	case err == nil:
		return id, nil
	case p.startsAllowed.Err() != nil:
		return "", context.Cause(p.startsAllowed)
	default:
		return p.checkFailedStart(c, cmp.Or(startErr, err)) // err if StartContainer was not called
	}
}

// checkFailedStart lists the containers after StartContainer has failed with startErr. If the container runs nevertheless,
// checkFailedStart returns its ID. Otherwise it returns the error for tryStart.
func (p *containerPod) checkFailedStart(c *container, startErr error) (id string, err error) {
	id, listErr := p.findStarted(c)
	if listErr == nil && id != "" {
		p.markRunning(c, id)
		return id, nil
	}
	if listErr != nil && p.startsAllowed.Err() != nil {
		return "", context.Cause(p.startsAllowed)
	}
	if mustRestart := p.markEnded(c, notStarted(errors.Join(startErr, listErr))); mustRestart {
		return "", errWillRestart
	}
	return "", startErr
}

// callStartContainer calls StartContainer once fewer than maxStarts starts are in progress, and records that the container
// runs.
func (p *containerPod) callStartContainer(ctx context.Context, pod *v1.Pod, c *container) (id string, err error) {
	err = p.provider.withinMaxStarts(ctx, func() error {
		p.mu.Lock()
		if c.restarting { // count the restart now, because it counts even if it fails
			c.restartCount++
		}
		p.mu.Unlock()
		return p.callGuarded(ctx, "StartContainer of container "+c.spec.Name, createTimeout, func() (err error) {
			if id, err = p.provider.opts.Runtime.StartContainer(ctx, pod, c.spec); err != nil {
				return err
			}
			return p.checkID("StartContainer", c, id)
		})
	})
	if err == nil {
		p.markRunning(c, id)
	}
	return id, err
}

// findStarted returns the ID of a container that runs although its start has failed, or "" if it does not run. It
// repeats the list until one succeeds. It returns an error for an invalid ID, and the cause of p.startsAllowed if the pod may
// start nothing any more.
func (p *containerPod) findStarted(c *container) (id string, err error) {
	for {
		if listed, err := p.list(); err == nil {
			running := c.findRun(listed)
			if running == nil {
				return "", nil
			}
			return running.ID, p.checkID("Running", c, running.ID)
		}
		if err := times.Sleep(p.startsAllowed, maxRetryPause); err != nil {
			return "", err
		}
	}
}

// markRunning records that a container runs, and watches for its exit.
func (p *containerPod) markRunning(c *container, id string) {
	p.mu.Lock()
	c.markRunning(id, metav1.Now())
	p.wakeSender()
	p.mu.Unlock()
	p.watchExit(id)
}

// checkID returns an error for an invalid container ID, and for the ID of another container of the pod that is
// running. from is the call that has returned it.
func (p *containerPod) checkID(from string, c *container, id string) error {
	var containers []lifecycle.Container
	p.mu.Lock()
	for _, other := range p.all {
		if other != c && other.isRunning() {
			containers = append(containers, lifecycle.Container{Name: other.spec.Name, ID: other.id})
		}
	}
	p.mu.Unlock()
	return checkIDs(from, append(containers, lifecycle.Container{Name: c.spec.Name, ID: id}))
}

// checkIDs returns an error for an invalid ID, and for one that two containers have. from is the call that has
// returned the IDs.
func checkIDs(from string, containers []lifecycle.Container) error {
	for i, c := range containers {
		if c.ID == "" {
			return fmt.Errorf("%s has returned no ID of container %q", from, c.Name)
		}
		if scheme, _, found := strings.Cut(c.ID, "://"); found {
			return fmt.Errorf("%s has returned the ID %q of container %q, which must be without the prefix %q", from, c.ID, c.Name, scheme+"://")
		}
		for _, other := range containers[:i] {
			if other.ID == c.ID && other.Name != c.Name {
				return fmt.Errorf("%s has returned the ID %q of container %q, which container %q has", from, c.ID, c.Name, other.Name)
			}
		}
	}
	return nil
}

// restart starts a container again after its back-off, and repeats that until the start succeeds or may not be
// repeated. If the pod's termination begins first, the container does not restart and its last end becomes final.
func (p *containerPod) restart(c *container) error {
	for {
		p.mu.Lock()
		pause := time.Until(c.restartAt)
		p.mu.Unlock()
		_ = times.Sleep(p.startsAllowed, pause) // if p.startsAllowed has ended, startContainer returns the cause
		if p.provider.isClosed() {
			return lifecycle.ErrClosed
		}
		err := p.startContainer(c)
		if errors.Is(err, errWillRestart) {
			continue
		}
		if err != nil && p.isTerminating() {
			p.keepLastEnd(c)
		}
		return err
	}
}

// keepLastEnd makes the end of the last run final for a container that was waiting for a restart and will not get
// one.
func (p *containerPod) keepLastEnd(c *container) {
	p.mu.Lock()
	isWaiting, lastEnd := c.restarting, c.lastEnd
	p.mu.Unlock()
	if isWaiting {
		p.markTerminated(c, *lastEnd)
	}
}
