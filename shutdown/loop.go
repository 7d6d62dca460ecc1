package shutdown

import (
	"context"
	"math"
	"slices"
	"sync"
	"time"

	"k8s.io/klog/v2"
)

// message is something the event loop has to do. It runs in the loop and must
// not block.
type message func(*loop)

// loop owns the state of the shutdown. It never waits for pods, for the host or
// for reports, so that a cancellation is heard at any time.
type loop struct {
	m         *Manager
	ctx       context.Context // of Run
	keeper    *keeper         // nil: nothing is watched
	announcer *announcer
	work      *sync.WaitGroup // of all goroutines of Run

	current   *drain   // of the shutdown that is under way; nil: none is
	earlier   []*drain // cancelled or overtaken, the latest first
	announced bool     // the host has said that it shuts down
	triggered bool     // Trigger has
	session   uint64   // in which the host was last heard
	numbers   uint64   // of the shutdowns so far

	unfinished *progress // of a former agent; nil: none, or it was taken up
	said       bool      // the node's state is what this agent says it is
	trouble    []error   // with the state files, for the next report
}

// hear is an event of the host, in one of its sessions.
func (l *loop) hear(event Event, session uint64, received time.Time) {
	l.session = session
	if event.Cancelled {
		l.hostCancelled()
		return
	}
	l.hostBegan(event, received)
}

// found is what a new session says of the shutdown under way; nil: of none. It
// counts only as long as that session has sent no event, which is newer. Not
// known means that the host cannot tell, and then nothing is concluded.
func (l *loop) found(pending *Event, known bool, session uint64, received time.Time) {
	switch {
	case l.session == session:
	case !known:
		l.cannotTell(received)
	case pending != nil && !pending.Cancelled:
		l.hostBegan(*pending, received)
	default:
		l.hostCancelled()
	}
	l.undo()
}

// hostBegan is a shutdown of the host, which waits as long as it was found to when
// the event does not say. The longest duration is no limit.
func (l *loop) hostBegan(event Event, received time.Time) {
	l.announced = true
	if limit, asked := l.m.lock.limit(); asked && limit < math.MaxInt64 && event.Deadline.IsZero() {
		event.Deadline = received.Add(limit)
	}
	l.begin(event, received)
}

// hostCancelled ends the host's part in a shutdown; one that was triggered too
// goes on.
func (l *loop) hostCancelled() {
	l.forgo()
	l.announced = false
	if !l.triggered {
		l.cancel()
	}
}

// trigger is an event of the embedder. It cancels the host's shutdown too.
func (l *loop) trigger(event Event) {
	l.triggered = !event.Cancelled
	if event.Cancelled {
		l.forgo()
		l.announced = false
		l.cancel()
		return
	}
	l.begin(event, time.Now())
}

// begin refuses admission and starts a drain. A shutdown that is under way
// already goes on, unless the event leaves it less time: then a new drain
// overtakes it, and the pods that still end join it.
func (l *loop) begin(event Event, received time.Time) {
	if l.current != nil && !l.current.outlasts(event, received) {
		return
	}
	klog.FromContext(l.ctx).V(1).Info("Shutdown manager detected new shutdown event", "kind", event.Kind, "origin", event.Origin)
	l.m.shuttingDown.Store(true)
	l.said = true
	d := l.newDrain(event, received)
	if l.current == nil {
		d.said = l.announcer.detected(d.state())
	} else {
		d.said, d.overtook = l.current.said, true
		l.retire(errOvertaken)
	}
	d.earlier = slices.Clone(l.earlier)
	l.current = d
	l.work.Go(func() {
		d.run()
		l.m.post(func(l *loop) { l.forget(d) })
	})
}

// newDrain is the next drain: a new one, or that of a former agent.
func (l *loop) newDrain(event Event, received time.Time) *drain {
	l.numbers++
	d := l.m.newDrain(l.ctx, event, received)
	d.number, d.hosted, d.epoch = l.numbers, l.announced, l.m.lock.suspend()
	d.errs, l.trouble = l.trouble, nil
	if l.unfinished != nil {
		d.resume(l.unfinished)
		l.unfinished = nil
	}
	d.choosePolicy()
	return d
}

// cancel opens admission again, stops the drain and has the lock taken anew.
func (l *loop) cancel() {
	if l.current == nil {
		return
	}
	klog.FromContext(l.ctx).V(1).Info("Shutdown manager detected shutdown cancellation")
	l.retire(errCancelled)
	l.m.lock.renew()
	l.m.shuttingDown.Store(false)
	l.announcer.cancelled()
	if l.keeper != nil {
		l.keeper.rouse()
	}
}

// retire stops the current drain: it signals no further pod.
func (l *loop) retire(cause error) {
	l.current.stop(cause)
	l.earlier = slices.Insert(l.earlier, 0, l.current)
	l.current = nil
}

// forget drops a drain whose pods have all ended.
func (l *loop) forget(ended *drain) {
	l.earlier = slices.DeleteFunc(l.earlier, func(d *drain) bool { return d == ended })
}
