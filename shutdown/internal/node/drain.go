package node

import (
	"fmt"
	"slices"
	"time"

	"github.com/kubegrace/kubegrace/graceperiod"
	"github.com/kubegrace/kubegrace/internal/times"
	"github.com/kubegrace/kubegrace/shutdown/internal/timetable"
	"github.com/kubegrace/kubegrace/shutdown/plan"
)

const (
	// answerTime bounds the wait for what should return at once.
	answerTime = time.Second
	// firstListTime bounds the wait for the first list if the schedule depends on it.
	firstListTime = 30 * time.Second
	// fillTime is how old an agent is whose empty list may be one that is not filled yet.
	fillTime       = time.Second
	defaultSeconds = graceperiod.DefaultSeconds
)

// stage is where a drain is. A drain goes through the stages in this order, and through those from
// listing to flushing once for each bucket.
type stage int

const (
	idle        stage = iota
	preparing         // what would start pods again is stopped
	planning          // the first list
	holding           // another program moves its work away
	publishing        // the API server is told that the node shuts down
	listing           // the pods, before a bucket
	marking           // the pods of a bucket are marked as not ready, and killed one by one
	ending            // the pods of a bucket end
	unmounting        // their volumes are unmounted
	flushing          // the API server accepts their final statuses
	lastList          // who is listed before the release
	finishing         // all pods end
	flushingAll       // the API server accepts all final statuses
	storing           // the end survives a power cut
	leaving           // OnRelease
)

// String returns the name of a stage that is a call.
func (s stage) String() string {
	switch s {
	case preparing:
		return "Prepare"
	case holding:
		return "Hold"
	case unmounting:
		return "The unmount of the volumes"
	case storing:
		return "Storing the shutdown"
	case leaving:
		return "OnRelease"
	default:
		return fmt.Sprintf("stage %d", int(s))
	}
}

// drain is one pass through the timetable of a shutdown, by this agent. What it has reached is in the
// Shutdown and its pods; nothing else of it is stored.
type drain struct {
	of     *Shutdown // nil: none is under way
	number int       // of the drain
	stage  stage
	since  time.Time // when the stage began
	lists  int       // the complete lists before the one that the stage waits for

	call       int // for which the stage waits; 0: none
	isAnswered bool
	err        error // the answer

	isEmpty  bool // the first list was empty, and is asked for again
	bucket   int
	window   timetable.Window
	began    time.Time // when the bucket began
	picked   []*Pod    // in the bucket
	waited   int       // the first pod that the stage may wait for
	unmarked int       // of them that were killed without their mark
}

// begin begins a drain.
func (d *drain) begin(n *Node, s *Shutdown) {
	d.stop(n)
	*d = drain{of: s, number: d.number + 1, bucket: s.Done}
	n.api.tryAgain()
	n.do(Effect{Do: Begins, Shutdown: s, Text: "Shutdown manager processing shutdown event"})
	for _, text := range n.failures { // they are logged
		n.reported(s, text)
	}
	n.failures, n.failure = nil, ""
	d.enter(n, preparing)
}

// stop stops the drain: no further pod is signalled.
func (d *drain) stop(n *Node) {
	if d.call != 0 && !d.isAnswered {
		n.do(Effect{Do: Abort, Call: d.call})
	}
	for _, p := range d.picked {
		p.isWaiting = false
		n.wish(p)
	}
	*d = drain{number: d.number}
}

// refit fits the timetable again, because the host leaves less time. No end moves to a later time.
func (d *drain) refit(n *Node) {
	s := d.of
	if s == nil || s.local || !s.HostEnd.Before(s.end()) {
		return
	}
	if !s.Planned {
		s.setTable(n.newTable(s, timeOf(s.Timetable.Received)))
	} else {
		r := n.request(s, times.Earlier(n.now, s.waitEnd()), s.HostEnd) // no end of a wait that is over moves
		before := s.table
		r.Before, r.Done, r.Occupied = &before, d.bucket, n.occupied(before.Schedule(), d.bucket)
		s.setTable(timetable.New(r))
	}
	n.changed(s)
	n.do(Effect{Do: Suspend, Until: s.releaseBy()})
	if len(d.picked) == 0 || d.bucket >= len(s.table.Schedule()) {
		return
	}
	d.window = s.table.Window(d.bucket, n.now)
	for _, p := range d.picked {
		if p.runs() {
			n.signal(p)
		}
		p.telling.markBy = times.Earlier(p.telling.markBy, d.window.Ready)
	}
}

