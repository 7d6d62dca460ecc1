// Package call runs code that is not kubegrace's own: the functions and interfaces that
// an embedder puts into the options of a manager. Such code may hang, panic or end its
// goroutine. Here it becomes an error, it is waited for as long as the caller likes, and
// what does not return is known by its name:
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

// Group knows the goroutines that run an embedder's code. The zero value is ready. All
// methods may be called concurrently.
type Group struct {
	mu      sync.Mutex // guards all below
	running map[*member]struct{}
	idle    chan struct{} // closed when nothing runs any more; nil: nobody waits
}

// member is one goroutine.
type member struct {
	name func() string
}

// Go runs f in a goroutine. name says what it is doing, for those who wait for it in
// vain; it is called then, from another goroutine.
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

// Wait waits until nothing runs, or until enough is closed; then it gives the names of
// what still runs, sorted.
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
