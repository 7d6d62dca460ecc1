package shutdown

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/klog/v2"

	"github.com/kubegrace/kubegrace/shutdown/internal/call"
	"github.com/kubegrace/kubegrace/shutdown/internal/drain"
	"github.com/kubegrace/kubegrace/shutdown/internal/kills"
	"github.com/kubegrace/kubegrace/shutdown/internal/outbox"
	"github.com/kubegrace/kubegrace/shutdown/internal/timetable"
)

var (
	errCancelled  = errors.New("the shutdown was cancelled")
	errOvertaken  = errors.New("the host leaves less time than it had announced")
	errTakenOver  = errors.New("the node shuts down")
	errNotDelayed = errors.New("the host did not wait: no lock was held")
)

const (
	// answerTime bounds the wait for a function that should return at once.
	answerTime = time.Second
	// storeTries bounds the repeated attempts to write the final report, which no later write
	// replaces. A full disk may be full for a moment only. storePause is the time between two.
	storeTries, storePause = time.Second, 100 * time.Millisecond
	// hangTime is how long Run waits for a call that ignores its context, counted from the end of its
	// context and of the host's time.
	hangTime = 10 * time.Second
)

// passage is one drain of a shutdown of the node, from its begin until all whom it has killed have
// ended. It tells the shutdown and the record what the drain finds out.
type passage struct {
	m        *Manager
	ctx      context.Context // of Run
	calls    *call.Group
	shutdown *nodeShutdown
	drain    *drain.Drain
	kind     Kind // at the begin
}

// startDrain begins a drain of a shutdown. table is the timetable of a former agent; nil: a new one
// is made.
func (l *loop) startDrain(s *nodeShutdown, request timetable.Request, table *timetable.Table) {
	p := &passage{m: l.m, ctx: l.ctx, calls: l.calls, shutdown: s, kind: s.account.head().Kind}
	event := Event{Kind: p.kind, Origin: s.account.head().Origin, Deadline: s.hostEnd()}
	p.drain = drain.New(l.ctx, l.m.drainOptions(l.calls, event, s.account.podPolicy), drain.Request{
		Number: l.m.nextNumber(), Account: s.account.kills, Table: request, Resumed: table, Publish: p.publish,
	}, p)
	s.drains = append(s.drains, p.drain)
	l.drains.Go(p.run)
}

// run does the whole drain. The release of the host's lock does not depend on it: a timer
// releases the lock at the end of the host's time, even if run hangs.
func (p *passage) run() {
	p.m.recorder.saveTimes(p.shutdown.account.head())
	ended := p.drain.Run()
	cause := p.drain.Stopped()
	switch {
	case errors.Is(cause, errOvertaken):
		return // the next drain of the shutdown goes on, with the same account
	case cause == nil:
		p.release()
	case errors.Is(cause, errCancelled):
		p.shutdown.account.end(time.Now())
		p.m.recorder.save(0)
	default: // the end of Run: the next agent goes on
		p.m.last.set(p.shutdown.number, p.shutdown.account.report)
	}
	p.finish(cause, ended)
}

// release stores the report and has the lock let go. If the lock of a former agent is just being
// adopted, it waits for that first.
func (p *passage) release() {
	s, table := p.shutdown, *p.shutdown.soFar().table
	if s.hold != nil && s.ofHost() {
		s.hold.AwaitAdoption(p.ctx, table.H())
		if !s.hold.Waits() {
			p.Fail(errNotDelayed)
		}
	}
	at := time.Now()
	s.account.end(at)
	p.m.last.set(s.number, s.account.report)
	p.m.showTimes(s.number, s.account.head().Started, at)
	p.m.recorder.saveTimes(p.shutdown.account.head())
	p.store(table.Unlock())
	if p.drain.Stopped() != nil {
		return // it was cancelled meanwhile, or has begun again: the lock is not this drain's to release
	}
	p.onRelease(table.Unlock())
	if s.hold != nil {
		if err := s.hold.LetGo(p.ctx); err != nil {
			p.Fail(err)
		}
	}
	p.m.inbox.post(func(l *loop) {
		if l.current == s && l.state() == draining && p.drain.Stopped() == nil {
			l.become(released)
		}
	})
	klog.FromContext(p.ctx).V(1).Info("Shutdown manager completed processing shutdown event, node will shutdown shortly")
}

// store waits until the report is on record, at most until a time. It tries again for a second if
// the disk fails.
func (p *passage) store(until time.Time) {
	for tries := time.Now().Add(storeTries); ; {
		_, err := p.m.recorder.save(0).Await(p.ctx, until)
		switch {
		case errors.Is(err, call.ErrTimeSpent):
			p.Fail(fmt.Errorf("failed to store the report before the host is let go: %w", err))
			return
		case err == nil || p.ctx.Err() != nil || !time.Now().Before(tries) || !time.Now().Before(until):
			return // the recorder reports a failed write
		}
		pause(p.ctx, storePause)
	}
}

