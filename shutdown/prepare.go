package shutdown

import (
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/graceperiod"
)

// plan fits the schedule into the host's limit and fixes the end; what was begun
// by a former agent keeps its own.
func (d *drain) plan(pods []*v1.Pod) {
	if d.resumed != nil {
		d.timing = d.resumedTiming(d.m.planOptions())
		return
	}
	schedule, options := d.m.schedule, d.m.planOptions()
	if len(schedule) == 0 {
		schedule = ownGrace(pods, options.UnmountReserve+options.FlushReserve)
	}
	d.timing = timing{
		start:    d.received,
		end:      d.received.Add(schedule.Total()),
		schedule: schedule,
		plan:     options,
	}
	if d.m.opts.Hold != nil {
		d.timing.end = d.timing.end.Add(d.m.opts.HoldTimeout)
	}
	if d.limited {
		var margin time.Duration
		d.timing.schedule, margin = schedule.fitInto(d.limit, d.m.opts.ReleaseMargin)
		d.timing.end = d.received.Add(d.limit - margin)
	}
}

// ownGrace is the schedule where none is configured: all pods at once, each with
// the grace of its own, and the reserves beside it.
func ownGrace(pods []*v1.Pod, reserves time.Duration) Schedule {
	seconds := graceperiod.DefaultSeconds
	for _, pod := range pods {
		if pod != nil && pod.Spec.TerminationGracePeriodSeconds != nil {
			seconds = max(seconds, *pod.Spec.TerminationGracePeriodSeconds)
		}
	}
	total := saturatingAdd(graceperiod.Duration(seconds), reserves+time.Second-1)
	return Schedule{{Seconds: int64(total / time.Second)}}
}

// prepare waits, for a bounded time, until the node's state is published. The
// start is stored beside it: a slow disk costs the pods nothing.
func (d *drain) prepare(pods []*v1.Pod) {
	d.saveBeside()
	d.hold()
	if d.said != nil && d.m.opts.Reporter != nil {
		d.awaitPublished(d.received.Add(d.publishTime(pods)))
	}
}

// hearing is how long a reporter is listened to that is not waited for any longer,
// for what was in its way.
const hearing = 20 * time.Millisecond

// awaitPublished waits until the node's state is published, or a time has come.
func (d *drain) awaitPublished(until time.Time) {
	if !d.await(d.said.settled, until) {
		d.said.hurry()
		until = time.Now().Add(hearing)
	}
	d.settled(d.said.settled, &d.said.err, until, "publish the node state")
}

// publishTime is what the publishing may cost: a quarter of the first bucket that
// has pods, at most.
func (d *drain) publishTime(pods []*v1.Pod) time.Duration {
	first := len(d.timing.schedule)
	for _, pod := range pods {
		first = min(first, d.timing.schedule.Index(d.timing.plan.Priority(pod)))
	}
	if first == len(d.timing.schedule) {
		return d.m.opts.PublishTimeout
	}
	return min(d.m.opts.PublishTimeout, d.timing.schedule[first].time()/4)
}

// startLate lets the pods work on until the schedule just fits before the host's
// end, if that is wished.
func (d *drain) startLate() {
	if d.resumed != nil || !d.limited || !d.m.opts.LateStart(d.event) {
		return
	}
	start := d.latestStart()
	d.await(d.stopped.Done(), start)
	d.startNotBefore(start)
}

// latestStart is when the first bucket has to start for the last one to end in
// time.
func (d *drain) latestStart() time.Time {
	return d.timing.end.Add(-d.timing.schedule.Total())
}

// startNotBefore shifts the buckets, unless they start later anyway.
func (d *drain) startNotBefore(start time.Time) {
	if d.timing.start.Before(start) {
		d.timing.start = start
		d.saveBeside()
	}
}

// settled waits for something that is done beside the drain, and notes its error,
// or that it was not done in time.
func (d *drain) settled(done <-chan struct{}, err *error, until time.Time, what string) {
	if d.await(done, until) {
		d.note(*err)
		return
	}
	d.note(fmt.Errorf("failed to %s: %w", what, errTimeSpent))
}
