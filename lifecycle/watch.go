package lifecycle

import (
	"context"
	"time"

	v1 "k8s.io/api/core/v1"
)

// exitAnswer is how long the answer of an [ExitWatcher] is waited for where something else
// has to wait for it.
const exitAnswer = 100 * time.Millisecond

// watch is what the [ExitWatcher] says of an attempt. The mutex of the pod guards it.
type watch struct {
	of       *attempt
	answered *bool           // nil: it was not asked
	exited   <-chan struct{} // nil: there is no watcher, or it does not know the ID, or has not answered
}

// askLocked asks the watcher once, if there is one, and does not wait for the answer.
func (w *watch) askLocked(ctx context.Context) {
	exits, id := w.of.settings().Exits, w.of.result.ID
	if exits == nil || id == "" || w.answered != nil {
		return
	}
	var watched <-chan struct{}
	w.answered = w.of.spawnLocked(ctx, "exit watcher", w.of.pod, w.of.result.Name, func() error {
		watched = exits.Exited(id)
		return nil
	}, func(err error) {
		w.of.addErrorLocked(err)
		w.exited = watched
	})
}

// askAgainLocked asks a watcher again that knew no container of that ID, which may have been
// started since.
func (w *watch) askAgainLocked(ctx context.Context) {
	if w.answered != nil && *w.answered && w.exited == nil {
		w.answered = nil
		w.askLocked(ctx)
	}
}

// channel returns the channel that is closed when the container exits.
func (w *watch) channel() <-chan struct{} { return w.exited }

// open returns the channel if the container runs, as far as the watcher says, else nil.
func (w *watch) open() <-chan struct{} {
	if isClosed(w.exited) {
		return nil
	}
	return w.exited
}

// isAsked reports whether the watcher was asked and has not answered.
func (w *watch) isAsked() bool { return w.answered != nil && !*w.answered }

// awaitAnswerLocked waits for the answer, but not long, and returns the channel.
func (w *watch) awaitAnswerLocked(until time.Time) <-chan struct{} {
	if w.answered != nil {
		w.of.waitLocked(func() bool { return *w.answered || w.of.settings().closed.Load() }, func() time.Time { return until }, nil)
	}
	return w.exited
}

// confirm returns the IDs of those of some containers that have ended, and of which the
// watcher says so too. Their IDs may have been used again since. The mutex is unlocked
// meanwhile.
func (p *Pod) confirm(ctx context.Context, s *state, pod *v1.Pod, asked func() []Container) map[string]bool {
	if p.terminator.settings.Exits == nil || s.live == nil && s.current == nil {
		return nil
	}
	p.begin(s, pod)
	var watches []*watch
	for _, c := range asked() {
		if c.ID == "" {
			continue
		}
		if a := s.find(pod, c.ID); a != nil && a.isOver() {
			watches = append(watches, &watch{of: a})
			watches[len(watches)-1].askLocked(context.WithoutCancel(ctx))
		}
	}
	confirmed, until := map[string]bool{}, time.Now().Add(exitAnswer)
	for _, w := range watches {
		confirmed[w.of.result.ID] = isClosed(w.awaitAnswerLocked(until))
	}
	return confirmed
}
