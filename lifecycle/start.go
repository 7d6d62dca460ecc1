package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/internal/call"
)

// ErrTerminating is wrapped by the error of [Pod.Start] for a pod whose termination has
// started. It is also the cause with which the context of a start that is under way ends
// then.
var ErrTerminating = errors.New("pod is being terminated")

var (
	errRefused      = fmt.Errorf("%w, or was and has not been forgotten", ErrTerminating)
	errNoFunction   = errors.New("the function that starts it is nil")
	errNoID         = errors.New("its start gave no ID")
	errNeverStarted = errors.New("its start had not returned when the grace was over")
)

// start is [Pod.Start] with an error that does not name the container.
func (l *life) start(ctx context.Context, handle *Pod, name string, start func(context.Context) (id string, err error)) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	a, pod, err := l.admit(handle, name, start == nil, cancel)
	if err != nil {
		return err
	}
	var id string
	unknown := true // it is not known whether start has started a container
	call.GuardAbout(ctx, "the start", about(pod, name), func() (err error) {
		if id, err = start(ctx); err == nil && id == "" {
			return errNoID
		}
		unknown = err != nil && !errors.Is(err, ErrContainerNotFound)
		return err
	}, func(startErr error) { err = l.startReturned(ctx, a, id, startErr, unknown) })
	return err
}

// admit adds the attempt of a start and returns it with its pod, or returns the error for a start
// that is refused.
func (l *life) admit(handle *Pod, name string, isNil bool, cancel context.CancelCauseFunc) (*attempt, *v1.Pod, error) {
	pod, err := l.lock(handle, nil)
	if err != nil {
		return nil, nil, err
	}
	defer l.mu.Unlock()
	var before *attempt // of a sidecar that is restarted
	if l.current != nil {
		before = l.current.restartable(name)
	}
	switch {
	case l.settings().isClosed():
		return nil, nil, AgentStopping
	case l.current != nil && before == nil:
		return nil, nil, errRefused
	case isNil:
		return nil, nil, errNoFunction
	}
	l.begin()
	a := l.add(pod, name, "")
	a.start.cancel = cancel
	if before != nil {
		a.flags.hookDone, a.flags.announced, a.result.GrantedSeconds = true, true, before.result.GrantedSeconds
		l.current.awaitRestart(a, before)
	}
	return a, pod, nil
}

// startReturned handles the result of a start, and returns the error of Start. A termination
// that waits for the start goes on by itself. If the termination has given up waiting, the
// container is stopped here.
func (l *life) startReturned(ctx context.Context, a *attempt, id string, err error, unknown bool) error {
	l.mu.Lock()
	a.goroutines++
	defer a.doneAndUnlock()
	for c := l.live.ending(a, id); c != nil; c = l.live.ending(a, id) {
		c.waitLocked(func() bool { return c.run == nil }, nil, nil)
	}
	a.start.cancel, a.start.returnedAt = nil, time.Now()
	late := a.hasEnded()
	isRestart := a.run != nil && a.run.isRestart()
	isStopped := late || a.run != nil && (!isRestart || errors.Is(context.Cause(ctx), ErrTerminating))
	mayRun := err == nil || unknown && id != ""
	switch {
	case mayRun:
		l.live.follow(a, isRestart)
		a = l.identify(ctx, a, id)
	case unknown:
		a.start.err, a.flags.obsolete = err, false
		for _, other := range slices.Clone(l.live.all()) { // what proves that this one has ended proves it for all
			if other != a && other.result.Name == a.result.Name && other.isUnknown() && other.run == nil {
				if other.knownAt.After(a.knownAt) {
					a.knownAt = other.knownAt
				}
				l.live.drop(other)
			}
		}
	case a.run == nil:
		a.flags.obsolete, a.result.Outcome = true, NotFound
	case isRestart:
		l.live.drop(a)
	}
	if late && mayRun && a.run == nil && !a.isOver() {
		if l.current.isActive() {
			l.current.await(a)
		}
		a.flags.hookDone, a.deadline = true, deadline{}
		(&run{unit: l.settings().newUnit()}).startLocked(context.WithoutCancel(ctx), l.live, a, a.pod, grant(0))
		a.waitLocked(func() bool { return a.run == nil }, nil, nil)
		err = errors.Join(err, resultOf(a.result).Err())
	}
	if isStopped {
		return errors.Join(ErrTerminating, err)
	}
	return err
}

// identify gives an attempt, whose Start has returned, its ID. If that ID was named while the
// Start was under way, there are attempts for it, which may have run its hook or have been
// stopped. They are the same: one that is being stopped, is stuck or has a postStart hook under
// way stays and is returned. Otherwise the attempt takes what is known of them; that they have
// ended is not, because a runtime may say so of a container that is not there yet.
func (l *life) identify(ctx context.Context, a *attempt, id string) *attempt {
	kept := a
	var others []*attempt
	for _, same := range l.live.all() {
		if same == a || same.result.ID != id || same.flags.left {
			continue
		}
		others = append(others, same)
		isHooked := same.goroutines > 0 && !same.hasEnded() // by PostStart
		if same.run != nil || same.isEarly(a) && same.isStuck() || isHooked && a.run == nil {
			kept = same
		}
	}
	for _, same := range others {
		switch {
		case same.run != nil || same == kept:
		case !same.isEarly(a):
			l.live.end(same) // the runtime uses the ID again
		default:
			kept.takeHook(same)
			l.live.drop(same)
		}
	}
	if kept == a {
		a.result.ID, a.start.err = id, nil
	} else {
		kept.start.returnedAt, kept.knownAt = a.start.returnedAt, a.knownAt
		kept.wakeLocked()
		l.live.drop(a)
	}
	kept.flags.started, kept.flags.followed, kept.flags.obsolete = true, false, false
	kept.exits.askAnewLocked(context.WithoutCancel(ctx), kept)
	return kept
}
