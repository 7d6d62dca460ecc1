package lifecycle

import (
	"context"
	"slices"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubegrace/kubegrace/internal/podkey"
)

// life is what is known of one pod: the attempts to run its containers, and its termination.
// All methods of a [Pod] use it, so that each of them knows what the others have done. After
// [Pod.Forget] it is the next life of the pod, with what is still under way.
type life struct {
	terminator *Terminator
	name       types.UID  // its key in the register: the UID or NAMESPACE/NAME with which it began
	taken      *types.UID // that it has taken since, which is another key; both are guarded by the register

	mu      sync.Mutex   // guards all of the pod; not held while anything blocks
	own     Pod          // the first handle
	handle  *Pod         // the handle of the life; nil: the pod was forgotten
	pod     *v1.Pod      // as last passed to [Terminator.Pod]; nil: it was passed to no handle
	current *Termination // under way or ended; nil: the pod was not terminated
	live    *live        // nil: no attempt is known
}

// settings returns those of the terminator.
func (l *life) settings() *settings { return l.terminator.settings }

// keys returns the keys of the life in the register.
func (l *life) keys() []types.UID {
	if l.taken == nil {
		return []types.UID{l.name}
	}
	return []types.UID{l.name, *l.taken}
}

// takeUID gives a life that began without a UID the first one. It returns false if it has one.
func (l *life) takeUID(uid types.UID) bool {
	if l.taken != nil {
		return false
	}
	l.taken = &uid
	return true
}

// setPod sets the pod that is used if none is passed, and returns the handle, nil if the pod was
// forgotten.
func (l *life) setPod(pod *v1.Pod) *Pod {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.handle != nil {
		l.pod = pod
	}
	return l.handle
}

// lock locks the life, for a handle or, if that is nil, for whoever keeps none. It returns the
// pod: the one that is passed, or that of the handle. The error is [ErrForgotten], or that the
// handle has no pod; nothing is locked then.
func (l *life) lock(handle *Pod, pod *v1.Pod) (*v1.Pod, error) {
	if l == nil {
		return nil, errNoPod
	}
	l.mu.Lock()
	switch {
	case l.handle == nil || handle != nil && l.handle != handle:
		l.mu.Unlock()
		return nil, ErrForgotten
	case pod == nil:
		return l.pod, nil
	default:
		return pod, nil
	}
}

// unbegun returns the pod of a handle if nothing has begun the life, else nil.
func (l *life) unbegun(handle *Pod) *v1.Pod {
	pod, err := l.lock(handle, nil)
	if err != nil {
		return nil
	}
	defer l.mu.Unlock()
	if l.live != nil || l.current != nil {
		return nil
	}
	return pod
}

// begin makes the life one that is under way, if it is not yet. What is under way from a
// former life belongs to it.
func (l *life) begin() {
	if l.live == nil {
		l.live = newLive()
		if !l.settings().isClosed() { // no life is kept after the end
			l.terminator.enter(l)
		}
	}
	l.live.begin()
}

// forget ends the life. What is under way belongs to the next one, which has another handle.
func (l *life) forget(handle *Pod) {
	if _, err := l.lock(handle, nil); err != nil {
		return
	}
	defer l.mu.Unlock()
	for _, a := range l.live.all() { // a termination that is under way keeps what it has ended
		a.flags.obsolete = !l.current.isOf(a)
	}
	l.handle, l.current, l.pod = nil, nil, nil
	if l.sweepLocked(); l.live == nil {
		l.terminator.leave(l, true)
		return
	}
	l.handle = &Pod{life: l}
	l.live.inherit()
}

// add adds an attempt to run the container of a name.
func (l *life) add(pod *v1.Pod, name, id string) *attempt {
	a := &attempt{settings: l.settings(), pod: pod, result: ContainerResult{Name: name, ID: id}, knownAt: time.Now()}
	a.calls = calls{mu: &l.mu, idle: l}
	l.live.add(a)
	return a
}

