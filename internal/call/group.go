// Package call runs an embedder's code: the functions and interfaces in the options of a manager.
// Such code may hang, panic or end its goroutine. This package turns a panic into an error,
// bounds the wait for a call, and knows the names of the calls that have not returned:
//
//	var calls call.Group
//	listed := call.Start(ctx, &calls, "Options.ListPods", func(context.Context) ([]*v1.Pod, error) { return pods(), nil })
//	pods, err := listed.Await(ctx, deadline)
//	...
//	hanging := calls.Wait(tooLate)
package call

import (
	"context"
	"slices"
	"sync"
	"time"

	"k8s.io/klog/v2"
)

// Group is a set of goroutines that run an embedder's code. The zero value is ready to use. All
// methods may be called concurrently.
type Group struct {
	mu      sync.Mutex // guards all below
	running map[*member]struct{}
	idle    chan struct{}     // closed when no goroutine runs; nil: nobody waits
	logged  map[string]string // what was logged last of the calls with a name; none: all is well
}

// member is one goroutine of a group.
type member struct {
	name func() string
}

// Go runs f in a goroutine. Wait calls name, from another goroutine, if f has not returned.
func (g *Group) Go(name func() string, f func()) {
	m := g.add(name)
	go func() {
		defer g.remove(m)
		f()
	}()
}

func (g *Group) add(name func() string) *member {
	m := &member{name: name}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.running == nil {
		g.running = map[*member]struct{}{}
	}
	g.running[m] = struct{}{}
	return m
}

// Call calls f in a goroutine of the group, and then end, as [Guard] does. A call that has not returned
// after slow is logged; 0: it may take any time. What goes wrong in one call after the other of this name
// is logged once, until it changes or a call returns.
func (g *Group) Call(ctx context.Context, name string, slow time.Duration, f func() error, end func(error)) {
	logger := klog.FromContext(ctx)
	stop := func() bool { return true }
	if slow > 0 {
		stop = time.AfterFunc(slow, func() {
			if g.isNews(name, "it has not returned") {
				logger.Info("A call has not returned", "call", name, "after", slow)
			}
		}).Stop
	}
	g.Go(func() string { return name }, func() {
		hasPanicked := false
		guard(name, f, func(err error) {
			if hasPanicked = true; g.isNews(name, err.Error()) {
				logPanic(logger, name, err)
			}
		}, func(err error) {
			if stop(); !hasPanicked {
				g.isNews(name, "")
			}
			end(err)
		})
	})
}

// isNews reports whether something else was logged last of the calls with a name. "" is that all is
// well.
func (g *Group) isNews(name, text string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.logged[name] == text {
		return false
	}
	if g.logged == nil {
		g.logged = map[string]string{}
	}
	if g.logged[name] = text; text == "" {
		delete(g.logged, name)
	}
	return true
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
