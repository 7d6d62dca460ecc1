//go:build go1.25

package lifecycle_test

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	goruntime "runtime"
	"slices"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kubegrace/kubegrace/lifecycle"
)

// fault is what one StopContainer or StopPod does wrong.
type fault int

const (
	noFault        fault = iota
	fails                // an error at once
	failsLate            // an error after the signal was sent
	panics               // a panic, or the end of the goroutine
	hangs                // returns only when its context ends
	hangsDeaf            // returns 300 ms after its context has ended
	liesNil              // nil at once, while the container runs on
	liesNotThere         // ErrContainerNotFound at once, while the container runs on
	numberOfFaults       // how many there are
)

// watch says how the exit of one container is told.
type watch int

const (
	watchedAtOnce  watch = iota
	watchedLate          // 2.5 s after the exit
	watchedNever         // by a channel that stays open
	watchedWrongly       // while it runs: the exit of another container
	unwatched            // by no channel
	numberOfWatches
)

// moment is a point in the log: its number, which orders what happens at the same time.
type moment struct {
	seq int // 0: it has not come
	at  time.Time
}

func (m moment) before(other moment) bool { return m.seq != 0 && (other.seq == 0 || m.seq < other.seq) }

// realContainer is one run of one container, as it really is.
type realContainer struct {
	id, name, pod string
	start         *startCall // nil: it was not started through Start
	began, ended  moment
	killed        bool // by the runtime, at the end of a timeout
	faults        []fault
	watch         watch
	faulty        bool          // it had faults
	obeys         time.Duration // from the stop signal to its exit
	termAt        time.Time
	killAt        time.Time
	exited, told  chan struct{}
}

func (c *realContainer) runsAt(m moment) bool { return c.began.before(m) && !c.ended.before(m) }

// startCall is one call of the agent's start function.
type startCall struct {
	pod, name, id   string
	plan            startPlan
	begun, returned moment // of the function
	container       *realContainer
	gave            string // the ID that it returned
	counted         bool   // as a run of its ID, which begins with it, because none was there
}

// startPlan says what a start function does.
type startPlan struct {
	takes   time.Duration
	deaf    bool // it ignores its context
	comesUp bool // the container runs, unless the start is cut before half of its time
	ends    string
}

// stopCall is one call of StopContainer, or of StopPod with the name of the pod as the ID.
type stopCall struct {
	id               string
	seconds          int64
	called, returned moment
	cancelled        time.Time // when its context ended before it returned
	fault            fault
}

// hookCall is one run of a preStop hook. run tells the runs of one ID apart.
type hookCall struct {
	pod, name, id string
	run           int
	called        moment
	deadline      time.Time
}

// judgedRuntime is the embedder's code around a terminator: runtime, exit watcher, hooks. It
// knows what really runs, and logs every call.
type judgedRuntime struct {
	seed      uint64
	unit      bool
	saysKill  bool // it says with ErrKilled that it had to kill
	watches   bool
	mu        sync.Mutex
	seq       int
	honest    bool // no more faults, and all exits are told
	podFaults map[string][]fault
	starts    []*startCall
	real      []*realContainer
	stops     []*stopCall
	hooks     []*hookCall
	grants    []judgedGrant
	graces    map[string]int64 // by pod
	sleepers  map[string]bool  // by pod/name: those whose hook is a sleep
	told      map[string]int   // calls of OnHook for hooks that ran, by container ID
	runs      map[string]int   // runs begun by container ID
	made      map[string]int   // calls that may break, by what they are for
}

// random returns the random numbers of one purpose, which no other purpose changes.
func (rt *judgedRuntime) random(purpose ...any) *rand.Rand {
	h := fnv.New64a()
	fmt.Fprint(h, purpose...)
	return rand.New(rand.NewPCG(rt.seed, h.Sum64()))
}

