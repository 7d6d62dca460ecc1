//go:build linux && go1.25

package shutdown_test

import (
	"context"
	"slices"
	"time"

	"k8s.io/klog/v2"
)

const (
	// localOrigin is the origin of the report of TerminateAll.
	localOrigin = "TerminateAll"
	// pairsLocal is how long TerminateAll may take: it waits for a shutdown, drains, and waits for calls
	// that hang.
	pairsLocal = 90 * time.Second
)

// terminateAll has the agent call TerminateAll, once.
func (w *pairsWorld) terminateAll() {
	a, first := w.agent(), false
	w.locked(func() {
		if first = a != nil && a.ending.IsZero() && a.stopping.IsZero(); first {
			a.ending = time.Now()
			for _, p := range w.pods {
				if p.ended.IsZero() && !time.Now().Before(p.listed) {
					a.all = append(a.all, p)
				}
			}
		}
	})
	if !first {
		return
	}
	a.local = make(chan struct{})
	ctx, cancel := context.WithCancel(klog.NewContext(w.Context(), klog.Logger{}))
	a.unanswered.Go(func() {
		defer close(a.local)
		defer cancel()
		_, err := a.m.TerminateAll(ctx)
		if a.leave(nil) == nil {
			a.locked(func() { a.localErr = err; a.judgeLocal() })
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

// judgeLocal judges the end of TerminateAll: it comes in time, and without an error all pods that were
// listed have ended. The mutex is held.
func (a *pairsAgent) judgeLocal() {
	err := a.localErr
	a.say("TerminateAll has returned: %v", err)
	if late := time.Since(a.ending.Add(pairsLocal)); late > 0 {
		a.violate("TerminateAll returns %v too late", late)
	}
	for _, p := range a.all {
		if err == nil && p.ended.IsZero() && !slices.ContainsFunc(a.badLists, func(s pairsSpan) bool { return !s.until.Before(a.ending) }) {
			a.violate("TerminateAll returns without an error, and %s runs", p.pod.Name)
		}
	}
}
