package shutdown

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"k8s.io/klog/v2"

	"github.com/kubegrace/kubegrace/internal/call"
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
	*ledger

	effects  *effects        // used in the event loop only
	ctx      context.Context // of Run
	calls    *call.Group
	shutdown *nodeShutdown
	drain    *drain.Drain
	kind     Kind // at the begin
}

// run does the whole drain. The release of the host's lock does not depend on it: a timer
// releases the lock at the end of the host's time, even if run hangs.
func (p *passage) run() {
	p.recorder.saveTimes(p.shutdown.account.head())
	p.recorder.save(stepLag) // Prepare, or the first list, may take long
	ended := p.drain.Run()
	cause := p.drain.Stopped()
	switch {
	case errors.Is(cause, errOvertaken):
		return // the next drain of the shutdown goes on, with the same account
	case cause == nil:
		p.release()
	case errors.Is(cause, errCancelled):
		p.shutdown.account.end(time.Now())
	default: // the end of Run: the next agent goes on, or TerminateAll does
		p.unended.add(p.shutdown.account.kills.All()...)
		p.last.set(p.shutdown.number, p.shutdown.account.report)
	}
	p.finish(cause, ended)
}

// release stores the report and has the lock let go. If the lock of a former agent is just being
// adopted, it waits for that first.
func (p *passage) release() {
	s, table := p.shutdown, *p.shutdown.soFar().table
	if s.hold != nil && s.announced().ofHost() {
		s.hold.AwaitAdoption(p.ctx, table.H())
		if !s.hold.Waits() && !s.account.drainsAgain() {
			p.Fail(errNotDelayed)
		}
	}
	at, overtaken, ended := time.Now(), false, false
	p.ifIn(func() { // the loop knows whether another drain has begun meanwhile
		if overtaken = errors.Is(p.drain.Stopped(), errOvertaken); !overtaken {
			s.account.end(at)
			ended = true
		}
	}, draining, released)
	switch {
	case overtaken:
		return
	case !ended: // the shutdown is cancelled, or Run ends
		s.account.end(at)
	}
	p.last.set(s.number, s.account.report)
	p.showTimes(s.number, s.account.head().Started, at)
	p.recorder.saveTimes(p.shutdown.account.head())
	p.store(table.Unlock())
	if p.drain.Stopped() == nil && !p.onRelease(table.Unlock()) {
		p.store(table.Unlock())
	}
	var letGo func(context.Context) error
	p.ifIn(func() {
		if p.drain.Stopped() != nil {
			return // another drain has begun meanwhile, and has the lock
		}
		p.effects.release(s)
		if s.hold != nil {
			letGo = s.hold.Release()
		}
	}, draining, released)
	if letGo != nil {
		if err := letGo(p.ctx); err != nil {
			p.Fail(err)
		}
	}
	klog.FromContext(p.ctx).V(1).Info("Shutdown manager completed processing shutdown event, node will shutdown shortly")
}