// waitsFor reports whether the stage has to wait for one of some pods. It asks no pod again that it does
// not wait for any more.
func (d *drain) waitsFor(pods []*Pod, match func(*Pod) bool) bool {
	for d.waited < len(pods) && !match(pods[d.waited]) {
		d.waited++
	}
	return d.waited < len(pods)
}

// enter begins a stage.
func (d *drain) enter(n *Node, s stage) bool {
	d.stage, d.since, d.call, d.isAnswered, d.err, d.waited = s, n.now, 0, false, nil, 0
	hooks := n.Options.Steps
	switch s {
	case preparing:
		if hooks.Prepare && !d.of.isPrepared {
			d.call = n.begin(Effect{Do: Prepare, Until: d.prepareEnd()})
		}
	case planning, listing, lastList:
		if d.lists, d.picked = n.lister.lists, nil; s == listing && d.bucket == 0 && n.lister.isNew(n) {
			d.lists-- // nothing has taken time since the list of the plan
			break
		}
		n.lister.ask(n)
	case holding:
		if hooks.Hold && !d.of.Held {
			d.call = n.begin(Effect{Do: Hold, Until: d.of.table.HoldEnd()})
		}
	case unmounting:
		if hooks.Unmount {
			d.call = n.begin(Effect{Do: Unmount, Pods: d.picked, Until: d.window.UnmountsEnd})
		}
	case storing:
		if !d.of.local {
			d.call = n.beginAfterStore(Effect{Do: Sync})
		}
	case leaving:
		if !d.of.local {
			d.call = n.begin(Effect{Do: OnRelease, Until: d.of.releaseBy()})
		}
	default:
	}
	return true
}

// prepareEnd returns when Prepare ends at the latest: it has half of what the host leaves.
func (d *drain) prepareEnd() time.Time {
	return times.Earlier(d.since.Add(min(d.of.table.Budget().Prepare, d.of.end().Sub(d.since)/2)), d.of.waitEnd())
}

// isOver reports whether the call of the stage was answered, or its time is over. Of a call that has
// failed, or has not returned, the report says so.
func (d *drain) isOver(n *Node, until time.Time) bool {
	switch {
	case d.call == 0 || d.isAnswered && d.err == nil:
	case !d.isAnswered && !n.passed(until):
		return false
	case n.now.Before(until):
		n.fail(d.of, d.stage.String()+" failed: "+d.err.Error())
	default: // also if the end of its context is its error
		n.fail(d.of, d.stage.String()+" did not return in time")
		n.do(Effect{Do: Abort, Call: d.call})
	}
	d.call = 0
	return true
}

