package shutdown

import (
	"context"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// batch is the pods of one bucket, or those of it that came late.
//
// Each kill blocks, so each needs a goroutine; but most pods of a large node end
// at once, and a goroutine for each of them would be made for nothing. So a
// worker takes one pod after the other, and before it turns to one it sees to it
// that another worker is ready for the next: no pod waits for another's end, and
// there are only as many goroutines as kills that take their time.
type batch struct {
	d     *drain
	kills []*kill
	next  atomic.Int64
	ready atomic.Int64 // workers that are free to take the next pod
	left  atomic.Int64
	done  chan struct{} // closed when all have ended
}

// signal kills all pods and does not wait.
func (d *drain) signal(kills []*kill) *batch {
	b := &batch{d: d, kills: kills, done: make(chan struct{})}
	b.left.Store(int64(len(kills)))
	b.hire()
	return b
}

func (b *batch) hire() {
	b.ready.Add(1)
	b.d.work.Go(b.serve)
}

// serve takes pods until there is none left.
func (b *batch) serve() {
	for {
		n := int(b.next.Add(1)) - 1
		if n >= len(b.kills) {
			return
		}
		if b.ready.Add(-1) == 0 && n+1 < len(b.kills) {
			b.hire()
		}
		b.d.kill(b.kills[n])
		if b.left.Add(-1) == 0 {
			close(b.done)
		}
		b.ready.Add(1)
	}
}

// kill kills one pod, unless the shutdown was cancelled meanwhile.
func (d *drain) kill(k *kill) {
	if d.halted() {
		return
	}
	k.begin()
	result, err := d.killOrJoin(k)
	k.end(result, err)
	d.m.opts.Metrics.PodKilled(outcomeLabel(result, err))
}

// outcomeLabel is the killer's word, or one of two for a killer that has none.
func outcomeLabel(result KillResult, err error) string {
	switch {
	case result.Outcome != "":
		return result.Outcome
	case err != nil:
		return "Failed"
	default:
		return "Ended"
	}
}

// killOrJoin calls the killer; for a pod that still ends from an earlier shutdown
// it does so only if that leaves the pod less time than it has.
func (d *drain) killOrJoin(k *kill) (KillResult, error) {
	if before, until := d.inFlight(podKey(k.pod)); before != nil && !k.shorten(until) {
		return d.join(before)
	}
	return d.m.opts.Killer.KillPod(d.kills, k.pod, KillRequest{
		GracePeriodSeconds: k.seconds,
		SetStatus:          d.policy.of(k.pod).setStatus(),
	})
}

// join waits for a pod that an earlier drain has signalled.
func (d *drain) join(before *kill) (KillResult, error) {
	select {
	case <-before.done():
		report, _ := before.report()
		return KillResult{Outcome: report.Outcome}, nil
	case <-d.kills.Done():
		return KillResult{}, context.Cause(d.kills)
	}
}

// inFlight finds a pod that still ends from an earlier drain; nil: it does not.
func (d *drain) inFlight(key types.UID) (*kill, time.Time) {
	for _, e := range d.earlier {
		k := e.roster.find(key)
		if k == nil {
			continue
		}
		if until, ok := k.inFlight(); ok {
			return k, until
		}
	}
	return nil, time.Time{}
}