// store waits until the report is on record, at most until a time. It tries again for a second if
// the disk fails.
func (p *passage) store(until time.Time) {
	for tries := time.Now().Add(storeTries); ; {
		_, err := p.recorder.save(0).Await(p.ctx, until)
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

// onRelease calls Options.OnRelease and waits for it until a time. It reports whether nothing failed.
func (p *passage) onRelease(until time.Time) bool {
	if p.opts.OnRelease == nil {
		return true
	}
	ctx, cancel := context.WithDeadlineCause(p.ctx, until, call.ErrTimeSpent)
	defer cancel()
	called := call.Start(ctx, p.calls, "Options.OnRelease", func(ctx context.Context) (struct{}, error) {
		p.opts.OnRelease(ctx)
		return struct{}{}, nil
	})
	_, err := called.Await(ctx, until)
	if err != nil {
		p.Fail(fmt.Errorf("failed to say that the host is let go: %w", err))
	}
	return err == nil
}

// finish waits for the pods that outlive the drain, stores their ends, and passes the report on.
func (p *passage) finish(cause error, ended bool) {
	s := p.shutdown
	stragglers := p.awaitStragglers()
	select {
	case <-stragglers:
	case <-time.After(hangTime):
		if cause == nil && p.drain.Stopped() == nil { // TerminateAll does not wait longer for a killer that hangs
			s.account.finish(s.account.report())
		}
		<-stragglers
	}
	switch {
	case errors.Is(cause, errCancelled): // the report says what could not be stored
		_, _ = p.recorder.save(0).Await(p.ctx, time.Now().Add(answerTime))
	case p.ctx.Err() == nil && !ended:
		p.recorder.save(podLag)
	}
	if errors.Is(p.drain.Stopped(), errOvertaken) {
		return // it has begun again since
	}
	report := s.account.report()
	if cause == nil || errors.Is(cause, errCancelled) {
		p.last.set(s.number, s.account.report)
		p.onReport(report)
	}
	s.account.finish(report)
}

// awaitStragglers waits for the pods that outlive the drains of the shutdown, side by side, because the
// end of Run bounds the wait for all of them. The channel is closed when none is waited for any more.
func (p *passage) awaitStragglers() <-chan struct{} {
	var stragglers sync.WaitGroup
	p.shutdown.eachDrain(func(d *drain.Drain) {
		stragglers.Add(1)
		go func() { defer stragglers.Done(); d.AwaitStragglers(hangTime - answerTime) }() // the rest is for OnReport
	})
	over := make(chan struct{})
	go func() { defer close(over); stragglers.Wait() }()
	return over
}

// onReport passes the report to Options.OnReport and does not wait.
func (p *passage) onReport(report Report) {
	if p.opts.OnReport == nil {
		return
	}
	call.Start(p.ctx, p.calls, "Options.OnReport", func(ctx context.Context) (struct{}, error) {
		p.opts.OnReport(ctx, report)
		return struct{}{}, nil
	})
}

// ifIn runs f in the event loop if the shutdown is in one of some states.
func (p *passage) ifIn(f func(), some ...state) {
	p.effects.post(func(s *states) {
		if s.isIn(p.shutdown, some...) {
			f()
		}
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
	p.shutdown.account.setPolicy(p.policy(p.ctx, p.calls, p.kind, p.Fail))
	p.ifIn(func() {
		if published = p.shutdown.publication(); published != nil {
			return // another drain was faster
		}
		published = p.outbox.Publish(p.shutdown.account.nodeState())
		p.shutdown.setPublished(published)
	}, draining, released)
	return published
}

// Planned stores the timetable and whom the drain means to kill.
func (p *passage) Planned(table timetable.Table) *call.Future[struct{}] {
	p.shutdown.plan(table)
	p.ifIn(func() { p.effects.holdUntilEnd(p.shutdown) }, draining)
	return p.recorder.save(0)
}

// Passed stores that a step before the first bucket has been.
func (p *passage) Passed(step drain.Step) {
	p.shutdown.update(func(so *progress) { so.steps[step] = true })
	p.recorder.savePods()
}

// Begins stores that the kills of a bucket begin.
func (p *passage) Begins(bucket int) {
	p.shutdown.update(func(so *progress) { so.begun = max(so.begun, bucket+1) })
	if a := p.shutdown.account; a.flushes && !a.marks {
		p.recorder.save(stepLag) // the record owes the final status of whom the kills may have reached
	} else {
		p.recorder.savePods()
	}
}

// Ends stores that a bucket is done.
func (p *passage) Ends(bucket int) {
	p.shutdown.update(func(so *progress) { so.done = bucket + 1 })
	p.recorder.savePods()
}

// Signalled stores that a pod was signalled. After the release, which has seen to those before, TerminateAll
// joins its kill too.
func (p *passage) Signalled(k *kills.Kill) {
	if !p.shutdown.account.head().Ended.IsZero() {
		p.unended.add(k)
	}
	p.recorder.savePods()
}

// Ended sends the final status of a pod that has ended, and stores its end.
func (p *passage) Ended(k *kills.Kill) {
	p.podEnded(k, p.shutdown.account.podPolicy())
	p.recorder.savePods()
}

// GaveUp stores that the drain no longer waits for a pod.
func (p *passage) GaveUp(k *kills.Kill, err error) {
	p.podGivenUp(k, err)
	p.recorder.savePods()
}

// Fail logs a failure and adds it to the report, also to the one on record.
func (p *passage) Fail(err error) {
	klog.FromContext(p.ctx).Error(err, "Shutdown manager met a failure")
	p.shutdown.account.addErr(err)
	p.recorder.savePods()
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