// advance goes on by one stage. It returns false if the drain has to wait.
func (n *Node) advance() bool {
	d, s := &n.drain, n.drain.of
	if s == nil {
		return false
	}
	if !s.local && n.passed(s.releaseBy()) { // whatever hangs
		return d.over(n)
	}
	switch d.stage {
	case preparing:
		return d.isOver(n, d.prepareEnd()) && d.enter(n, planning)
	case planning:
		return d.plan(n)
	case holding:
		if !d.isOver(n, s.table.HoldEnd()) {
			return false
		}
		s.Held = true
		n.changed(s)
		return d.enter(n, publishing)
	case publishing:
		if !s.local && !s.Published && !n.isPublished() {
			if !n.passed(times.Earlier(s.table.PublishEnd(), d.since.Add(s.table.Budget().Publish))) {
				return false
			}
			if s.table.Budget().Publish > 0 { // else it is published beside the kills
				n.fail(s, "failed to publish the node state: "+n.api.cause())
			}
		}
		if !s.local {
			s.Published = true
			n.changed(s)
		}
		return d.next(n)
	case listing:
		return d.pick(n)
	case marking:
		return d.isMarked(n) && d.enter(n, ending)
	case ending:
		if d.waitsFor(d.picked, (*Pod).runs) && !n.passed(d.window.KillsEnd) {
			return false
		}
		return d.enter(n, unmounting)
	case unmounting:
		return d.isOver(n, d.window.UnmountsEnd) && d.enter(n, flushing)
	case flushing:
		isLast := d.bucket == len(s.table.Schedule())-1
		if !isLast && !n.isTold(d.picked, d.since, d.window.End) {
			return false
		}
		n.do(Effect{Do: CountBucket, Took: n.now.Sub(d.began)})
		return d.done(n)
	case lastList:
		return d.pickLate(n)
	case finishing:
		if d.waitsFor(n.pods.all, func(p *Pod) bool { return p.isOf(s) && p.runs() }) && !n.passed(s.waitEnd()) {
			return false
		}
		return d.enter(n, flushingAll)
	case flushingAll:
		if !n.isTold(n.pods.all, d.since, s.waitEnd()) {
			return false
		}
		if s.table.Budget().Publish == 0 && !s.local && !n.isPublished() && n.api.tries > 1 { // it has failed beside the kills
			n.fail(s, "failed to publish the node state: "+n.api.cause())
		}
		if pending := n.PendingStatuses(); pending > 0 {
			n.fail(s, fmt.Sprintf("failed to flush the final statuses of %d pods: %s", pending, n.api.cause()))
		}
		return d.enter(n, storing)
	case storing:
		return d.isOver(n, s.releaseBy()) && d.enter(n, leaving)
	case leaving:
		return d.isOver(n, s.releaseBy()) && d.over(n)
	default:
		return false
	}
}

// over ends the drain. Pods that have not ended go on being waited for.
func (d *drain) over(n *Node) bool {
	s := d.of
	if d.call != 0 {
		n.fail(s, d.stage.String()+" did not return in time")
	}
	d.stop(n)
	if s.local {
		s.Ended = n.now
		n.toReport(s)
	} else {
		n.release(s)
	}
	return true
}

// plan waits for the first list, and makes the timetable, in which buckets without pods may give way.
// Without a list no bucket counts as empty.
func (d *drain) plan(n *Node) bool {
	s, longest := d.of, answerTime
	if len(n.Schedule) == 0 {
		longest = firstListTime
	}
	switch isListed := n.lister.lists > d.lists; {
	case !isListed && !n.passed(times.Earlier(d.since.Add(longest), s.waitEnd())):
		n.lister.askAgain(n)
		return false
	case isListed && !d.isEmpty && n.lister.isEmpty && !n.passed(n.began.Add(fillTime)):
		return false
	case isListed && !d.isEmpty && n.lister.isEmpty && d.since.Before(n.began.Add(fillTime)):
		d.isEmpty = true
		return d.enter(n, planning)
	}
	if n.lister.lists <= d.lists {
		n.lister.isLate(n)
	}
	if !s.Planned {
		s.Planned = true
		r := n.request(s, timeOf(s.Timetable.Received), s.HostEnd)
		if len(n.Schedule) == 0 && n.lister.lists > d.lists {
			if limit := n.Options.Limit; limit != 0 {
				r.HostEnd = times.Earlier(r.HostEnd, r.Received.Add(max(limit, 0)))
			}
			r.Received = n.now // a slow list costs the pods nothing
		}
		if n.lister.lists > d.lists {
			r.Occupied = n.occupied(r.Schedule, 0)
		}
		s.setTable(timetable.New(r))
	}
	s.Prepared, s.isPrepared = true, true
	n.changed(s)
	for _, p := range n.pods.all {
		if n.isDue(p) && !p.Meant && !p.isSignalled() {
			p.Meant = true
			n.changed(p)
		}
	}
	if !s.local {
		n.beginAfterStore(Effect{Do: Sync})
		n.do(Effect{Do: Suspend, Until: s.releaseBy()})
	}
	n.begin(Effect{Do: OnPlan, Shutdown: s, Pods: n.Due()})
	return d.enter(n, holding)
}

// Due returns the pods that a drain has to kill.
func (n *Node) Due() (due []*Pod) {
	for _, p := range n.pods.all {
		if n.isDue(p) {
			due = append(due, p)
		}
	}
	return due
}

