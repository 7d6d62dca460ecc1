package timetable_test

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/shutdown/internal/timetable"
	"github.com/kubegrace/kubegrace/shutdown/plan"
)

// rounding is what the model and the code may differ by: shares are rounded to nanoseconds,
// and a time adds up those of thousands of buckets.
const rounding = 10 * time.Microsecond

// compare compares the code with the model for a case, and drains once.
func (c modelCase) compare(t *testing.T, d draw) {
	t.Helper()
	m, code := newModel(c.request, c.pods, c.complete), timetable.New(c.request)
	c.compareBudget(t, m, code)
	c.comparePlan(t, m, code)
	c.compareDrain(t, m, code, d)
}

// near fails if two spans differ by more than rounding.
func (c modelCase) near(t *testing.T, want, got time.Duration, what ...any) {
	if diff := want - got; diff < -rounding || diff > rounding {
		t.Helper()
		t.Fatalf("%s: the model has %v, the code %v\n%v", fmt.Sprint(what...), want, got, c)
	}
}

// compareBudget compares what was fitted, and the times of the buckets.
func (c modelCase) compareBudget(t *testing.T, m *model, code timetable.Table) {
	t.Helper()
	since := func(at time.Time) time.Duration { return at.Sub(c.request.Received) }
	b := code.Budget()
	c.near(t, m.total, plan.NewBudget(c.request.Schedule, c.askedOptions()).Total(), "the total")
	if c.complete {
		for i := m.request.Done; i < len(m.needs); i++ {
			if m.needs[i] != c.request.Needs[i] {
				t.Fatalf("n(%d): the model has %d, the code %d\n%v", i, m.needs[i], c.request.Needs[i], c)
			}
		}
	}
	c.near(t, m.margin, b.Margin, "the margin")
	h, unlock := timetable.End(c.request)
	c.near(t, m.h, since(h), "End")
	c.near(t, m.unlock, since(unlock), "the unlock of End")
	c.near(t, m.h, since(code.H()), "H")
	c.near(t, m.unlock, since(code.Unlock()), "the unlock")
	for i, bucket := range b.Schedule {
		if m.seconds[i] != bucket.Seconds {
			t.Fatalf("s(%d): the model has %d s, the code %d s of %v\n%v", i, m.seconds[i], bucket.Seconds, b.Schedule, c)
		}
		c.near(t, m.readiness[i], b.Reserves[i].Readiness, "R of ", i)
		c.near(t, m.unmount[i], b.Reserves[i].Unmount, "U of ", i)
		c.near(t, m.statuses[i], b.Reserves[i].Statuses, "F of ", i)
	}
	c.near(t, m.prepare, b.Prepare, "Prepare")
	c.near(t, m.hold, b.Hold, "the hold")
	c.near(t, m.publish, b.Publish, "P")
	c.near(t, m.floor, b.Floor, "the floor")
	c.near(t, min(m.prepare+m.hold, m.h), since(code.HoldEnd()), "the end of the hold")
	c.near(t, min(m.prepare+m.hold+m.publish, m.h), since(code.PublishEnd()), "the end of publishing")
	c.near(t, m.starts[0], since(code.First()), "E(0)")
	if notBefore := code.NotBefore(); m.late {
		c.near(t, m.starts[0], since(notBefore), "the late start")
	} else if !notBefore.IsZero() {
		t.Fatalf("a drain that starts at once waits\n%v", c)
	}
}

// askedOptions are the options without the steps that this shutdown has been through.
func (c modelCase) askedOptions() plan.Options {
	o := c.request.Options
	o.Hooks.Prepare = o.Hooks.Prepare && !c.request.Prepared
	o.Hooks.Hold = o.Hooks.Hold && !c.request.Held
	o.Hooks.Publish = o.Hooks.Publish && !c.request.Published
	return o
}

// comparePlan compares the plan of a timetable, and that of plan.New for a drain that can be
// planned beforehand.
func (c modelCase) comparePlan(t *testing.T, m *model, code timetable.Table) {
	t.Helper()
	c.comparePlans(t, m, code.Plan(c.pods, c.request.Options), "Table.Plan")
	if !c.complete || c.request.Late || c.request.Done > 0 || c.request.Prepared || c.request.Held || c.request.Published {
		return
	}
	o := c.request.Options
	switch m.limit {
	case noLimit:
	case 0:
		o.Limit = -1
	default:
		o.Limit = m.limit
	}
	c.comparePlans(t, m, plan.New(c.request.Schedule, c.pods, o), "plan.New")
}

