//go:build go1.25

package lifecycle_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"

	"github.com/kubegrace/kubegrace/internal/judge"
	"github.com/kubegrace/kubegrace/lifecycle"
)

var (
	errSimRefused = errors.New("the runtime of the simulator refuses")
	errSimAway    = errors.New("the runtime of the simulator is away")
	errSimHook    = errors.New("the hook of the simulator fails")
	errSimStart   = errors.New("the start of the simulator fails")
)

// simFaults says in how many percent of the calls each simFault occurs. Each world has its own percentages. isSlow is no fault:
// the call works, but takes longer.
type simFaults struct {
	refuses, hangs, ignoresContext, lies, loses, isSlow, panics int
}

// simWorld has the containers of a few pods, and a runtime, hooks and an event recorder that fail at
// random. It implements a terminator's callbacks. Each container, hook and kind of call has its own random
// generator, so that a seed plays the same world however goroutines are scheduled.
type simWorld struct {
	seed     uint64
	record   *judge.Record
	released chan struct{} // closed when everything that hangs must return
	faults   simFaults
	poll     time.Duration // the runtime's polling interval; 0: no polling
	phase    time.Duration // of the polls: their offset from multiples of the interval
	awayFrom time.Time     // from then until awayTo, each call of the runtime fails
	awayTo   time.Time
	hasTimes bool // the runtime lists when a run began
	noLists  bool // the runtime cannot list

	mu   sync.Mutex            // guards the fields below
	rngs map[string]*rand.Rand // by entity; see draw
	runs []*simRun             // in the order of their starts, with those that have ended
	ids  int                   // how many IDs were given; an ID ends with its number
}

// simRun is one run of a container.
type simRun struct {
	lifecycle.Container

	pod        *v1.Pod
	world      *simWorld
	began      time.Time
	exitAfter  time.Duration // after the stop signal
	isStubborn bool          // it ignores the stop signal
	endOnce    sync.Once
	signalOnce sync.Once
	ended      chan struct{}    // closed when the run has ended
	recordEnd  func(how string) // tells the record that the run has ended
}

// draw calls do with the random generator of an entity, which is a container, a hook or a kind of call. It
// locks the mutex.
func (w *simWorld) draw(entity string, do func(*rand.Rand)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	rng := w.rngs[entity]
	if rng == nil {
		var hash uint64 = 14695981039346656037 // FNV-1a of the entity's name
		for i := range len(entity) {
			hash = (hash ^ uint64(entity[i])) * 1099511628211
		}
		rng = rand.New(rand.NewPCG(w.seed, hash)) //nolint:gosec // must be reproducible
		w.rngs[entity] = rng
	}
	do(rng)
}

// simFault is what one call does: it works, or fails in one of these ways.
type simFault int

const (
	simWorks          simFault = iota
	simRefuses                 // the call fails
	simHangs                   // the call hangs, at most until its context ends, and fails
	simIgnoresContext          // the call hangs, even after its context has ended, and fails
	simLies                    // the reply is wrong
	simLoses                   // the runtime reports a stop that it has not made
	simPanics                  // the call panics or ends its goroutine
)

// simCall is what one call does.
type simCall struct {
	fault         simFault
	before, after time.Duration // how long it waits before and after its work
	hang          time.Duration // how long it hangs, if its fault is to hang
	variant       int           // chooses among the forms of the fault, from 0 to 5
}

// drawCall draws what the next call of an entity does.
func (w *simWorld) drawCall(entity string) (c simCall) {
	w.draw(entity, func(rng *rand.Rand) {
		n := rng.IntN(100)
		for i, share := range []int{w.faults.refuses, w.faults.hangs, w.faults.ignoresContext, w.faults.lies, w.faults.loses, w.faults.panics} {
			if n -= share; n < 0 {
				c.fault = simRefuses + simFault(i) // the faults are declared in the same order
				break
			}
		}
		if rng.IntN(100) < w.faults.isSlow {
			c.before, c.after = simTime(rng, 2*time.Second), simTime(rng, 2*time.Second)
		}
		c.hang = simTime(rng, 90*time.Second)
		c.variant = rng.IntN(6)
	})
	return c
}

// simTime draws a time up to a limit. It is often 0 or in whole seconds, as in practice, so that things
// happen at the same time; else it has odd microseconds, so that they do not.
func simTime(rng *rand.Rand, limit time.Duration) time.Duration {
	switch d := time.Duration(rng.Int64N(int64(limit))); rng.IntN(4) {
	case 0:
		return 0
	case 1:
		return d.Truncate(time.Second)
	default:
		return d.Truncate(time.Millisecond) + 137*time.Microsecond
	}
}

// sleep sleeps until d has passed, ended is closed, or everything is released.
func (w *simWorld) sleep(ended <-chan struct{}, d time.Duration) {
	if d <= 0 {
		return
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ended:
	case <-w.released:
	}
}