// find returns the last attempt with an ID, nil if there is none. It adds again one that has
// ended in the current termination.
func (l *life) find(pod *v1.Pod, id string) *attempt {
	if a := l.live.find(id, nil); a != nil {
		return a
	}
	if r, endedAt := l.current.recordOf(id); r != nil {
		a := l.add(pod, r.name, id)
		a.recall(r, endedAt)
		return a
	}
	return nil
}

// named returns the attempt that has the ID that a request names, and adds it if there is
// none. It is the last one that had the ID, whatever its name, which may have ended, unless the
// pod's status says that it was started again since.
func (l *life) named(ctx context.Context, pod *v1.Pod, named Container) *attempt {
	l.live.proveEnds(func(a *attempt) bool { return a.result.Name == named.Name && !a.isOfStart() })
	a := l.find(pod, named.ID)
	startedAt := startOf(pod, named.ID)
	if a != nil && a.isReused(startedAt) {
		l.live.end(a) // the ID is another container's now, which must not be stopped for this one
		a = nil
	}
	if a == nil {
		a = l.add(pod, named.Name, named.ID)
	} else if a.exits.isClosed() && !a.hasEnded() { // it has exited, but is said to run
		a.exits.askAnewLocked(ctx, a)
	}
	if a.run == nil {
		a.pod, a.startedAt, a.flags.unlisted = pod, startedAt, false
		a.flags.hookDone = a.flags.hookDone || named.PreStopDone
	}
	return a
}

// sweepLocked removes the attempts of which nothing is to be known any more, and ends a life of
// which nothing is known then. It is called too when nothing is at work for an attempt any more.
func (l *life) sweepLocked() {
	if l.live.clear(); l.live == nil || !l.live.isEmpty() {
		return
	}
	if l.live = nil; l.current == nil {
		l.terminator.leave(l, l.handle == nil)
	}
}

// killContainer is KillContainer for a handle, or for whoever keeps none, who passes the pod.
func (l *life) killContainer(ctx context.Context, handle *Pod, pod *v1.Pod, c Container, req ContainerRequest) (ContainerResult, error) {
	pod, err := l.lock(handle, pod)
	if err != nil {
		return ContainerResult{Name: c.Name, ID: c.ID}, err
	}
	defer l.mu.Unlock()
	o := order{life: l, ctx: context.WithoutCancel(ctx), pod: pod, named: []Container{c}}
	if err = l.settings().refuseContainer(c); err == nil {
		err = o.confirm()
	}
	if err != nil {
		return ContainerResult{Name: c.Name, ID: c.ID}, err
	}
	l.begin()
	a := l.named(o.ctx, pod, c)
	if !a.isOver() || !o.isConfirmed(c.ID) {
		o.kill(a, req)
	}
	l.sweepLocked()
	a.waitLocked(func() bool { return a.run == nil }, nil, ctx.Done)
	if a.run != nil {
		return a.result, &StillRunningError{Containers: []string{fullName(a.pod, a.result.Name)}, Cause: context.Cause(ctx)}
	}
	return a.result, resultOf(a.result).Err()
}

// cancel cancels what is under way for the pod, because the terminator is closed.
func (l *life) cancel() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, a := range l.live.all() {
		a.cancelLocked()
	}
}

// awaitIdle waits until all goroutines of the pod have ended, or ctx has. It returns the
// containers that then still have one.
func (l *life) awaitIdle(ctx context.Context) (stuck []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, a := range slices.Clone(l.live.all()) {
		a.waitLocked(func() bool { return a.goroutines == 0 }, nil, ctx.Done)
		if a.goroutines > 0 {
			stuck = append(stuck, fullName(a.pod, a.result.Name))
		}
	}
	return stuck
}

// fullName returns the name of a container in a [StillRunningError].
func fullName(pod *v1.Pod, name string) string { return string(podkey.Name(pod)) + "/" + name }
