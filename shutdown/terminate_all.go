package shutdown

import (
	"context"
	"errors"
	"sync"
	"time"

	"k8s.io/klog/v2"

	"github.com/kubegrace/kubegrace/shutdown/internal/call"
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

// TerminateAll drains the node without a shutdown, for an agent that stops its pods when it is
// stopped itself. It uses the same buckets, the same times and the pod policy of [KindUnknown].
// It returns the report, after Options.OnReport has returned; the error joins the failures that
// are not those of single kills. From its call on no pod is admitted any more.
//
// It may be called before, during and after Run. It neither holds nor releases the host, stores
// no shutdown, and does not publish the node state. If a shutdown is draining, TerminateAll waits
// for it instead; while it is not settled whether that of a former agent goes on, it waits for
// five seconds at most. If one begins meanwhile, it takes over the pods and TerminateAll waits for
// it. If that shutdown is cancelled or ends with Run, TerminateAll drains the rest, and its report
// is of this part.
//
// The end of ctx stops the kills and the waits. Calls that ignore their context are waited for
// ten seconds more; then the error names them. If ctx ends while TerminateAll waits for a
// shutdown, the report is empty. A second call waits for the first and returns the same.
func (m *Manager) TerminateAll(ctx context.Context) (Report, error) {
	m.admission.ending.Store(true)
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
	m.awaitSettled(ctx)
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	p := m.newLocalPassage(ctx)
	m.local.register(p)
	defer m.local.register(nil)
	var current *nodeShutdown
	m.inbox.post(func(l *loop) {
		if l.state() == draining {
			current = l.current
		}
	})
	if current != nil {
		return current.account.wait(ctx)
	}
	leave := m.outbox.Open(ctx)
	report := p.run()
	queueCalls := leave()
	m.inbox.post(func(l *loop) { current = l.current })
	err := errors.Join(p.err(), context.Cause(ctx))
	if current != nil && errors.Is(p.drain.Stopped(), errTakenOver) {
		report, err = current.account.wait(ctx)
	}
	p.awaitReport(ctx)
	cancel(nil) // ends what was left running; it has heard of the end before
	until := time.Now().Add(hangTime)
	return report, errors.Join(err, hangingError(p.calls, until), hangingError(queueCalls, until))
}

// awaitSettled waits until it is known whether the shutdown of a former agent goes on.
func (m *Manager) awaitSettled(ctx context.Context) {
	for until := time.Now().Add(settleTime); m.inbox.phase.Load() == phaseRunning && m.admission.state() == unsettled && time.Now().Before(until) && ctx.Err() == nil; {
		pause(ctx, settlePause)
	}
}

// localPassage is the drain of TerminateAll.
type localPassage struct {
	m        *Manager
	ctx      context.Context
	calls    *call.Group
	number   uint64
	account  *account
	drain    *drain.Drain
	reported *call.Future[struct{}] // the call of OnReport; nil: none was made

	mu   sync.Mutex // guards errs
	errs []error
}

func (m *Manager) newLocalPassage(ctx context.Context) *localPassage {
	began := time.Now()
	p := &localPassage{m: m, ctx: ctx, calls: &call.Group{}, number: m.nextNumber(), account: newAccount(began, "TerminateAll", m)}
	p.drain = drain.New(ctx, m.drainOptions(p.calls, Event{Origin: "TerminateAll"}, p.account.podPolicy), drain.Request{
		Number: m.nextNumber(), Account: p.account.kills, Publish: p.publish,
		Table: timetable.Request{Schedule: m.schedule, Options: m.opts.Plan, Received: began},
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
		p.m.unended.add(p.account.cancel()...)
	}
	p.m.last.set(p.number, p.account.report)
	p.drain.AwaitStragglers(hangTime)
	report := p.account.report()
	if p.m.opts.OnReport != nil {
		p.reported = call.Start(p.ctx, p.calls, "Options.OnReport", func(ctx context.Context) (struct{}, error) {
			p.m.opts.OnReport(ctx, report)
			return struct{}{}, nil
		})
	}
	return report
}

// awaitReport waits until Options.OnReport has returned, for hangTime at most; hangingError names
// a call that has not.
func (p *localPassage) awaitReport(ctx context.Context) {
	if p.reported != nil {
		_, _ = p.reported.Await(ctx, time.Now().Add(hangTime))
	}
}

// err joins the failures of the drain.
func (p *localPassage) err() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return errors.Join(p.errs...)
}

func (p *localPassage) publish() *outbox.Publication {
	p.account.setPolicy(p.m.policy(p.ctx, p.calls, KindUnknown, p.Fail))
	return nil
}

func (p *localPassage) Planned(timetable.Table) *call.Future[struct{}] {
	onRecord, complete := call.NewFuture[struct{}]()
	complete(struct{}{}, nil)
	return onRecord
}

func (p *localPassage) Passed(drain.Step) {}
func (p *localPassage) Begins(int)        {}
func (p *localPassage) Ends(int)          {}

func (p *localPassage) Signalled(k *kills.Kill) {
	if p.drain.Stopped() != nil {
		p.m.unended.add(k)
	}
}

func (p *localPassage) Ended(k *kills.Kill)             { p.m.podEnded(k, p.account.podPolicy()) }
func (p *localPassage) GaveUp(k *kills.Kill, err error) { p.m.podGivenUp(k, err) }

func (p *localPassage) Fail(err error) {
	if err == nil {
		return
	}
	klog.FromContext(p.ctx).Error(err, "Shutdown manager met a failure")
	p.account.addErr(err)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.errs = append(p.errs, err)
}

// localDrain holds the call of TerminateAll that is under way, and its drain.
type localDrain struct {
	mu      sync.Mutex           // guards all below
	current *call.Future[Report] // nil: none is under way
	passage *localPassage        // that a shutdown takes over; nil: none
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

// register sets the drain that a shutdown takes over; nil: none.
func (l *localDrain) register(p *localPassage) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.passage = p
}

// takeOver stops the drain of TerminateAll, because a shutdown begins that kills its pods.
func (l *localDrain) takeOver(underway *unended) {
	l.mu.Lock()
	p := l.passage
	l.mu.Unlock()
	if p != nil {
		p.drain.Stop(errTakenOver)
		underway.add(p.account.cancel()...)
	}
}