// misbehave performs the fault of a call that fails, hangs or panics. isWrong is false if the call does none of these,
// so that the caller must do its work.
func (w *simWorld) misbehave(ctx context.Context, c simCall) (isWrong bool, err error) {
	switch c.fault {
	case simRefuses:
		return true, errSimRefused
	case simHangs:
		w.sleep(ctx.Done(), c.hang)
		return true, errors.Join(errSimRefused, context.Cause(ctx))
	case simIgnoresContext:
		w.sleep(nil, c.hang)
		return true, errSimRefused
	case simPanics:
		if c.variant%2 == 0 {
			runtime.Goexit()
		}
		panic("of the simulator")
	default:
		return false, nil
	}
}

// isAway reports whether the runtime is unavailable.
func (w *simWorld) isAway() bool {
	now := time.Now()
	return !now.Before(w.awayFrom) && now.Before(w.awayTo)
}

// begin starts a run. It may reuse the ID of a run that has ended.
func (w *simWorld) begin(pod *v1.Pod, name string) *simRun {
	run := &simRun{world: w, pod: pod, began: time.Now(), ended: make(chan struct{})}
	reuse, exits := false, time.Duration(0)
	w.draw("begin "+pod.Name+name, func(rng *rand.Rand) {
		reuse = rng.IntN(3) == 0
		run.isStubborn = rng.IntN(4) == 0
		run.exitAfter = simTime(rng, 8*time.Second)
		if rng.IntN(4) == 0 {
			exits = simTime(rng, 40*time.Second)
		}
		run.PreStopDone = rng.IntN(12) == 0 && w.hasTimes // without times the judge would take it for a later run with its ID
	})
	w.mu.Lock()
	w.ids++
	newID := fmt.Sprintf("%s-%s-%d", pod.Name, name, w.ids)
	id := newID
	for _, other := range w.runs {
		if reuse && other.pod == pod && other.Name == name && other.hasEnded() && other.began.Before(run.began) {
			id = other.ID
		}
	}
	for _, other := range w.runs { // the ID is not reused if a later run with it still runs or began at this moment
		if other.ID == id && (!other.hasEnded() || !other.began.Before(run.began)) {
			id = newID
		}
	}
	run.Name, run.ID = name, id
	if w.hasTimes {
		run.Began = run.began
	}
	run.recordEnd = w.record.Began(pod, run.Container) // before another caller finds the run
	w.runs = append(w.runs, run)
	w.mu.Unlock()
	if exits > 0 {
		time.AfterFunc(exits, func() { run.end("itself") })
	}
	return run
}

func (r *simRun) hasEnded() bool {
	select {
	case <-r.ended:
		return true
	default:
		return false
	}
}

// end ends the run, unless it has ended. how says for the record what has ended it, such as "TERM".
func (r *simRun) end(how string) {
	r.endOnce.Do(func() {
		r.recordEnd(how)
		close(r.ended)
	})
}

// signal sends the stop signal.
func (r *simRun) signal() {
	r.signalOnce.Do(func() {
		if !r.isStubborn {
			time.AfterFunc(r.exitAfter, func() { r.end("TERM") })
		}
	})
}

// stop stops the run as a working runtime does.
func (r *simRun) stop(ctx context.Context, seconds int64) error {
	if r.hasEnded() {
		return nil
	}
	if seconds > 0 {
		r.signal()
		timer := time.NewTimer(time.Duration(seconds) * time.Second)
		defer timer.Stop()
		select {
		case <-r.ended:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-timer.C:
		}
	}
	r.end("KILL")
	return nil
}

// running returns the running runs of a pod, oldest first.
func (w *simWorld) running(pod *v1.Pod) (runs []*simRun) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, r := range w.runs {
		if r.pod == pod && !r.hasEnded() {
			runs = append(runs, r)
		}
	}
	return runs
}

// find returns the newest run with an ID.
func (w *simWorld) find(id string) (found *simRun) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, r := range w.runs {
		if r.ID == id {
			found = r
		}
	}
	return found
}

// Running lists the running containers, after the next poll if the runtime polls.
func (w *simWorld) Running(ctx context.Context, pod *v1.Pod) ([]lifecycle.Container, error) {
	if w.noLists {
		return nil, fmt.Errorf("the simulator: %w", errors.ErrUnsupported)
	}
	call := w.drawCall("list " + pod.Name)
	w.sleep(ctx.Done(), call.before)
	if w.isAway() {
		return nil, errSimAway
	}
	if isWrong, err := w.misbehave(ctx, call); isWrong {
		return nil, err
	}
	if w.poll > 0 {
		now := time.Now()
		nextPoll := now.Add(-w.phase).Truncate(w.poll).Add(w.poll + w.phase)
		w.sleep(ctx.Done(), nextPoll.Sub(now))
	}
	containers := []lifecycle.Container{}
	for _, r := range w.running(pod) {
		containers = append(containers, r.Container)
	}
	if call.fault == simLies {
		containers = w.lie(pod, containers, call.variant)
	}
	w.sleep(ctx.Done(), call.after)
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	return containers, nil
}