// mayBreak panics in one of n calls for a purpose, or ends its goroutine.
func (rt *judgedRuntime) mayBreak(n int, purpose string) {
	rt.mu.Lock()
	rt.made[purpose]++
	r, honest := rt.random("break", purpose, rt.made[purpose]), rt.honest
	rt.mu.Unlock()
	if honest || r.IntN(n) > 0 {
		return
	}
	if r.IntN(2) == 0 {
		goruntime.Goexit()
	}
	panic("boom")
}

func (rt *judgedRuntime) nowLocked() moment {
	rt.seq++
	return moment{rt.seq, time.Now()}
}

// mark sets a moment to now.
func (rt *judgedRuntime) mark(m *moment) {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	*m = rt.nowLocked()
}

// findLocked returns the last container with an ID, nil if there was none.
func (rt *judgedRuntime) findLocked(id string) *realContainer {
	for _, c := range slices.Backward(rt.real) {
		if c.id == id {
			return c
		}
	}
	return nil
}

// begin runs a container, unless one with its ID runs.
func (rt *judgedRuntime) begin(pod, name, id string, s *startCall) *realContainer {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	if former := rt.findLocked(id); former != nil && former.ended.seq == 0 {
		return nil
	}
	if s == nil || !s.counted {
		rt.runs[id]++
	}
	r := rt.random("container", id, rt.runs[id])
	c := &realContainer{
		id: id, name: name, pod: pod, start: s, began: rt.nowLocked(), exited: make(chan struct{}), told: make(chan struct{}),
		watch: watch(max(r.IntN(int(numberOfWatches)+6)-6, 0)), obeys: []time.Duration{0, 500 * time.Millisecond, 3 * time.Second, time.Hour}[r.IntN(4)],
	}
	if !rt.watches {
		c.watch = unwatched
	}
	for range max(r.IntN(6)-2, 0) {
		c.faults = append(c.faults, rt.randomFault(r, c.watch != unwatched && c.watch != watchedWrongly))
	}
	c.faulty = len(c.faults) > 0
	rt.real = append(rt.real, c)
	if r.IntN(4) == 0 {
		time.AfterFunc(time.Duration(r.IntN(20))*time.Second/2, func() { rt.end(c, false) })
	}
	if c.watch == watchedWrongly {
		time.AfterFunc(time.Duration(r.IntN(20))*time.Second/2, func() { rt.mu.Lock(); c.tellLocked(); rt.mu.Unlock() })
	}
	return c
}

func (rt *judgedRuntime) randomFault(r *rand.Rand, mayLie bool) fault {
	if mayLie {
		return fault(r.IntN(int(numberOfFaults)))
	}
	return fault(r.IntN(int(liesNil)))
}

// end ends a container.
func (rt *judgedRuntime) end(c *realContainer, killed bool) {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	if c.ended.seq != 0 {
		return
	}
	c.ended, c.killed = rt.nowLocked(), killed
	close(c.exited)
	switch {
	case c.watch == watchedLate && !rt.honest:
		time.AfterFunc(2500*time.Millisecond, func() { rt.mu.Lock(); c.tellLocked(); rt.mu.Unlock() })
	case c.watch != watchedNever || rt.honest:
		c.tellLocked()
	}
}

func (c *realContainer) tellLocked() {
	select {
	case <-c.told:
	default:
		close(c.told)
	}
}

// mend ends all faults.
func (rt *judgedRuntime) mend() {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	rt.honest = true
	for _, c := range rt.real {
		if c.ended.seq != 0 {
			c.tellLocked()
		}
	}
}

// Exited implements lifecycle.ExitWatcher. It does not break where only the exit shows that a stop lies.
func (rt *judgedRuntime) Exited(id string) <-chan struct{} {
	rt.mu.Lock()
	c := rt.findLocked(id)
	rt.mu.Unlock()
	if c == nil || c.watch == unwatched {
		return nil
	}
	if !c.faulty {
		rt.mayBreak(20, "Exited "+id)
	}
	return c.told
}

// Event implements lifecycle.EventRecorder.
func (rt *judgedRuntime) Event(_ runtime.Object, _, reason, _ string) { rt.mayBreak(20, reason) }

