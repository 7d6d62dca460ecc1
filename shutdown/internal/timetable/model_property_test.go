package timetable_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/internal/times"
	"github.com/kubegrace/kubegrace/shutdown/internal/timetable"
	"github.com/kubegrace/kubegrace/shutdown/plan"
)

// pace is how long the steps of a drain take if nothing ends them, and each pod.
type pace struct {
	before, marks, unmount, statuses time.Duration
	pods                             []time.Duration // of all pods, the late ones last
}

// judge checks what has to hold for a case, apart from the model.
func (c modelCase) judge(t *testing.T, d draw) {
	t.Helper()
	p := pace{before: pickSpan(d), marks: pickSpan(d), unmount: pickSpan(d), statuses: pickSpan(d), pods: make([]time.Duration, len(c.pods)+len(c.late))}
	for i := range p.pods {
		p.pods[i] = pickSpan(d)
	}
	code, fits := timetable.New(c.request), c.judgeParts(t)
	granted := c.drain(t, code, p)
	for i, pod := range c.pods {
		bucket := c.request.Schedule.Index(*pod.Spec.Priority)
		if need := needOf(pod, c.request.Schedule[bucket].Seconds); fits && bucket >= c.request.Done && granted[i] < need {
			t.Fatalf("a pod of bucket %d is granted %d s of %d s, which fit\n%v", bucket, granted[i], need, c)
		}
	}
	more := c
	if step := 1 + time.Duration(d(20e9)); !c.request.HostEnd.IsZero() {
		more.request.HostEnd = c.request.HostEnd.Add(step)
	}
	if limit := c.request.Options.Limit; limit != 0 {
		more.request.Options.Limit = max(limit, 0) + second
	}
	moreCode := timetable.New(more.request)
	pods, buckets := c.all()
	// The steps have more time too, and slow ones may leave less to roll over: beyond what a
	// pod has by the schedule, and a late one by the shorter limit, only a plan is compared.
	for i, seconds := range more.drain(t, moreCode, p) {
		if buckets[i] >= len(c.request.Schedule) {
			continue
		}
		sure := code.Schedule()[buckets[i]].Seconds
		if i < len(c.pods) && c.request.Schedule.Index(*pods[i].Spec.Priority) == buckets[i] {
			sure = c.request.Schedule[buckets[i]].Seconds
		}
		if seconds < min(granted[i], sure) {
			t.Fatalf("pod %d is granted %d s, and %d s with a longer limit: %v\n%v", i, granted[i], seconds, more.request.HostEnd.Sub(received()), c)
		}
	}
	planned := grantedBy(code.Plan(c.pods, c.request.Options), c.pods)
	for i, seconds := range grantedBy(moreCode.Plan(c.pods, c.request.Options), c.pods) {
		if seconds < planned[i] {
			t.Fatalf("the plan grants pod %d %d s, and %d s with a longer limit: %v\n%v", i, planned[i], seconds, more.request.HostEnd.Sub(received()), c)
		}
	}
}

// all are all pods, the late ones last, and the buckets with which they are killed.
func (c modelCase) all() (pods []*v1.Pod, buckets []int) {
	pods = slices.Clip(c.pods)
	for _, pod := range pods {
		buckets = append(buckets, max(c.request.Schedule.Index(*pod.Spec.Priority), c.request.Done))
	}
	for _, late := range c.late {
		pods = append(pods, late.pod)
		buckets = append(buckets, max(c.request.Schedule.Index(*late.pod.Spec.Priority), late.before, c.request.Done))
	}
	return pods, buckets
}

// pickSpan draws a time up to half a minute, most often a few seconds.
func pickSpan(d draw) time.Duration {
	return of(d, 0, time.Duration(d(4))*second, time.Duration(d(4e9)), time.Duration(d(30e9)), time.Hour)
}

// needOf is the time of a pod in a bucket with enough time.
func needOf(pod *v1.Pod, seconds int64) int64 {
	if own := pod.Spec.TerminationGracePeriodSeconds; own != nil && *own < seconds {
		return max(*own, 0)
	}
	return seconds
}

// hostEnds is how long after the event the drain has to be over.
func (c modelCase) hostEnds() time.Duration {
	end := noLimit
	if !c.request.HostEnd.IsZero() {
		end = max(c.request.HostEnd.Sub(received()), 0)
	}
	if limit := c.request.Options.Limit; limit != 0 {
		end = min(end, max(limit, 0))
	}
	return end
}