func (c modelCase) comparePlans(t *testing.T, m *model, p plan.Plan, by string) {
	t.Helper()
	want := m.planned(c.pods)
	if got := grantedBy(p, c.pods); !slices.Equal(want.granted, got) {
		t.Fatalf("%s: the model grants %v, the code %v\n%v", by, want.granted, got, c)
	}
	c.near(t, m.h, p.Release, by, ": the release")
	for i, b := range p.Buckets {
		c.near(t, want.starts[i], b.Start, by, ": the start of bucket ", i)
		c.near(t, want.starts[i+1], b.End, by, ": the end of bucket ", i)
	}
}

// grantedBy is what a plan grants pods, in their order.
func grantedBy(p plan.Plan, pods []*v1.Pod) []int64 {
	granted := map[*v1.Pod]int64{}
	for _, b := range p.Buckets {
		for _, planned := range b.Pods {
			granted[planned.Pod] = planned.GrantedSeconds
		}
	}
	seconds := make([]int64, len(pods))
	for i, pod := range pods {
		seconds[i] = granted[pod]
	}
	return seconds
}

// compareDrain drains once, with pods and steps that take a random part of their time, and
// compares what each pod is granted. One drain in four goes on by a stored timetable, from
// any bucket on and at any time before the bucket's end.
func (c modelCase) compareDrain(t *testing.T, m *model, code timetable.Table, d draw) {
	t.Helper()
	take := func(span time.Duration) time.Duration { return span * time.Duration(d(101)) / 100 }
	drain, left, from := modelDrain{model: m, now: take(m.prepare + m.hold + m.publish)}, time.Duration(0), m.request.Done
	if m.late {
		drain.now = m.starts[0]
	}
	if d(4) == 0 {
		stored := code.Store(func(at time.Time) time.Duration { return at.Sub(received()) })
		require.NoError(t, stored.Check(), c)
		code = timetable.Resume(stored, after, c.request.Options)
		c.near(t, m.unlock, code.Unlock().Sub(received()), "the unlock of a resumed drain")
		from = d(len(m.seconds))
		drain.now, drain.left, left = min(take(m.starts[from+1]), m.h), noLimit, math.MaxInt64
	}
	if left == 0 {
		for i := range from {
			drain.skip(i)
			left = code.Skip(i, left)
		}
	}
	buckets := c.podsFrom(m, from)
	for i := from; i < len(m.seconds); i++ {
		pods := buckets[i]
		if len(pods) == 0 {
			if left = code.Skip(i, left); left < math.MaxInt64 {
				drain.skip(i)
			}
			continue
		}
		w := code.Window(i, after(drain.now), left)
		at, used := min(drain.now+take(m.readiness[i]), drain.marksEnd(i))+time.Duration(d(50))*time.Millisecond, time.Duration(0)
		end, grace := drain.ends(i, at)
		c.near(t, grace, w.Grace(after(at)), "the pods' time in bucket ", i, " at ", at)
		c.near(t, min(at+grace, m.h), w.KillsEnd(after(at)).Sub(received()), "the end of the kills of bucket ", i)
		c.near(t, min(at+grace+m.unmount[i], min(end, m.h)-m.statuses[i]), w.UnmountsEnd(after(at)).Sub(received()), "the end of the unmounts of bucket ", i)
		c.near(t, min(end, m.h), w.End.Sub(received()), "the end of bucket ", i)
		c.near(t, drain.marksEnd(i), w.Ready.Sub(received()), "the end of the marks of bucket ", i)
		for _, pod := range pods {
			want := drain.granted(i, pod, at)
			if got := w.Seconds(pod, after(at)); got != want && (grace+100*time.Millisecond+rounding)%time.Second > 2*rounding {
				t.Fatalf("bucket %d, %v after the event, %v left over: the model grants %s %d s, the code %d s\n%v", i, at, left, describe(pod), want, got, c)
			}
			used = max(used, min(take(time.Duration(want)*time.Second)+of(d, 0, 0, take(3*time.Second)), grace))
		}
		left = w.Left(after(at), used)
		drain.pass(i, at, used, take(m.unmount[i])+take(m.statuses[i])+of(d, 0, 0, take(time.Minute)))
		if m.seconds[i] > 0 {
			c.near(t, drain.left, left, "what rolls over after bucket ", i)
		}
		drain.left = left
	}
}

// podsFrom are the pods of each bucket in a drain from a bucket on.
func (c modelCase) podsFrom(m *model, from int) [][]*v1.Pod {
	buckets := make([][]*v1.Pod, len(m.seconds)+max(from-len(m.seconds)+1, 3))
	for _, pod := range c.pods {
		i := max(m.bucketOf(pod), from)
		buckets[i] = append(buckets[i], pod)
	}
	for _, late := range c.late {
		i := max(late.before, m.bucketOf(late.pod), from)
		buckets[i] = append(buckets[i], late.pod)
	}
	return buckets
}
