package shutdown

import (
	"context"
	"errors"
	"sync"
	"time"

	"k8s.io/klog/v2"

	"github.com/kubegrace/kubegrace/internal/call"
	"github.com/kubegrace/kubegrace/shutdown/internal/drain"
	"github.com/kubegrace/kubegrace/shutdown/internal/kills"
	"github.com/kubegrace/kubegrace/shutdown/internal/outbox"
	"github.com/kubegrace/kubegrace/shutdown/internal/timetable"
)

// settleTime is how long TerminateAll waits for the host to say whether the shutdown of a former
// agent goes on.
const settleTime = 5 * time.Second

// settlePause is the time between two looks at that.
const settlePause = 50 * time.Millisecond

// terminations are the calls of TerminateAll, one at a time, and the drain that is under way.
type terminations struct {
	ledger *ledger
	inbox  *inbox
	state  func() state

	mu      sync.Mutex           // guards all below
	current *call.Future[Report] // nil: none is under way
	passage *localPassage        // that a shutdown takes over; nil: none
}

// run is TerminateAll. A second call waits for the first.
func (t *terminations) run(ctx context.Context) (Report, error) {
	for {
		other, end := t.claim()
		if other == nil {
			report, err := t.terminateAll(ctx)
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
func (t *terminations) terminateAll(ctx context.Context) (Report, error) {
	for {
		report, err := t.terminate(ctx)
		left := report.Cancelled || report.Ended.IsZero() // by a cancelled shutdown, or one that ended with Run
		if !left || ctx.Err() != nil {
			return report, err
		}
	}
}

// terminate does one drain, or waits for the shutdown that is under way. A report that is
// cancelled or has no end means that pods are left.
func (t *terminations) terminate(ctx context.Context) (Report, error) {
	t.awaitSettled(ctx)
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	p := newLocalPassage(ctx, t.ledger)
	t.register(p)
	defer t.register(nil)
	var current *nodeShutdown
	t.inbox.post(func(s *states) {
		if s.isIn(s.current, draining) {
			current = s.current
		}
	})
	if current != nil {
		return current.account.wait(ctx)
	}
	leave := t.ledger.outbox.Open(ctx)
	t.ledger.outbox.Suspend() // marks are sent again, also after a cancelled shutdown
	report := p.run()
	queueCalls := leave()
	t.inbox.post(func(s *states) { current = s.current })
	err := errors.Join(p.err(), errors.Join(report.podErrs()...), context.Cause(ctx))
	if current != nil && errors.Is(p.drain.Stopped(), errTakenOver) {
		report, err = current.account.wait(ctx)
	}
	more := answerTime
	if !p.awaitReport(ctx) {
		more = hangTime // from the end of its context
	}
	cancel(nil) // ends what was left running; it has heard of the end before
	until := time.Now().Add(max(time.Until(p.hanging), more))
	return report, errors.Join(err, hangingError(p.calls, until), hangingError(queueCalls, until))
}

// awaitSettled waits until it is known whether the shutdown of a former agent goes on.
func (t *terminations) awaitSettled(ctx context.Context) {
	for until := time.Now().Add(settleTime); t.inbox.in(phaseRunning) && t.state() == unsettled && time.Now().Before(until) && ctx.Err() == nil; {
		pause(ctx, settlePause)
	}
}

// localPassage is the drain of TerminateAll.
type localPassage struct {
	*ledger

	ctx      context.Context
	calls    *call.Group
	number   uint64
	account  *account
	drain    *drain.Drain
	hanging  time.Time              // until when calls that ignore their context are waited for
	reported *call.Future[struct{}] // the call of OnReport; nil: none was made

	mu   sync.Mutex // guards errs
	errs []error
}

// newLocalPassage returns a drain that has not begun.
func newLocalPassage(ctx context.Context, l *ledger) *localPassage {
	began := time.Now()
	p := &localPassage{ledger: l, ctx: ctx, calls: &call.Group{}, number: l.nextNumber(), account: newAccount(began, "TerminateAll", l)}
	p.drain = drain.New(ctx, l.drainOptions(p.calls, Event{Origin: "TerminateAll"}, p.account.podPolicy), drain.Request{
		Number: l.nextNumber(), Account: p.account.kills, Publish: p.publish,
		Table: l.request(time.Time{}, began),
	}, p)
	return p
}

// run drains the node and waits for all whom it has killed.
func (p *localPassage) run() Report {
	p.drain.Run()
	if p.ctx.Err() == nil {
		p.account.end(time.Now())
	}
	if p.drain.Stopped() != nil && p.ctx.Err() == nil {
		p.unended.add(p.account.cancel()...)
	}
	p.last.set(p.number, p.account.report)
	p.hanging = time.Now().Add(hangTime)
	p.drain.AwaitHanging(hangTime - answerTime) // the rest is for OnReport
	report := p.account.report()
	if p.opts.OnReport != nil {
		p.reported = call.Start(p.ctx, p.calls, "Options.OnReport", func(ctx context.Context) (struct{}, error) {
			p.opts.OnReport(ctx, report)
			return struct{}{}, nil
		})
	}
	return report
}

// awaitReport waits until Options.OnReport has returned, for hangTime at most; hangingError names
// a call that has not. It returns false then.
func (p *localPassage) awaitReport(ctx context.Context) bool {
	if p.reported == nil {
		return true
	}
	_, err := p.reported.Await(ctx, time.Now().Add(hangTime))
	return err == nil
}

// err joins the failures of the drain.
func (p *localPassage) err() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return errors.Join(p.errs...)
}

func (p *localPassage) publish() *outbox.Publication {
	p.account.setPolicy(p.policy(p.ctx, p.calls, KindUnknown, p.Fail))
	return nil
}

func (p *localPassage) Planned(timetable.Table) *call.Future[struct{}] {
	onRecord, complete := call.NewFuture[struct{}]()
	complete(struct{}{}, nil)
	return onRecord
}

func (p *localPassage) Passed(drain.Step)     {}
func (p *localPassage) Begins(int)            {}
func (p *localPassage) Ends(int)              {}
func (p *localPassage) Signalled(*kills.Kill) {}

func (p *localPassage) Ended(k *kills.Kill)             { p.podEnded(k, p.account.podPolicy()) }
func (p *localPassage) GaveUp(k *kills.Kill, err error) { p.podGivenUp(k, err) }

func (p *localPassage) Fail(err error) {
	klog.FromContext(p.ctx).Error(err, "Shutdown manager met a failure")
	p.account.addErr(err)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.errs = append(p.errs, err)
}

// claim returns the call that is under way. If there is none, other is nil and the caller's own
// call is under way until it calls end.
func (t *terminations) claim() (other *call.Future[Report], end func(Report, error)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.current != nil {
		return t.current, nil
	}
	future, complete := call.NewFuture[Report]()
	t.current = future
	return nil, func(report Report, err error) {
		t.mu.Lock()
		t.current = nil
		t.mu.Unlock()
		complete(report, err)
	}
}

// register sets the drain that a shutdown takes over; nil: none.
func (t *terminations) register(p *localPassage) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.passage = p
}

// takeOver stops the drain of TerminateAll, because a shutdown drains that kills its pods: the kills
// that are under way are those of both.
func (t *terminations) takeOver(s *nodeShutdown) {
	t.mu.Lock()
	p := t.passage
	t.mu.Unlock()
	if p != nil {
		p.drain.Stop(errTakenOver)
		underway := p.account.cancel()
		t.ledger.unended.add(underway...)
		s.account.kills.TakeOver(underway)
	}
}