// judgeParts checks the parts of the budget: none is negative or longer than asked for, all
// fit into the limit, and where the needs do not, no bucket is starved by a lower one. It
// reports whether the needs fit.
func (c modelCase) judgeParts(t *testing.T) (fits bool) {
	t.Helper()
	code, end := timetable.New(c.request), c.hostEnds()
	b, asked := code.Budget(), plan.NewBudget(c.request.Schedule, c.request.Options)
	needs, sum, needed := make([]int64, len(b.Schedule)), b.Prepare+b.Hold+b.Publish+b.Floor, b.Prepare
	for i, bucket := range b.Schedule {
		r := b.Reserves[i]
		sum += r.Readiness + time.Duration(bucket.Seconds)*second + r.Unmount + r.Statuses
		if min(int64(r.Readiness), bucket.Seconds, int64(r.Unmount), int64(r.Statuses)) < 0 {
			t.Fatalf("bucket %d has less than nothing: %+v\n%v", i, b, c)
		}
		if most := asked.Reserves[i]; r.Readiness > most.Readiness || bucket.Seconds > asked.Schedule[i].Seconds || r.Unmount > most.Unmount || r.Statuses > most.Statuses {
			t.Fatalf("bucket %d has more than was asked for: %+v\n%v", i, b, c)
		}
		if !c.complete && i >= c.request.Done {
			needs[i] = max(c.request.Schedule[i].Seconds, 0)
		}
	}
	for _, pod := range c.pods {
		if i := c.request.Schedule.Index(*pod.Spec.Priority); i >= c.request.Done {
			needs[i] = max(needs[i], needOf(pod, c.request.Schedule[i].Seconds))
		}
	}
	for _, n := range needs {
		needed += time.Duration(n) * second
	}
	require.GreaterOrEqual(t, min(b.Prepare, b.Hold, b.Publish, b.Floor, b.Margin), time.Duration(0), c)
	require.LessOrEqual(t, sum, max(end, b.Prepare), c)
	if b.Floor > 0 || b.Hold > 0 {
		require.LessOrEqual(t, sum+b.Margin, end, c)
	}
	require.LessOrEqual(t, code.Unlock().Sub(received()), end, c)
	require.LessOrEqual(t, code.H(), code.Unlock(), c)
	lower := int64(0)
	for i, bucket := range b.Schedule {
		if bucket.Seconds < needs[i] && lower > 0 {
			t.Fatalf("bucket %d is starved by a lower one: %v\n%v", i, b.Schedule, c)
		}
		lower += bucket.Seconds
	}
	return needed <= end
}

// drain drains at a pace and returns what each pod is granted, the late ones last; -1 for
// pods that come too late for the last bucket.
func (c modelCase) drain(t *testing.T, code timetable.Table, p pace) (granted []int64) {
	t.Helper()
	all, buckets := c.all()
	in := map[int][]int{}
	for k, bucket := range buckets {
		granted, in[bucket] = append(granted, -1), append(in[bucket], k)
	}
	end, left, now := after(c.hostEnds()), time.Duration(0), times.Earlier(after(p.before), code.PublishEnd())
	now = times.Later(now, code.NotBefore())
	for i := c.request.Done; i < len(c.request.Schedule); i++ {
		w, used, found := code.Window(i, now, left), time.Duration(0), false
		at := times.Earlier(now.Add(p.marks), w.Ready)
		for _, k := range in[i] {
			granted[k], found = w.Seconds(all[k], at), true
			used = max(used, min(p.pods[k], time.Duration(granted[k])*second))
			if granted[k] > 0 && at.Add(time.Duration(granted[k])*second).After(end.Add(100*ms)) { // timer lag
				t.Fatalf("a grace of %d s from %v on passes the host's end\n%v", granted[k], at.Sub(received()), c)
			}
		}
		switch {
		case !found:
			left = code.Skip(i, left)
			continue
		case w.Ready.After(w.End) || times.Later(w.KillsEnd(at), w.UnmountsEnd(at)).After(w.End) || w.End.After(code.H()):
			t.Fatalf("the steps of bucket %d do not end in time: %v, %v, %v, %v\n%v", i, w.Ready, w.KillsEnd(at), w.UnmountsEnd(at), w.End, c)
		case code.Schedule()[i].Seconds > 0:
			left = w.Left(at, used)
			ended := times.Earlier(at.Add(used), w.KillsEnd(at))
			ended = times.Later(ended, times.Earlier(ended.Add(p.unmount), w.UnmountsEnd(at)))
			now = times.Later(ended, times.Earlier(ended.Add(p.statuses), w.End))
		}
	}
	return granted
}