// StopContainer implements lifecycle.Runtime.
func (rt *judgedRuntime) StopContainer(ctx context.Context, id string, seconds int64) error {
	rt.mu.Lock()
	c, f := rt.findLocked(id), noFault
	if c != nil && c.ended.seq == 0 && len(c.faults) > 0 && !rt.honest {
		f, c.faults = c.faults[0], c.faults[1:]
	}
	call, gone := rt.callLocked(ctx, id, seconds, f), c == nil || c.ended.seq != 0
	rt.mu.Unlock()
	defer rt.mark(&call.returned)
	if gone {
		if rt.random("gone", id).IntN(2) == 0 {
			return nil
		}
		return fmt.Errorf("stop: %w", lifecycle.ErrContainerNotFound)
	}
	return rt.stop(ctx, []*realContainer{c}, seconds, f)
}

// StopPod implements lifecycle.PodStopper.
func (rt *judgedRuntime) StopPod(ctx context.Context, pod *v1.Pod, seconds int64) error {
	rt.mu.Lock()
	f := noFault
	if faults := rt.podFaults[pod.Name]; len(faults) > 0 && !rt.honest {
		f, rt.podFaults[pod.Name] = faults[0], faults[1:]
	}
	call := rt.callLocked(ctx, pod.Name, seconds, f)
	now := rt.nowLocked()
	var running []*realContainer
	for _, c := range rt.real {
		if c.pod == pod.Name && c.runsAt(now) {
			running = append(running, c)
		}
	}
	rt.mu.Unlock()
	defer rt.mark(&call.returned)
	return rt.stop(ctx, running, seconds, f)
}

func (rt *judgedRuntime) callLocked(ctx context.Context, id string, seconds int64, f fault) *stopCall {
	call := &stopCall{id: id, seconds: seconds, called: rt.nowLocked(), fault: f}
	context.AfterFunc(ctx, func() {
		rt.mu.Lock()
		defer rt.mu.Unlock()
		if call.returned.seq == 0 {
			call.cancelled = time.Now()
		}
	})
	rt.stops = append(rt.stops, call)
	return call
}

var errFault = errors.New("fault")

