package virtualkubelet

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubegrace/kubegrace/lifecycle"
)

// start starts one container and runs its postStart hook. If the hook fails, the terminator's PostStart kills the
// container; that is no error here. A StartContainer that fails may have started the container nevertheless, so start
// then lists the containers. The error is
//
//   - errWillRestart if the container does not run, and the restart policy repeats the start;
//   - that of StartContainer if the container does not run, and will not;
//   - ErrTerminating or ErrClosed if the pod may start nothing any more.
func (r *record) start(c *container) error {
	if r.active.Err() != nil { // the terminator, which would refuse the start, may not know of the termination yet
		return context.Cause(r.active)
	}
	var id string
	var startErr error // from StartContainer; nil: it has returned an ID or has panicked
	pod := r.podWithStatus()
	err := r.agent.terminator.Start(r.ctx, pod, c.spec.Name, func(ctx context.Context) error {
		id, startErr = r.startContainer(ctx, pod, c)
		return startErr
	})
	switch {
	case err == nil:
		c.startFailures.log(r.ctx, nil, "", "Started a container after earlier failures", "pod", r.name, "containerName", c.spec.Name)
	case r.active.Err() != nil:
		return context.Cause(r.active)
	default:
		if startErr == nil { // a panic
			startErr = err
		}
		if id, err = r.checkFailedStart(c, startErr); err != nil {
			return err
		}
	}
	err = r.agent.terminator.PostStart(r.ctx, r.podWithStatus(), lifecycle.Container{Name: c.spec.Name, ID: id})
	if errors.Is(err, lifecycle.ErrClosed) {
		return err
	}
	return nil // a failed hook shows in the container's state
}

// checkFailedStart lists the containers after StartContainer has failed with startErr. If the container runs
// nevertheless, checkFailedStart returns its ID, else the error of start.
func (r *record) checkFailedStart(c *container, startErr error) (id string, err error) {
	c.startFailures.log(r.ctx, startErr, "Failed to start a container", "", "pod", r.name, "containerName", c.spec.Name)
	id, listErr := r.findStarted(c)
	switch {
	case listErr != nil && r.active.Err() != nil:
		return "", context.Cause(r.active)
	case listErr == nil && id != "":
		r.markRunning(c, id)
		return id, nil
	case r.markEnded(c, notStarted(errors.Join(startErr, listErr))): // it must be restarted
		return "", errWillRestart
	default:
		return "", startErr
	}
}

// startContainer calls StartContainer when maxStarts allows it, and records that the container runs.
func (r *record) startContainer(ctx context.Context, pod *v1.Pod, c *container) (id string, err error) {
	err = r.agent.withinMaxStarts(ctx, func() (err error) {
		r.mu.Lock()
		if c.restarting { // count the restart now, because it counts even if it fails
			c.restartCount++
		}
		r.mu.Unlock()
		returned := r.agent.watchCall(ctx, "StartContainer of container "+c.spec.Name, r.name, createTimeout)
		defer returned()
		if id, err = r.agent.opts.Runtime.StartContainer(ctx, pod, c.spec); err != nil {
			return err
		}
		return r.checkID("StartContainer", c, id)
	})
	if err == nil {
		r.markRunning(c, id)
	}
	return id, err
}

// findStarted returns the ID of a container that runs although its start has failed, or "" if it does not run. It
// repeats the list until one succeeds. It returns an error for an invalid ID, and the cause of r.active if the pod may
// start nothing any more.
func (r *record) findStarted(c *container) (id string, err error) {
	var listFailures failures
	for {
		listed, err := r.list()
		if err == nil {
			for _, l := range listed {
				if l.Name == c.spec.Name {
					return l.ID, r.checkID("Running", c, l.ID)
				}
			}
			return "", nil
		}
		listFailures.log(r.ctx, err, "Failed to list the containers of a pod after a failed start, will try again", "", "pod", r.name)
		select {
		case <-time.After(maxRetryPause):
		case <-r.active.Done():
			return "", context.Cause(r.active)
		}
	}
}

// markRunning records that a container runs, and watches for its exit.
func (r *record) markRunning(c *container, id string) {
	r.mu.Lock()
	c.markRunning(id, metav1.Now())
	r.containers.refreshReady()
	r.wake()
	r.mu.Unlock()
	r.watchExit(id)
}

// checkID returns an error for an invalid container ID. from is the call that has returned it.
func checkID(from, name, id string) error {
	if id == "" {
		return fmt.Errorf("%s has returned no ID of container %q", from, name)
	}
	if scheme, _, found := strings.Cut(id, "://"); found {
		return fmt.Errorf("%s has returned the ID %q of container %q, which must be without the prefix %q", from, id, name, scheme+"://")
	}
	return nil
}

// checkID returns an error for an invalid container ID, and for the ID of another container of the pod that is
// running. from is the call that has returned it.
func (r *record) checkID(from string, c *container, id string) error {
	if err := checkID(from, c.spec.Name, id); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, other := range r.containers.all {
		if other != c && other.isRunning() && other.id == id {
			return fmt.Errorf("%s has returned the ID %q of container %q, which container %q has", from, id, c.spec.Name, other.spec.Name)
		}
	}
	return nil
}

// restart starts a container again after its back-off, and repeats that until the start succeeds or may not be
// repeated. If the pod's termination begins first, the container does not restart and its last end becomes final.
func (r *record) restart(c *container) error {
	for {
		r.mu.Lock()
		pause := time.Until(c.restartAt)
		r.mu.Unlock()
		if pause > 0 {
			select {
			case <-time.After(pause):
			case <-r.active.Done():
			}
		}
		if r.agent.isClosed() {
			return lifecycle.ErrClosed
		}
		err := r.start(c)
		if errors.Is(err, errWillRestart) {
			continue
		}
		if err != nil && r.isTerminating() {
			r.keepLastEnd(c)
		}
		return err
	}
}

// keepLastEnd makes the end of the last run final for a container that was waiting for a restart and will not get
// one.
func (r *record) keepLastEnd(c *container) {
	r.mu.Lock()
	isWaiting, lastEnd := c.restarting, c.lastEnd
	r.mu.Unlock()
	if isWaiting {
		r.markTerminated(c, *lastEnd)
	}
}
