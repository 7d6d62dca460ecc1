package shutdown

import (
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/graceperiod"
	"github.com/kubegrace/kubegrace/shutdown/plan"
)

// plan works out the timetable. What a former agent began keeps its own.
func (d *drain) plan(pods []*v1.Pod) {
	defer func() {
		release := d.table.Release()
		d.release.Store(&release)
	}()
	if d.resumed != nil {
		d.table = d.resumedTable()
		return
	}
	schedule := d.m.schedule
	if len(schedule) == 0 {
		schedule = ownGrace(pods)
	}
	announcement := d.announcement()
	announcement.Late = d.m.opts.LateStart(d.event)
	options := d.m.opts.Plan
	options.Hooks.Hold = options.Hooks.Hold && !d.overtook
	d.table = plan.NewTimetable(schedule, options, announcement)
}

// ownGrace is the schedule where none is configured: all pods at once, each with
// the grace of its own.
func ownGrace(pods []*v1.Pod) plan.Schedule {
	seconds := graceperiod.DefaultSeconds
	for _, pod := range pods {
		if pod != nil && pod.Spec.TerminationGracePeriodSeconds != nil {
			seconds = max(seconds, *pod.Spec.TerminationGracePeriodSeconds)
		}
	}
	return plan.Schedule{{Seconds: seconds}}
}

// prepare waits, for a bounded time, until the node's state is published. The
// start is stored beside it: a slow disk costs the pods nothing.
func (d *drain) prepare() {
	d.saveBeside()
	d.hold()
	if d.said != nil && d.m.opts.Reporter != nil {
		if until, wait := d.publishUntil(); wait {
			d.awaitPublished(until)
		}
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

// publishUntil is until when the publishing is waited for. A drain that a former agent
// began waits only as long as that agent would have, as the state was published
// already if the first bucket was begun.
func (d *drain) publishUntil() (until time.Time, wait bool) {
	if d.resumed == nil {
		return time.Now().Add(d.table.Budget().Publish), true
	}
	return d.table.First(), time.Now().Before(d.table.First())
}

// startLate lets the pods work on until the schedule just fits before the host's
// end, if that is wished.
func (d *drain) startLate() {
	if start := d.table.NotBefore(); !start.IsZero() {
		d.await(d.stopped.Done(), start)
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
