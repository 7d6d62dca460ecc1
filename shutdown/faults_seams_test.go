//go:build linux && go1.25

package shutdown_test

import (
	"context"
	"io"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/shutdown"
	"github.com/kubegrace/kubegrace/shutdown/plan"
)

// The following types are the source, killer, runtime and reporter that an agent gets. Each
// call has the fault of the cell if it is one of the cell's step, and is otherwise a call of
// the machine's own part.

type faultySource struct{ *agent }

func (s faultySource) Connect(ctx context.Context) (session shutdown.Session, err error) {
	err = s.callWithFault(ctx, atConnect, "", func(ctx context.Context) (err error) {
		session, err = s.host.Connect(ctx)
		return err
	})
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sessions = append(s.sessions, session)
	return faultySession{s.agent, session}, nil
}

type faultySession struct {
	*agent

	inner shutdown.Session
}

// Events forwards the host's events. If the fault is that this fails, the session is lost.
func (s faultySession) Events() <-chan shutdown.Event {
	events, lost := make(chan shutdown.Event), s.cell == cell{atEvent, failsAlways} && s.isArmed() && !s.healthy
	if s.cell == (cell{atEvent, panics}) && !s.healthy {
		panic("as the fault has it")
	}
	go func() {
		defer close(events)
		for event := range s.inner.Events() {
			if lost || !s.forward(event, events) {
				return
			}
		}
	}()
	return events
}

// forward forwards one event. It returns false if the session is lost.
func (s faultySession) forward(event shutdown.Event, to chan<- shutdown.Event) bool {
	if s.cell == (cell{atEvent, hangs}) && !s.healthy {
		return true // the event never arrives
	}
	if err := s.applyFault(s.life, atEvent, "event", ""); err != nil {
		return false
	}
	select {
	case to <- event:
		return true
	case <-s.life.Done():
		return false
	}
}

func (s faultySession) Pending(ctx context.Context) (event *shutdown.Event, err error) {
	err = s.callWithFault(ctx, atResume, "", func(ctx context.Context) (err error) {
		event, err = s.inner.Pending(ctx)
		return err
	})
	return event, err
}

func (s faultySession) RequestDelay(ctx context.Context, wish time.Duration) (granted time.Duration, err error) {
	err = s.callWithFault(ctx, atDelay, "", func(ctx context.Context) (err error) {
		granted, err = s.inner.RequestDelay(ctx, wish)
		return err
	})
	return granted, err
}

func (s faultySession) Inhibit(ctx context.Context) (io.Closer, error) {
	var lock io.Closer
	err := s.callWithFault(ctx, atInhibit, "", func(ctx context.Context) (err error) {
		lock, err = s.inner.Inhibit(ctx)
		return err
	})
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	s.locks = append(s.locks, lock)
	s.mu.Unlock()
	s.closeKeptLocks() // systemd drops its copy once an agent holds a lock
	return faultyLock{s.agent, lock}, nil
}

func (s faultySession) Close() error {
	if err := s.resultUnlessGone(nil); err != nil {
		return err
	}
	s.mu.Lock()
	s.sessions = slices.DeleteFunc(s.sessions, func(other shutdown.Session) bool { return other == s.inner })
	s.mu.Unlock()
	return s.inner.Close()
}

type faultyLock struct {
	*agent

	inner io.Closer
}

// Close closes the lock, and applies the fault afterwards: close(2) frees the descriptor even
// if it returns an error.
func (l faultyLock) Close() error {
	if err := l.resultUnlessGone(nil); err != nil {
		return err
	}
	l.mu.Lock()
	had := slices.Contains(l.locks, l.inner)
	l.locks = slices.DeleteFunc(l.locks, func(other io.Closer) bool { return other == l.inner })
	l.mu.Unlock()
	if !had && l.isGone() { // the agent was killed meanwhile, and systemd has the lock
		return l.resultUnlessGone(nil)
	}
	err := l.inner.Close()
	if fault := l.applyFault(l.life, atRelease, "lock", ""); fault != nil {
		return fault
	}
	return err
}

type faultyKiller struct {
	*agent

	inner shutdown.PodKiller
}

func (k faultyKiller) KillPod(ctx context.Context, pod *v1.Pod, req shutdown.KillRequest) (result shutdown.KillResult, err error) {
	if !k.isGone() {
		k.mu.Lock()
		if !slices.Contains(k.signalled, pod.Name) {
			k.signalled = append(k.signalled, pod.Name)
		}
		k.mu.Unlock()
	}
	err = k.callWithFault(ctx, atKill, pod.Name, func(ctx context.Context) (err error) {
		result, err = k.inner.KillPod(ctx, pod, req)
		return err
	})
	return result, err
}

type faultyRuntime struct{ *agent }

func (r faultyRuntime) StopContainer(ctx context.Context, id string, seconds int64) error {
	return r.callWithFault(ctx, atStop, id, func(ctx context.Context) error { return r.rt.StopContainer(ctx, id, seconds) })
}

func (r faultyRuntime) RunInContainer(ctx context.Context, id string, cmd []string, timeout time.Duration) (output []byte, err error) {
	r.mu.Lock()
	r.execs++
	r.mu.Unlock()
	err = r.callWithFault(ctx, atHook, id, func(ctx context.Context) (err error) {
		output, err = r.rt.RunInContainer(ctx, id, cmd, timeout)
		return err
	})
	return output, err
}

// faultyReporter is the connection to the API server.
type faultyReporter struct{ *agent }

func (r faultyReporter) PublishNode(ctx context.Context, _ shutdown.NodeState) error {
	return r.callWithFault(ctx, atPublish, "", succeed)
}

func (r faultyReporter) MarkNotReady(ctx context.Context, pod *v1.Pod) error {
	return r.callWithFault(ctx, atReady, pod.Name, succeed)
}

func (r faultyReporter) FlushPod(ctx context.Context, pod *v1.Pod) error {
	if !r.isGone() && r.isRunning(pod.Name) {
		r.addViolation("pod %s runs, but its final status is sent", pod.Name)
	}
	return r.callWithFault(ctx, atStatus, pod.Name, func(context.Context) error {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.acknowledged[pod.Name] = time.Now()
		return nil
	})
}

func (a *agent) listPods() (pods []*v1.Pod) {
	_ = a.callWithFault(a.life, atPlan, "", func(context.Context) error { // an error gives an empty list
		pods = a.runningPods()
		return nil
	})
	return pods
}

func (a *agent) policy(shutdown.Kind) shutdown.PodPolicy {
	a.mu.Lock()
	a.drains++
	a.mu.Unlock()
	_ = a.callWithFault(a.life, atPolicy, "", succeed)
	return shutdown.PolicySetTerminal
}

// drainsBegun returns how many drains the agent has begun.
func (a *agent) drainsBegun() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.drains
}

func (a *agent) unmount(ctx context.Context, _ []*v1.Pod) error {
	return a.callWithFault(ctx, atUnmount, "", succeed)
}

func (a *agent) onPlan(ctx context.Context, _ plan.Plan) { _ = a.applyFault(ctx, atPlan, "OnPlan", "") }

func (a *agent) onReport(ctx context.Context, report shutdown.Report) {
	a.checkReport("the report that is handed in", report)
	_ = a.applyFault(ctx, atReport, "OnReport", "")
}

func (a *agent) onRelease(ctx context.Context) { _ = a.applyFault(ctx, atRelease, "OnRelease", "") }