func (rt *judgedRuntime) stop(ctx context.Context, running []*realContainer, seconds int64, f fault) error {
	switch f {
	case fails:
		return errFault
	case panics:
		rt.mayBreak(1, "stop")
	case hangs, hangsDeaf:
		<-ctx.Done()
		if f == hangsDeaf {
			<-time.After(300 * time.Millisecond)
		}
		return context.Cause(ctx)
	default:
	}
	for _, c := range running {
		rt.signal(c, seconds)
	}
	switch f {
	case failsLate:
		return errors.Join(pause(ctx, 700*time.Millisecond), errFault)
	case liesNil:
		return nil
	case liesNotThere:
		return lifecycle.ErrContainerNotFound
	default:
	}
	killed := false
	for _, c := range running {
		select {
		case <-c.exited:
			killed = killed || c.killed
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	if killed && rt.saysKill {
		return lifecycle.ErrKilled
	}
	return nil
}

// signal sends the stop signal, and kills the container when the timeout is over.
func (rt *judgedRuntime) signal(c *realContainer, seconds int64) {
	rt.mu.Lock()
	now := time.Now()
	if c.termAt.IsZero() {
		c.termAt, c.killAt = now, now.Add(time.Hour)
	}
	if kill := now.Add(time.Duration(seconds) * time.Second); kill.Before(c.killAt) {
		c.killAt = kill
	}
	exit := c.termAt.Add(c.obeys)
	killed := c.killAt.Before(exit)
	if killed {
		exit = c.killAt
	}
	rt.mu.Unlock()
	time.AfterFunc(exit.Sub(now), func() { rt.end(c, killed) })
}

// Run implements lifecycle.HandlerRunner.
func (rt *judgedRuntime) Run(ctx context.Context, id string, pod *v1.Pod, c *v1.Container, handler *v1.LifecycleHandler) (string, error) {
	if handler.Sleep != nil {
		return "", rt.hook(ctx, id, pod.Name, c.Name, []string{"preStop"})
	}
	return "", rt.hook(ctx, id, pod.Name, c.Name, handler.Exec.Command)
}

// RunInContainer implements lifecycle.CommandRunner.
func (rt *judgedRuntime) RunInContainer(ctx context.Context, id string, cmd []string, _ time.Duration) ([]byte, error) {
	return nil, rt.hook(ctx, id, cmd[1], cmd[2], cmd)
}

func (rt *judgedRuntime) hook(ctx context.Context, id, pod, name string, cmd []string) error {
	deadline, _ := ctx.Deadline()
	rt.mu.Lock()
	if cmd[0] == "preStop" {
		h := &hookCall{pod: pod, name: name, id: id, run: rt.runs[id], called: rt.nowLocked(), deadline: deadline}
		if c := rt.findLocked(id); c != nil && c.ended.seq != 0 && rt.isStartingLocked(id) {
			h.run = -h.called.seq // it may be of the run that has ended, and of the one that begins
		}
		rt.hooks = append(rt.hooks, h)
	}
	r := rt.random(cmd[0], id, rt.runs[id])
	rt.mu.Unlock()
	if cmd[0] == "postStart" { // after whose failure the container is killed
		defer func() {
			rt.mu.Lock()
			defer rt.mu.Unlock()
			now := rt.nowLocked()
			rt.grants = append(rt.grants, judgedGrant{pod: pod, name: name, id: id, seq: now.seq, since: now.at, seconds: rt.graces[pod]})
		}()
	}
	takes := time.Duration(r.IntN(16)) * time.Second / 2
	switch r.IntN(8) {
	case 0:
		<-time.After(takes) // deaf
		return nil
	case 1:
		rt.mayBreak(1, "hook")
		return nil
	case 2:
		return errors.Join(pause(ctx, takes/4), errFault)
	default:
		return pause(ctx, takes)
	}
}

// isStartingLocked reports whether a start of an ID is under way.
func (rt *judgedRuntime) isStartingLocked(id string) bool {
	return slices.ContainsFunc(rt.starts, func(s *startCall) bool { return s.id == id && s.returned.seq == 0 })
}

// startFunc returns the agent's start function. inside is called when the container runs.
func (rt *judgedRuntime) startFunc(s *startCall, inside func(context.Context)) func(context.Context) (string, error) {
	return func(ctx context.Context) (string, error) {
		rt.mu.Lock()
		if former := rt.findLocked(s.id); former == nil || former.ended.seq != 0 {
			rt.runs[s.id]++
			s.counted = true
		}
		s.begun = rt.nowLocked()
		rt.starts = append(rt.starts, s)
		rt.mu.Unlock()
		defer rt.mark(&s.returned)
		return rt.start(ctx, s, inside)
	}
}

func (rt *judgedRuntime) start(ctx context.Context, s *startCall, inside func(context.Context)) (string, error) {
	heeded := ctx
	if s.plan.deaf {
		heeded = context.WithoutCancel(ctx)
	}
	if err := pause(heeded, s.plan.takes/2); err == nil && s.plan.comesUp {
		c := rt.begin(s.pod, s.name, s.id, s)
		rt.mu.Lock()
		s.container = c
		rt.mu.Unlock()
		inside(ctx)
	}
	cut := pause(heeded, s.plan.takes/2)
	switch {
	case s.plan.ends == "panic":
		panic("boom")
	case s.plan.ends == "noID":
		return "", nil
	case s.container == nil && s.plan.ends == "notFound":
		return "", lifecycle.ErrContainerNotFound
	case s.container == nil || s.plan.ends == "fail":
		return "", errFault
	case s.plan.ends == "both" || cut != nil:
		s.gave = s.id
		return s.id, errFault
	default:
		s.gave = s.id
		return s.id, nil
	}
}

// pause waits, unless ctx ends.
func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
