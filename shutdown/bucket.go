package shutdown

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubegrace/kubegrace/graceperiod"
)

// podKey tells pods apart, also those that return with the name of a former one.
func podKey(pod *v1.Pod) types.UID {
	if pod.UID != "" {
		return pod.UID
	}
	return types.UID(pod.Namespace + "/" + pod.Name)
}

// kill is one pod of a drain: what was asked, and what came of it.
type kill struct {
	pod     *v1.Pod
	seconds int64 // its grace

	mu     sync.Mutex // guards all below; the killer's goroutine writes it
	until  time.Time  // when its grace ends
	ended  bool
	over   chan struct{} // closed at the end; nil: nobody has asked
	report PodReport
}

// snapshot is the report so far: a pod that has not ended has no end and no
// outcome in it.
func (k *kill) snapshot() PodReport {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.report
}

// begin notes when the killer is called; skipped kills never begin.
func (k *kill) begin(now time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.report.Started = now
}

// end notes what came of the kill.
func (k *kill) end(now time.Time, result KillResult, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.report.Ended, k.report.Outcome = now, result.Outcome
	if err != nil {
		k.report.Error = err.Error()
	}
	k.ended = true
	if k.over != nil {
		close(k.over)
	}
}

// done is closed when the pod has ended.
func (k *kill) done() <-chan struct{} {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.over == nil {
		k.over = make(chan struct{})
		if k.ended {
			close(k.over)
		}
	}
	return k.over
}

// inFlight tells whether the pod was signalled and has not ended, and until when
// it may take.
func (k *kill) inFlight() (until time.Time, ok bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.until, !k.report.Started.IsZero() && !k.ended
}

// toFlush tells whether the pod has ended and its final status is not accepted.
func (k *kill) toFlush() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.ended && k.report.Unflushed
}

// acknowledge says that the final status is accepted.
func (k *kill) acknowledge() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.report.Unflushed = false
}

// shorten gives the kill the earlier end of the one that it joins, and tells
// whether its own was earlier.
func (k *kill) shorten(until time.Time) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.until.Before(until) {
		return true
	}
	k.until = until
	return false
}

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
	k.begin(time.Now())
	result, err := d.killOrJoin(k)
	k.end(time.Now(), result, err)
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
		SetStatus:          d.setStatus,
	})
}

// join waits for a pod that an earlier drain has signalled.
func (d *drain) join(before *kill) (KillResult, error) {
	select {
	case <-before.done():
		return KillResult{Outcome: before.snapshot().Outcome}, nil
	case <-d.kills.Done():
		return KillResult{}, context.Cause(d.kills)
	}
}

// inFlight finds a pod that still ends from an earlier drain; nil: it does not.
func (d *drain) inFlight(key types.UID) (*kill, time.Time) {
	for _, e := range d.earlier {
		k := e.find(key)
		if k == nil {
			continue
		}
		if until, ok := k.inFlight(); ok {
			return k, until
		}
	}
	return nil, time.Time{}
}

// init works out what a pod is granted in a share of a bucket.
func (k *kill) init(pod PlannedPod, bucket Bucket, s share, now time.Time) {
	k.pod = pod.Pod
	k.seconds = grant(pod.Pod, s.left, s.own)
	k.until = now.Add(graceperiod.Duration(k.seconds))
	k.report = PodReport{
		Namespace:      pod.Pod.Namespace,
		Name:           pod.Pod.Name,
		UID:            pod.Pod.UID,
		Priority:       pod.Priority,
		Bucket:         bucket.Priority,
		GrantedSeconds: k.seconds,
		Unflushed:      true,
	}
}
