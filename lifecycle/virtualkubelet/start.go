package virtualkubelet

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/klog/v2"

	"github.com/kubegrace/kubegrace/lifecycle"
)

// errInitFailed is why a pod is not started any further.
var errInitFailed = errors.New("an init container has failed")

// start starts a pod, once the former one of its name has ended. A pod that cannot
// be started is ended, with what runs of it.
func (p *Provider) start(r, former *record) {
	err := p.startAll(r, former)
	p.mu.Lock()
	r.starting = false
	over := !r.terminating && (err != nil || r.doneLocked())
	p.mu.Unlock()
	if err != nil {
		klog.FromContext(r.ctx).V(1).Info("Pod is not started any further", "pod", r.name, "err", err)
	}
	p.settle(r)
	if over && !errors.Is(err, lifecycle.AgentStopping) {
		p.endItself(r)
	}
}

// startAll starts the containers of a pod in the order of its spec; plain init
// containers have ended well before the next one starts.
func (p *Provider) startAll(r, former *record) error {
	if err := p.awaitFormer(r, former); err != nil {
		return err
	}
	for _, c := range r.containers {
		if err := p.startContainer(r, c); err != nil {
			return err
		}
		if !c.init || c.sidecar() {
			continue
		}
		if err := p.awaitInit(c); err != nil {
			return err
		}
	}
	return nil
}

// awaitFormer waits until the former pod of a name has ended.
func (p *Provider) awaitFormer(r, former *record) error {
	if former == nil {
		return nil
	}
	select {
	case <-former.ended:
		return nil
	case <-r.deleting:
		return lifecycle.ErrTerminating
	case <-p.closing:
		return lifecycle.AgentStopping
	}
}

// startContainer starts one container, unless its pod is being deleted, and runs its
// postStart hook, which kills the container if it fails.
func (p *Provider) startContainer(r *record, c *container) error {
	pod := p.view(r)
	err := p.terminator.Start(r.ctx, pod, c.spec.Name, func(ctx context.Context) (string, error) {
		id, err := p.opts.Runtime.StartContainer(ctx, pod, c.spec)
		if err == nil {
			p.up(r, c, id)
		}
		return id, err
	})
	switch {
	case errors.Is(err, lifecycle.ErrTerminating), errors.Is(err, lifecycle.AgentStopping):
		return err
	case err != nil:
		p.down(r, c, notStarted(err))
		return err
	}
	err = p.terminator.PostStart(r.ctx, pod, lifecycle.Container{Name: c.spec.Name, ID: c.id})
	if errors.Is(err, lifecycle.AgentStopping) {
		return err
	}
	return nil // one that has failed shows in the state of its container
}

// up notes that a container runs, and watches for its exit.
func (p *Provider) up(r *record, c *container, id string) {
	p.mu.Lock()
	c.upLocked(id, time.Now())
	r.changeLocked()
	p.mu.Unlock()
	p.spawn(r.name, func() { p.watch(r, c) })
}

// awaitInit waits until a plain init container has ended well.
func (p *Provider) awaitInit(c *container) error {
	select {
	case <-c.exited:
	case <-p.closing:
		return lifecycle.AgentStopping
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if code := c.state.Terminated.ExitCode; code != 0 {
		return fmt.Errorf("%w: %s with exit code %d", errInitFailed, c.spec.Name, code)
	}
	return nil
}
