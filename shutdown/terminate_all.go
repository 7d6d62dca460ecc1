package shutdown

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/kubegrace/kubegrace/shutdown/internal/call"
	"github.com/kubegrace/kubegrace/shutdown/internal/statuses"
)

// TerminateAll is the drain without a shutdown of the node: for an agent that
// stops its pods when it is stopped itself. It goes through the same buckets with
// the same time beside the kills, kills with the same policy (that of [KindUnknown]), and gives
// the report, with what went wrong beside the pods as its error. No pod is
// admitted from its call on, for good.
//
// It may be called before Run, during it and after it. The host is neither held
// for it nor let go, nothing is stored, and the node's state is not published. A
// shutdown that is under way is waited for instead, and one that begins meanwhile takes
// the pods over: then that is waited for. If that is cancelled, or ends with Run, the drain
// goes on, and the report is of what it has done since. The end of ctx stops the kills and
// the waiting; calls that ignore their context are waited for ten seconds more, and are
// named in the error. What was waited for instead has no report then. A second
// call waits for the first.
func (m *Manager) TerminateAll(ctx context.Context) (Report, error) {
	m.admission.terminating.Store(true)
	for {
		other, end := m.local.begin()
		if other == nil {
			report, err := m.terminateAll(ctx)
			end(report, err)
			return report, err
		}
		report, err := other.Wait(ctx)
		if ctx.Err() != nil || !report.Ended.IsZero() {
			return report, err
		}
	}
}

// terminateAll is the one TerminateAll that goes on.
func (m *Manager) terminateAll(ctx context.Context) (Report, error) {
	for {
		report, err := m.terminate(ctx)
		left := report.Cancelled || report.Ended.IsZero() // of the shutdown, or by the end of Run
		if !left || ctx.Err() != nil {
			return report, err
		}
	}
}

// terminate is one drain without a shutdown of the node, or the waiting for the shutdown
// that is under way. Its report is cancelled, or has no end, if pods were left.
func (m *Manager) terminate(ctx context.Context) (Report, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	calls := &call.Group{}
	request := drainRequest{event: Event{Origin: "TerminateAll"}, received: time.Now(), local: true}
	request.began = request.received
	d := m.newDrain(ctx, request, calls)
	current, shared := m.enlist(d)
	if current != nil {
		return current.wait(ctx)
	}
	if shared == nil {
		d.statuses.queue = statuses.New(ctx, calls)
	}
	d.run()
	report, err := d.wait(ctx)
	var telling *call.Group
	if shared != nil {
		telling = shared.leave()
	}
	var next *drain
	m.inbox.ask(func(l *loop) {
		l.forget(d)
		next = l.current
	})
	if next != nil && errors.Is(context.Cause(d.halt.ctx), errTakenOver) {
		return next.wait(ctx)
	}
	cause := context.Cause(ctx)
	cancel(nil) // of calls that were left behind, and have heard it already
	until := time.Now().Add(hangTime)
	return report, errors.Join(err, cause, hangingError(calls, until), hangingError(telling, until))
}

// localDrain is the one TerminateAll that goes on.
type localDrain struct {
	mu    sync.Mutex           // guards under
	under *call.Future[Report] // nil: none does
}

// begin gives the one that goes on; nil: there is none, and the caller is it until it calls
// end.
func (l *localDrain) begin() (other *call.Future[Report], end func(Report, error)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.under != nil {
		return l.under, nil
	}
	future, complete := call.NewFuture[Report]()
	l.under = future
	return nil, func(report Report, err error) {
		l.mu.Lock()
		l.under = nil
		l.mu.Unlock()
		complete(report, err)
	}
}

// enlist lets the loop, if it runs, know of a drain, so that shutdowns take it over and
// it joins pods that still end. It gives the shutdown that is under way; nil: there is
// none, and then the queue of the loop, which the drain has to leave; nil: no loop runs.
func (m *Manager) enlist(d *drain) (current *drain, shared *sharedQueue) {
	m.inbox.ask(func(l *loop) {
		if current = l.current; current == nil {
			d.killing.earlier = l.rosters()
			shared = l.queue
			shared.join()
			d.statuses.queue = shared.Queue
			l.earlier = slices.Insert(l.earlier, 0, d)
		}
	})
	return current, shared
}

// wait waits for the end of a drain and gives its report; none if ctx ends before.
func (d *drain) wait(ctx context.Context) (Report, error) { return d.over.Wait(ctx) }

// hangingError waits until a time for what still runs, and gives an error that names what
// does then. A nil group has nothing that runs.
func hangingError(calls *call.Group, until time.Time) error {
	if calls == nil {
		return nil
	}
	enough := make(chan struct{})
	timer := time.AfterFunc(time.Until(until), func() { close(enough) })
	defer timer.Stop()
	hanging := calls.Wait(enough)
	const most = 10
	switch n := len(hanging); {
	case n == 0:
		return nil
	case n > most:
		return fmt.Errorf("%d calls have not returned, among them %s", n, strings.Join(hanging[:most], ", "))
	default:
		return fmt.Errorf("calls that have not returned: %s", strings.Join(hanging, ", "))
	}
}
