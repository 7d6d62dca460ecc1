// Package call calls an embedder's code: the functions and interfaces in the options of a manager. Such
// code may hang, panic or end its goroutine. This package converts a panic to an error, limits the wait for
// a call, and returns the names of the calls that have not returned:
//
//	var calls call.Group
//	listed := call.Start(ctx, &calls, "Options.ListPods", func(context.Context) ([]*v1.Pod, error) { return pods(), nil })
//	pods, err := listed.Await(ctx, deadline)
//	...
//	hanging := calls.Wait(ctx.Done())
package call

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/klog/v2"
)

// Group knows the goroutines that run an embedder's code. Its owner can wait for them, and can name the ones that
// hang. The zero value is ready to use. All methods may be called concurrently.
type Group struct {
	mu      sync.Mutex // guards the fields below
	running map[*member]struct{}
	closed  bool          // EnterIfOpen returns false
	idle    chan struct{} // closed when no goroutine is running; nil: nobody waits for that
	// loggedProblems has the last problem of the calls with a name, by that name, so that it is not logged again.
	loggedProblems map[string]string
}

// member is one goroutine of a group.
type member struct {
	name func() string
}

// Go runs f in a goroutine of the group. If f hangs, Wait reports it under the name that name returns. name is called only
// then, from another goroutine.
func (g *Group) Go(name func() string, f func()) {
	m := g.add(name)
	go func() {
		defer g.remove(m)
		f()
	}()
}

// Enter counts the caller's goroutine as one of the group until leave is called. name returns the name under which Wait reports
// it, as in [Group.Go].
func (g *Group) Enter(name func() string) (leave func()) {
	m := g.add(name)
	return func() { g.remove(m) }
}

// EnterIfOpen does the same as [Group.Enter], unless the group was closed: then isOpen is false and leave is nil. If all code
// outside the group calls it before it begins work, no such work is in progress or can begin after [Group.Close] and
// [Group.Wait]. Until leave is called, the code may start goroutines with [Group.Go].
func (g *Group) EnterIfOpen(name func() string) (leave func(), isOpen bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return nil, false
	}
	m := g.addLocked(name)
	return func() { g.remove(m) }, true
}

// Close makes [Group.EnterIfOpen] return false from now on. It does not wait, and it does not affect the other methods:
// the goroutines of a closed group may start more of them until they end. It may be called again.
func (g *Group) Close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed = true
}

// Call calls f in a goroutine of the group, and then end once with the error of f. A panic of f becomes a [PanicError].
// Call logs two problems: a panic, and that f has not returned after slowAfter (0: not logged). A problem that occurs again in
// calls with the same name is logged again only after another problem, or after a call that returned.
func (g *Group) Call(ctx context.Context, name string, slowAfter time.Duration, f func() error, end func(error)) {
	logger := klog.FromContext(ctx)
	var slowTimer *time.Timer
	if slowAfter > 0 {
		slowTimer = time.AfterFunc(slowAfter, func() {
			if g.setProblem(name, "it has not returned") {
				logger.Info("A call has not returned", "call", name, "after", slowAfter)
			}
		})
	}
	hasPanicked := false
	onPanic := func(err error) {
		hasPanicked = true
		if g.setProblem(name, err.Error()) {
			logPanic(logger, name, err)
		}
	}
	onEnd := func(err error) {
		if slowTimer != nil {
			slowTimer.Stop()
		}
		if !hasPanicked {
			g.setProblem(name, noProblem)
		}
		end(err)
	}
	g.Go(func() string { return name }, func() { guard(name, f, onPanic, onEnd) })
}

// noProblem is the argument of setProblem after a call that has returned.
const noProblem = ""

// setProblem stores the last problem of the calls with a name, or noProblem. isNew is false for a repeated problem, which must not
// be logged again.
func (g *Group) setProblem(name, problem string) (isNew bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.loggedProblems[name] == problem {
		return false
	}
	if problem == noProblem { // the map must not grow with the number of names
		delete(g.loggedProblems, name)
		return true
	}
	if g.loggedProblems == nil {
		g.loggedProblems = map[string]string{}
	}
	g.loggedProblems[name] = problem
	return true
}

// add counts a goroutine with this name as running, until remove is called with the member that add returns.
func (g *Group) add(name func() string) *member {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.addLocked(name)
}

// addLocked does the same as add. The caller holds the mutex.
func (g *Group) addLocked(name func() string) *member {
	if g.running == nil {
		g.running = map[*member]struct{}{}
	}
	m := &member{name: name}
	g.running[m] = struct{}{}
	return m
}

// remove counts a goroutine as ended. If it was the last one, the callers of Wait return.
func (g *Group) remove(m *member) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.running, m)
	if len(g.running) == 0 && g.idle != nil {
		close(g.idle)
		g.idle = nil
	}
}

// Wait waits until no goroutine of the group is running or giveUp is closed; if giveUp is nil, it waits without a limit.
// It returns the sorted names of the goroutines that still run.
func (g *Group) Wait(giveUp <-chan struct{}) (hanging []string) {
	select {
	case <-g.whenIdle():
		return nil
	case <-giveUp:
		return g.names()
	}
}

// WaitUntil waits until no goroutine of the group is running, or the deadline passes. The error names the goroutines
// that still run, or the first ten if there are more.
func (g *Group) WaitUntil(deadline time.Time) error {
	timedOut := make(chan struct{})
	timer := time.AfterFunc(time.Until(deadline), func() { close(timedOut) })
	defer timer.Stop()
	hanging := g.Wait(timedOut)
	const maxNamed = 10 // so that the error stays readable
	switch n := len(hanging); {
	case n == 0:
		return nil
	case n > maxNamed:
		return fmt.Errorf("%d calls have not returned, including %s", n, strings.Join(hanging[:maxNamed], ", "))
	default:
		return fmt.Errorf("calls that have not returned: %s", strings.Join(hanging, ", "))
	}
}

// names returns the sorted names of the running goroutines.
func (g *Group) names() (names []string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for m := range g.running {
		names = append(names, m.name())
	}
	slices.Sort(names)
	return names
}

// whenIdle returns a channel that is closed as soon as no goroutine of the group is running.
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
