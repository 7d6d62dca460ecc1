//go:build linux && go1.25

package shutdown_test

import (
	"context"
	"time"

	"k8s.io/klog/v2"
)

// terminateAllOrigin is the origin of the report of TerminateAll.
const terminateAllOrigin = "TerminateAll"

// pairsTermination is the call of TerminateAll of one agent.
type pairsTermination struct {
	began    time.Time
	listed   []*pairsPod   // that ran and were listed when it began
	returned chan struct{} // closed when it has returned
	err      error         // guarded by the mutex of the world
}

// terminateAll has the agent call TerminateAll, once.
func (w *pairsWorld) terminateAll() {
	a := w.agent()
	t := &pairsTermination{began: time.Now(), returned: make(chan struct{})}
	first := false
	w.locked(func() {
		if first = a != nil && a.termination == nil && a.stopping.IsZero(); !first {
			return
		}
		a.termination = t
		for _, p := range w.pods {
			if p.ended.IsZero() && !time.Now().Before(p.listed) {
				t.listed = append(t.listed, p)
			}
		}
	})
	if !first {
		return
	}
	ctx, cancel := context.WithCancel(klog.NewContext(w.Context(), klog.Logger{}))
	a.unanswered.Go(func() {
		defer close(t.returned)
		defer cancel()
		_, err := a.m.TerminateAll(ctx)
		if a.leave(nil) == nil {
			a.locked(func() { t.err = err; a.judgeTermination() })
		}
	})
	a.unanswered.Go(func() {
		select {
		case <-a.over:
			cancel()
		case <-ctx.Done():
		}
	})
}

// judgeTermination judges the end of TerminateAll: it comes in time, and without an error all pods that
// were listed have ended. The mutex is held.
func (a *pairsAgent) judgeTermination() {
	t := a.termination
	a.say("TerminateAll has returned: %v", t.err)
	if late := time.Since(a.terminationEnd()); late > 0 {
		a.violate("TerminateAll returns %v too late", late)
	}
	for _, p := range t.listed {
		if t.err == nil && p.ended.IsZero() && !a.wasBad(t.began, time.Now()) {
			a.violate("TerminateAll returns without an error, and %s runs", p.pod.Name)
		}
	}
}

// terminationEnd returns when TerminateAll has to be back: it waits until it is known whether a former
// shutdown goes on, for the shutdowns that it meets, for a drain of its own and for calls that hang.
func (a *pairsAgent) terminationEnd() time.Time {
	end := a.termination.began
	for _, s := range a.table.all {
		last := s.plans[len(s.plans)-1].end // of the pods' time
		if met := s.over.IsZero() || s.over.After(end); met && s.boot == a.boot && last.After(end) {
			end = last
		}
	}
	const settles, hangs, slack = 5 * time.Second, 10 * time.Second, 2 * time.Second
	return end.Add(settles + a.asks() + 2*hangs + slack)
}