// onRelease calls Options.OnRelease and waits for it until a time.
func (p *passage) onRelease(until time.Time) {
	if p.m.opts.OnRelease == nil {
		return
	}
	ctx, cancel := context.WithDeadlineCause(p.ctx, until, call.ErrTimeSpent)
	defer cancel()
	called := call.Start(ctx, p.calls, "Options.OnRelease", func(ctx context.Context) (struct{}, error) {
		p.m.opts.OnRelease(ctx)
		return struct{}{}, nil
	})
	if _, err := called.Await(ctx, until); err != nil {
		p.Fail(fmt.Errorf("failed to say that the host is let go: %w", err))
	}
}

// finish waits for the pods that outlive the drain, stores their ends, and passes the report on.
func (p *passage) finish(cause error, ended bool) {
	s := p.shutdown
	for _, d := range s.drains {
		d.AwaitStragglers(hangTime)
	}
	if p.ctx.Err() == nil && !ended {
		p.m.recorder.save(podLag)
	}
	if errors.Is(p.drain.Stopped(), errOvertaken) {
		return // it has begun again since
	}
	report := s.account.report()
	if cause == nil || errors.Is(cause, errCancelled) {
		p.m.last.set(s.number, s.account.report)
	}
	p.onReport(report)
	s.account.finish(report)
}

// onReport passes the report to Options.OnReport and does not wait.
func (p *passage) onReport(report Report) {
	if p.m.opts.OnReport == nil {
		return
	}
	call.Start(p.ctx, p.calls, "Options.OnReport", func(ctx context.Context) (struct{}, error) {
		p.m.opts.OnReport(ctx, report)
		return struct{}{}, nil
	})
}

// publish has the node state published, unless an earlier drain of the shutdown has. It asks the
// loop, which knows whether the shutdown was cancelled: its state must not follow the state that
// reverts it.
func (p *passage) publish() *outbox.Publication {
	published := p.shutdown.publication()
	if published != nil {
		return published
	}
	p.shutdown.account.setPolicy(p.m.policy(p.ctx, p.calls, p.kind, p.Fail))
	p.m.inbox.post(func(l *loop) {
		if l.current != p.shutdown || l.state() == dismissed {
			return
		}
		published = l.m.outbox.Publish(p.shutdown.nodeState())
	})
	p.shutdown.setPublished(published)
	return published
}

// Planned stores the timetable and whom the drain means to kill.
func (p *passage) Planned(table timetable.Table) *call.Future[struct{}] {
	p.shutdown.plan(table)
	p.m.inbox.post(func(l *loop) {
		if l.current == p.shutdown && l.state() == draining {
			l.holdUntilEnd()
		}
	})
	return p.m.recorder.save(0)
}

// Passed stores that a step before the first bucket has been.
func (p *passage) Passed(step drain.Step) {
	p.shutdown.update(func(so *progress) { so.steps[step] = true })
	p.m.recorder.save(stepLag)
}

// Begins stores that the kills of a bucket begin.
func (p *passage) Begins(bucket int) {
	p.shutdown.update(func(so *progress) { so.begun = max(so.begun, bucket+1) })
	p.m.recorder.save(stepLag)
}

// Ends stores that a bucket is done.
func (p *passage) Ends(bucket int) {
	p.shutdown.update(func(so *progress) { so.done = bucket + 1 })
	p.m.recorder.save(stepLag)
}

// Signalled stores that a pod was signalled.
func (p *passage) Signalled(k *kills.Kill) {
	if p.shutdown.account.cancelled() {
		p.m.unended.add(k)
	}
	p.m.recorder.saveSignalled()
}

// Ended sends the final status of a pod that has ended, and stores its end.
func (p *passage) Ended(k *kills.Kill) {
	p.m.podEnded(k, p.shutdown.account.podPolicy())
	p.m.recorder.savePods()
}

// GaveUp counts a pod that is not known to have ended.
func (p *passage) GaveUp(k *kills.Kill, err error) {
	p.m.countKill(k, err)
	p.m.recorder.savePods()
}

// Fail logs a failure and adds it to the report; it ignores nil.
func (p *passage) Fail(err error) {
	if err == nil {
		return
	}
	klog.FromContext(p.ctx).Error(err, "Shutdown manager met a failure")
	p.shutdown.account.addErr(err)
}

// pause waits for d or until ctx ends.
func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