// occupied returns which buckets have pods, from the first one on that is not done.
func (n *Node) occupied(schedule plan.Schedule, done int) []bool {
	has := make([]bool, len(schedule))
	for _, p := range n.pods.all {
		if n.isDue(p) {
			has[min(max(schedule.Index(p.Priority), done), len(schedule)-1)] = true
		}
	}
	return has
}

// next goes on to the next bucket.
func (d *drain) next(n *Node) bool {
	if d.bucket >= len(d.of.table.Schedule()) {
		return d.enter(n, lastList)
	}
	d.began = n.now
	return d.enter(n, listing)
}

// done says that the bucket is done.
func (d *drain) done(n *Node) bool {
	d.bucket++
	d.of.Done = d.bucket
	n.changed(d.of)
	return d.next(n)
}

// pick takes the pods of the bucket, those of lower buckets that came late included, and has them
// marked or killed. While no list is known it waits for one until the end of the window, but for pods
// that were signalled or meant before.
func (d *drain) pick(n *Node) bool {
	schedule := d.of.table.Schedule()
	d.window = d.of.table.Window(d.bucket, n.now)
	until := d.since.Add(answerTime)
	if n.lister.lists == 0 {
		until = d.window.End
	}
	isListed := n.lister.lists > d.lists
	if !isListed && !n.passed(times.Earlier(until, d.of.waitEnd())) {
		n.lister.askAgain(n)
		if n.lister.lists == 0 && n.passed(d.since.Add(answerTime)) {
			n.lister.isLate(n)
			d.take(n, schedule.Index) // whom the log names
			d.isMarked(n)
		}
		return false
	}
	if !isListed {
		n.lister.isLate(n)
	}
	d.take(n, schedule.Index)
	if len(d.picked) == 0 || schedule[d.bucket].Seconds <= 0 { // a bucket of 0 s is signalled, and not waited for
		return d.done(n)
	}
	return d.enter(n, marking)
}

// isMarked reports whether no pod waits for its mark any more. It kills those whose time for it is over.
func (d *drain) isMarked(n *Node) bool {
	if d.waitsFor(d.picked, func(p *Pod) bool {
		if p.isWaiting && n.passed(p.telling.markBy) {
			n.signalMarked(p, false)
		}
		return p.isWaiting
	}) {
		return false
	}
	if d.unmarked > 0 {
		n.fail(d.of, fmt.Sprintf("failed to mark %d pods not ready: %s", d.unmarked, n.api.cause()))
		d.unmarked = 0
	}
	return true
}

// take has the pods of the bucket, and of lower ones, marked or killed, unless this drain has done so
// before. A bucket without time leaves them to the next one, but for its own pods if it is configured so.
func (d *drain) take(n *Node, index func(int32) int) {
	var due []*Pod
	bucket := d.of.table.Budget().Buckets[d.bucket]
	for _, p := range n.pods.all {
		own := index(p.Priority)
		isTaken := own <= d.bucket && bucket.Pods > 0 || own == d.bucket && bucket.Seconds == 0
		if isTaken && p.picked != d.number && n.isDue(p) {
			p.picked = d.number
			due = append(due, p)
		}
	}
	slices.SortFunc(due, (*Pod).compare)
	d.picked = append(d.picked, due...)
	for _, p := range due {
		n.mark(p, d.window.Ready)
	}
}

// pickLate takes the pods that are listed before the release and have not ended, and kills them with
// what is left. No other list follows.
func (d *drain) pickLate(n *Node) bool {
	if n.lister.lists <= d.lists && !n.passed(times.Earlier(d.since.Add(answerTime), d.of.waitEnd())) {
		n.lister.askAgain(n)
		return false
	}
	buckets := d.of.table.Budget().Buckets
	d.bucket = len(buckets) - 1
	for d.bucket > 0 && buckets[d.bucket].Pods <= 0 {
		d.bucket-- // it would leave them no time
	}
	if n.now.Before(d.of.waitEnd()) {
		d.window = d.of.table.Window(d.bucket, n.now)
		for _, p := range n.pods.all {
			if p.picked != d.number && n.isDue(p) {
				p.picked = d.number
				n.signal(p)
			}
		}
	}
	return d.enter(n, finishing)
}
