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

// TerminateAll drains the node without a shutdown, for an agent that stops its pods when it is
// stopped itself. It uses the same buckets, the same times and the pod policy of [KindUnknown].
// It returns the report, after Options.OnReport has returned; the error joins the failures that
// are not those of single kills. From its call on no pod is admitted any more.
//
// It may be called before, during and after Run. It neither holds nor releases the host, stores
// nothing, and does not publish the node state. If a shutdown is under way, TerminateAll waits
// for it instead. If one begins meanwhile, it takes over the pods and TerminateAll waits for it.
// If that shutdown is cancelled or ends with Run, TerminateAll drains the rest, and its report is
// of this part.
//
// The end of ctx stops the kills and the waits. Calls that ignore their context are waited for
// ten seconds more; then the error names them. If ctx ends while TerminateAll waits for a
// shutdown, the report is empty. A second call waits for the first and returns the same.
func (m *Manager) TerminateAll(ctx context.Context) (Report, error) {
	m.admission.terminating.Store(true)
	for {
		other, end := m.local.claim()
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

// terminateAll drains until no pods are left by a cancelled or interrupted shutdown.
func (m *Manager) terminateAll(ctx context.Context) (Report, error) {
	for {
		report, err := m.terminate(ctx)
		left := report.Cancelled || report.Ended.IsZero() // by a cancelled shutdown, or one that ended with Run
		if !left || ctx.Err() != nil {
			return report, err
		}
	}
}

// terminate does one drain, or waits for the shutdown that is under way. A report that is
// cancelled or has no end means that pods are left.
func (m *Manager) terminate(ctx context.Context) (Report, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	calls := &call.Group{}
	request := drainRequest{event: Event{Origin: "TerminateAll"}, received: time.Now(), local: true}
	request.started = request.received
	d := m.newDrain(ctx, request, calls)
	current, shared := m.registerLocal(d)
	if current != nil {
		return current.wait(ctx)
	}
	if shared == nil {
		d.statuses.queue = statuses.New(ctx, calls)
	}
	d.run()
	report, err := d.wait(ctx)
	var queueCalls *call.Group
	if shared != nil {
		queueCalls = shared.leave()
	}
	var next *drain
	m.inbox.postAndWait(func(l *loop) {
		l.removeEnded(d)
		next = l.current
	})
	if next != nil && errors.Is(context.Cause(d.halt.ctx), errTakenOver) {
		report, err = next.wait(ctx)
	} else {
		err = errors.Join(err, context.Cause(ctx))
	}
	d.hooks.awaitReport(ctx, time.Now().Add(hangTime))
	cancel(nil) // ends what was left running; it has heard of the end before
	until := time.Now().Add(hangTime)
	return report, errors.Join(err, hangingError(calls, until), hangingError(queueCalls, until))
}

// localDrain holds the call of TerminateAll that is under way.
type localDrain struct {
	mu      sync.Mutex           // guards current
	current *call.Future[Report] // nil: none is under way
}

// claim returns the call that is under way. If there is none, other is nil and the caller's own
// call is under way until it calls end.
func (l *localDrain) claim() (other *call.Future[Report], end func(Report, error)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.current != nil {
		return l.current, nil
	}
	future, complete := call.NewFuture[Report]()
	l.current = future
	return nil, func(report Report, err error) {
		l.mu.Lock()
		l.current = nil
		l.mu.Unlock()
		complete(report, err)
	}
}

// registerLocal tells the loop of a local drain. If a shutdown is under way it is returned, and
// the drain must not run. Otherwise shutdowns can take over the drain's pods, and shared is the
// queue of the loop, which the drain has to leave at its end. Both are nil if no loop runs.
func (m *Manager) registerLocal(d *drain) (current *drain, shared *sharedQueue) {
	m.inbox.postAndWait(func(l *loop) {
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

// wait waits for the end of a drain and returns its report. If ctx ends first the report is
// empty.
func (d *drain) wait(ctx context.Context) (Report, error) { return d.done.Wait(ctx) }

// hangingError waits for the calls of a group until a time. It returns an error that names the
// calls that still run, or nil. A nil group has no calls.
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
