package lifecycle

import (
	"context"
	"time"
)

// exitAnswer is how long the answer of an [ExitWatcher] is waited for where something else
// has to wait for it.
const exitAnswer = 100 * time.Millisecond

// watch is what the [ExitWatcher] says of a container. The mutex of the pod's life guards it.
type watch struct {
	answered *bool           // nil: it was not asked
	exited   <-chan struct{} // nil: there is no watcher, or it does not know the ID, or has not answered
}

// channel returns the channel that is closed when the container exits.
func (w *watch) channel() <-chan struct{} { return w.exited }

// isClosed reports whether the container has exited, as the watcher says.
func (w *watch) isClosed() bool { return isClosed(w.exited) }

// open returns the channel if the container runs, as far as the watcher says, else nil.
func (w *watch) open() <-chan struct{} {
	if w.isClosed() {
		return nil
	}
	return w.exited
}

// isAsked reports whether the watcher was asked and has not answered.
func (w *watch) isAsked() bool { return w.answered != nil && !*w.answered }

// askLocked asks the watcher about the container of an attempt, if there is one, and does not
// wait for the answer. It asks once, and again only if the watcher knew no container of that
// ID, which may have been started since.
func (w *watch) askLocked(ctx context.Context, a *attempt, again bool) {
	exits, id := a.settings.Exits, a.result.ID
	isDone := w.answered != nil && (!again || w.isAsked() || w.exited != nil)
	if exits == nil || id == "" || isDone {
		return
	}
	var watched <-chan struct{}
	var answered *bool
	answered = a.spawnLocked(ctx, "the exit watcher", a.pod, a.result.Name, func() error {
		watched = exits.Exited(id)
		return nil
	}, func(err error) {
		a.addErrorLocked(err)
		if w.answered == answered { // it was not asked anew since
			w.exited = watched
		}
	})
	w.answered = answered
}

// askAnewLocked asks about a container that may have been started again with its ID.
func (w *watch) askAnewLocked(ctx context.Context, a *attempt) {
	*w = watch{}
	w.askLocked(ctx, a, false)
}

// awaitAnswerLocked waits for the answer, but not long, and returns the channel.
func (w *watch) awaitAnswerLocked(a *attempt, until time.Time) <-chan struct{} {
	if w.answered != nil {
		a.waitLocked(func() bool { return *w.answered || a.settings.isClosed() }, func() time.Time { return until }, nil)
	}
	return w.exited
}