// lie returns a wrong list instead of containers. The variant says which: the first container is missing, or all
// are; one is added that does not exist, that the spec lacks, or that has an invalid ID; or each is there twice.
func (w *simWorld) lie(pod *v1.Pod, containers []lifecycle.Container, variant int) []lifecycle.Container {
	name := pod.Spec.Containers[0].Name
	switch {
	case variant == 0 && len(containers) > 0:
		return containers[1:]
	case variant == 1:
		return nil
	case variant == 2:
		return append(containers, lifecycle.Container{Name: name, ID: pod.Name + "-ghost"})
	case variant == 3:
		return append(containers, lifecycle.Container{Name: "nobody", ID: pod.Name + "-nobody"})
	case variant == 4:
		return append(containers, lifecycle.Container{Name: name, ID: "containerd://" + name})
	default:
		return append(containers, containers...)
	}
}

// StopContainer stops a container, or fails.
func (w *simWorld) StopContainer(ctx context.Context, id string, seconds int64) error {
	return w.stop(ctx, id, seconds, func(ctx context.Context) error {
		run := w.find(id)
		if run == nil {
			return lifecycle.ErrContainerNotFound
		}
		return run.stop(ctx, seconds)
	})
}

// StopPod stops all containers of a pod, or fails.
func (w *simWorld) StopPod(ctx context.Context, pod *v1.Pod, seconds int64) error {
	return w.stop(ctx, pod.Name, seconds, func(ctx context.Context) error {
		var wg sync.WaitGroup
		errs := make([]error, 0)
		var mu sync.Mutex
		for _, run := range w.running(pod) {
			wg.Go(func() {
				err := run.stop(ctx, seconds)
				mu.Lock()
				defer mu.Unlock()
				errs = append(errs, err)
			})
		}
		wg.Wait()
		return errors.Join(errs...)
	})
}

// stop calls do, which stops containers, or fails as drawn for the entity.
func (w *simWorld) stop(ctx context.Context, entity string, seconds int64, do func(context.Context) error) error {
	call := w.drawCall("stop " + entity)
	w.sleep(ctx.Done(), call.before)
	if w.isAway() {
		return errSimAway
	}
	if isWrong, err := w.misbehave(ctx, call); isWrong {
		return err
	}
	switch {
	case call.fault == simLies && call.variant < 3:
		return nil
	case call.fault == simLies:
		return lifecycle.ErrContainerNotFound
	case call.fault == simLoses:
		w.sleep(ctx.Done(), time.Duration(seconds)*time.Second)
		return nil
	}
	err := do(ctx)
	w.sleep(ctx.Done(), call.after)
	return err
}

// Run runs a hook, or fails. A sleep hook hangs for its seconds, some beyond the end of their context.
func (w *simWorld) Run(ctx context.Context, id string, _ *v1.Pod, _ *v1.Container, handler *v1.LifecycleHandler) (string, error) {
	call := w.drawCall("hook " + id)
	if handler.Sleep != nil {
		call.hang = time.Duration(handler.Sleep.Seconds) * time.Second
		if call.fault != simIgnoresContext {
			call.fault = simHangs
		}
	}
	switch call.fault {
	case simRefuses:
		w.sleep(ctx.Done(), call.hang)
		return "", errSimHook
	case simLies, simLoses, simHangs:
		w.sleep(ctx.Done(), call.hang)
		return "", context.Cause(ctx)
	default:
		_, err := w.misbehave(ctx, call)
		if call.fault == simWorks {
			w.sleep(ctx.Done(), min(call.hang, 10*time.Second))
		}
		return "", err
	}
}

// Exited returns the channel of the run with the ID. If it misbehaves, it panics or, after it has perhaps hung, returns nil. If
// it lies, or the ID is unknown, it returns a closed channel, as if the container had exited.
func (w *simWorld) Exited(id string) <-chan struct{} {
	call := w.drawCall("exit " + id)
	if isWrong, _ := w.misbehave(context.Background(), call); isWrong { //nolint:forbidigo // its caller has none
		return nil
	}
	run := w.find(id)
	if call.fault == simLies || run == nil {
		closed := make(chan struct{})
		close(closed)
		return closed
	}
	return run.ended
}

// Event records nothing, and may hang or panic.
func (w *simWorld) Event(_ apiruntime.Object, _, reason, _ string) {
	call := w.drawCall("event " + reason)
	_, _ = w.misbehave(context.Background(), call) //nolint:forbidigo // its caller has none
}
