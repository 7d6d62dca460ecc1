package virtualkubelet

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"
)

// Close ends the provider and leaves its pods running: an agent that is restarted
// adopts them ([Provider.Adopt]). Hooks and stops under way are cancelled, starts are,
// and nothing begins from now on. It waits until no goroutine works; ctx bounds that,
// and the error then names what is stuck: containers, as a
// [*lifecycle.StillRunningError], and pods whose start or notification does not return.
// It may be called again.
//
// To stop the pods with the agent, drain them first: shutdown.Manager.TerminateAll.
func (p *Provider) Close(ctx context.Context) error {
	p.mu.Lock()
	if !p.closed {
		p.closed = true
		close(p.closing)
	}
	p.mu.Unlock()
	return errors.Join(p.terminator.Close(ctx), p.awaitIdle(ctx))
}

// spawn runs work in a goroutine that Close waits for, unless that was called.
func (p *Provider) spawn(name types.NamespacedName, work func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return
	}
	p.working[name.String()]++
	go func() {
		defer p.rest(name.String())
		work()
	}()
}

// rest ends a goroutine.
func (p *Provider) rest(name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.working[name]--; p.working[name] == 0 {
		delete(p.working, name)
	}
	if len(p.working) == 0 && p.idle != nil {
		close(p.idle)
		p.idle = nil
	}
}

// awaitIdle waits until no goroutine works.
func (p *Provider) awaitIdle(ctx context.Context) error {
	p.mu.Lock()
	if len(p.working) == 0 {
		p.mu.Unlock()
		return nil
	}
	if p.idle == nil {
		p.idle = make(chan struct{})
	}
	idle := p.idle
	p.mu.Unlock()
	select {
	case <-idle:
		return nil
	case <-ctx.Done():
		p.mu.Lock()
		defer p.mu.Unlock()
		pods := strings.Join(slices.Sorted(maps.Keys(p.working)), ", ")
		return fmt.Errorf("stopped waiting for calls that have not returned, of pods %s: %w", pods, context.Cause(ctx))
	}
}
