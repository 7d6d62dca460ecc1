// Package call runs an embedder's code: the functions and interfaces in the options of a manager.
// Such code may hang, panic or end its goroutine. This package turns a panic into an error,
// bounds the wait for a call, and knows the names of the calls that have not returned:
//
//	var calls call.Group
//	listed := call.Start(ctx, &calls, "Options.Pods", func(context.Context) ([]*v1.Pod, error) { return pods(), nil })
//	pods, err := listed.Await(ctx, deadline)
//	...
//	hanging := calls.Wait(tooLate)
package call

import (
	"slices"
	"sync"
)

// Group is a set of goroutines that run an embedder's code. The zero value is ready to use. All
// methods may be called concurrently.
type Group struct {
	mu      sync.Mutex // guards all below
	running map[*member]struct{}
	idle    chan struct{} // closed when no goroutine runs; nil: nobody waits
}

// member is one goroutine of a group.
type member struct {
	name func() string
}

// Go runs f in a goroutine. Wait calls name, from another goroutine, if f has not returned.
func (g *Group) Go(name func() string, f func()) {
	m := &member{name: name}
	g.mu.Lock()
	if g.running == nil {
		g.running = map[*member]struct{}{}
	}
	g.running[m] = struct{}{}
	g.mu.Unlock()
	go func() {
		defer g.remove(m)
		f()
	}()
}

func (g *Group) remove(m *member) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.running, m)
	if len(g.running) == 0 && g.idle != nil {
		close(g.idle)
		g.idle = nil
	}
}

// Wait waits until no goroutine of the group runs, or until enough is closed. It returns the
// names of the goroutines that still run, sorted.
func (g *Group) Wait(enough <-chan struct{}) (hanging []string) {
	select {
	case <-g.whenIdle():
		return nil
	case <-enough:
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	for m := range g.running {
		hanging = append(hanging, m.name())
	}
	slices.Sort(hanging)
	return hanging
}

func (g *Group) whenIdle() <-chan struct{} {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.running) == 0 {
		idle := make(chan struct{})
		close(idle)
		return idle
	}
	if g.idle == nil {
		g.idle = make(chan struct{})
	}
	return g.idle
}
