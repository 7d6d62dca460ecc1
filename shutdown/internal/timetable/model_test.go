package timetable_test

import (
	"math/big"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/shutdown/internal/timetable"
)

// model is the arithmetic of a drain a second time, written from the design alone: slow,
// straight, and without a function of the packages that it judges. All times count from the
// event. A limit of noLimit says that nobody ends the drain from outside.
type model struct {
	request timetable.Request
	listed  []bool  // of each bucket: there is a pod to be killed, or no list is known
	needs   []int64 // n(i)

	limit                          time.Duration // L
	total                          time.Duration // all that is asked for
	prepare, hold, publish, margin time.Duration // as fitted, as are all that follow
	floor                          time.Duration
	seconds                        []int64 // s(i)
	readiness, unmount, statuses   []time.Duration
	starts                         []time.Duration // E(i-1) of bucket i; the last is the end of the last bucket
	h, unlock                      time.Duration
	late                           bool // the buckets start no earlier than starts[0]
}

const noLimit = 1000 * time.Hour

// newModel computes the model of a request whose pods are listed; listed says that a complete
// list is known.
func newModel(r timetable.Request, pods []*v1.Pod, listed bool) *model {
	m := &model{request: r}
	m.need(pods, listed)
	m.ask()
	m.end()
	m.fit()
	m.plan()
	return m
}

// bucketOf is the bucket of a pod: the highest whose priority is not above that of the pod,
// or else the lowest. It knows explicit priorities only.
func (m *model) bucketOf(pod *v1.Pod) (bucket int) {
	priority := int32(0)
	if pod.Spec.Priority != nil {
		priority = *pod.Spec.Priority
	}
	for i, b := range m.request.Schedule {
		if b.Priority <= priority {
			bucket = i
		}
	}
	return bucket
}

// need works out n(i), and which buckets have pods.
func (m *model) need(pods []*v1.Pod, known bool) {
	m.listed, m.needs = make([]bool, len(m.request.Schedule)), make([]int64, len(m.request.Schedule))
	for _, pod := range pods {
		i := m.bucketOf(pod)
		seconds := max(m.request.Schedule[i].Seconds, 0)
		if grace := pod.Spec.TerminationGracePeriodSeconds; grace != nil {
			seconds = min(seconds, max(*grace, 0))
		}
		m.listed[i], m.needs[i] = true, max(m.needs[i], seconds)
	}
	for i, b := range m.request.Schedule {
		if !known {
			m.listed[i], m.needs[i] = true, max(b.Seconds, 0)
		}
		if i < m.request.Done {
			m.listed[i], m.needs[i] = false, 0
		}
	}
}

// span is a duration of the options: 0 is the default, less is none.
func span(used bool, d, otherwise time.Duration) time.Duration {
	switch {
	case !used || d < 0:
		return 0
	case d == 0:
		return otherwise
	}
	return d
}

// ask works out what the host is asked for.
func (m *model) ask() {
	r, o := m.request, m.request.Options
	m.prepare = span(o.Hooks.Prepare && !r.Prepared, o.PrepareTimeout, 2*time.Second)
	m.hold = span(o.Hooks.Hold && !r.Held, o.HoldTimeout, 10*time.Second)
	m.publish = span(o.Hooks.Publish && !r.Published, o.PublishTimeout, 2*time.Second)
	m.margin = span(true, o.ReleaseMargin, 500*time.Millisecond)
	m.floor = 2 * time.Second
	m.total = m.prepare + m.hold + m.publish + m.floor + m.margin
	m.seconds = make([]int64, len(r.Schedule))
	m.readiness, m.unmount, m.statuses = make([]time.Duration, len(r.Schedule)), make([]time.Duration, len(r.Schedule)), make([]time.Duration, len(r.Schedule))
	for i, b := range r.Schedule {
		if b.Seconds <= 0 {
			continue
		}
		m.seconds[i] = b.Seconds
		m.readiness[i] = span(o.Hooks.Readiness, o.ReadinessReserve, time.Second)
		m.unmount[i] = span(o.Hooks.Unmount, o.UnmountReserve, 2*time.Second)
		m.statuses[i] = span(o.Hooks.Statuses, o.FlushReserve, time.Second)
		m.total += time.Duration(b.Seconds)*time.Second + m.readiness[i] + m.unmount[i] + m.statuses[i]
	}
}

// end works out L, the margin, H and when the lock goes.
func (m *model) end() {
	r := m.request
	m.limit = noLimit
	if !r.HostEnd.IsZero() {
		m.limit = max(r.HostEnd.Sub(r.Received), 0)
		m.late = r.Late
	}
	if r.Options.Limit != 0 {
		m.limit = min(m.limit, max(r.Options.Limit, 0))
	}
	m.margin = min(m.margin, m.limit/10)
	m.h = m.limit - m.margin
	if !m.late {
		m.h = min(m.h, m.total)
	}
	m.unlock = m.h + m.margin/2
}

// fit gives what L has to whom it is due, one after the other: Prepare, the pods' needs, the
// steps beside the kills, the margin, the floor, the hold, and the pods' other seconds.
func (m *model) fit() {
	wanted := slices.Clone(m.seconds)
	left := max(m.limit-m.prepare, 0)
	cut := false
	for i := len(m.seconds) - 1; i >= 0; i-- {
		m.seconds[i] = min(m.needs[i], int64(left/time.Second))
		left -= time.Duration(m.seconds[i]) * time.Second
		cut = cut || m.seconds[i] < m.needs[i]
		if !m.listed[i] {
			m.readiness[i], m.unmount[i], m.statuses[i] = 0, 0, 0
		}
	}
	steps := left
	if cut {
		steps = 0
	}
	left -= m.share(steps)
	left -= min(left, m.margin)
	m.floor = min(m.floor, left)
	left -= m.floor
	m.hold = min(m.hold, left)
	left -= m.hold
	for _, listed := range []bool{true, false} {
		for i := len(m.seconds) - 1; i >= 0 && !cut; i-- {
			if m.listed[i] == listed {
				more := min(wanted[i]-m.seconds[i], int64(left/time.Second))
				m.seconds[i] += more
				left -= time.Duration(more) * time.Second
			}
		}
	}
}

// share shortens publishing and the reserves to what there is, and returns what it gave.
func (m *model) share(have time.Duration) (given time.Duration) {
	wants := []time.Duration{m.publish}
	for i := range m.seconds {
		wants = append(wants, m.readiness[i]+m.unmount[i]+m.statuses[i])
	}
	sum := time.Duration(0)
	for _, want := range wants {
		sum += want
	}
	if sum <= have {
		return sum
	}
	shares, pool := make([]time.Duration, len(wants)), have
	for i, want := range wants {
		if shares[i] = part(have, want, sum); shares[i] < 100*time.Millisecond {
			shares[i] = 0
		}
		pool -= shares[i]
	}
	for i := len(wants) - 1; i > 0; i-- {
		more := min(pool, wants[i]-shares[i])
		shares[i] += more
		pool -= more
	}
	m.publish = shares[0]
	for i, share := range shares[1:] {
		if want := wants[i+1]; want > 0 {
			m.readiness[i], m.unmount[i], m.statuses[i] = part(share, m.readiness[i], want), part(share, m.unmount[i], want), part(share, m.statuses[i], want)
		}
	}
	return have - pool
}

// part is have*want/sum.
func part(have, want, sum time.Duration) time.Duration {
	product := new(big.Int).Mul(big.NewInt(int64(have)), big.NewInt(int64(want)))
	return time.Duration(product.Div(product, big.NewInt(int64(sum))).Int64())
}

// plan works out E(i).
func (m *model) plan() {
	buckets := time.Duration(0)
	for i := range m.seconds {
		buckets += m.bucket(i)
	}
	start := m.prepare + m.hold + m.publish
	if m.late {
		start = max(start, m.h-2*time.Second-buckets)
	}
	m.starts = []time.Duration{start}
	for i := range m.seconds {
		start += m.bucket(i)
		m.starts = append(m.starts, start)
	}
}

// bucket is R+s(i)+U+F.
func (m *model) bucket(i int) time.Duration {
	return m.readiness[i] + time.Duration(m.seconds[i])*time.Second + m.unmount[i] + m.statuses[i]
}

// modelDrain is a drain by a model: how far it is, and what the buckets so far have left.
type modelDrain struct {
	*model
	now, left time.Duration
}

// skip passes a bucket without pods.
func (d *modelDrain) skip(i int) {
	if !d.request.Options.NoRollOver {
		d.left += time.Duration(d.seconds[i]) * time.Second
	}
}

// ends returns when bucket i, which starts now, ends at the latest, and how long its pods
// have if they are killed at a time.
func (d *modelDrain) ends(i int, at time.Duration) (end, grace time.Duration) {
	end, grace = d.starts[i+1], time.Duration(d.seconds[i])*time.Second
	if d.request.Options.NoRollOver {
		end = min(d.now, d.starts[i]) + d.bucket(i)
	} else if d.seconds[i] > 0 {
		grace += d.left
	}
	return end, max(min(grace, end-d.unmount[i]-d.statuses[i]-at), 0)
}

// granted is the grace period of a pod of bucket i.
func (d *modelDrain) granted(i int, pod *v1.Pod, at time.Duration) int64 {
	_, grace := d.ends(i, at)
	seconds := int64((grace + 100*time.Millisecond) / time.Second)
	if own := pod.Spec.TerminationGracePeriodSeconds; own != nil {
		return min(seconds, max(*own, 0))
	}
	return min(seconds, d.seconds[i])
}

// pass goes on to the next bucket: the pods of bucket i were killed at a time and took used
// to end, and what followed took after. A bucket without time is not waited for.
func (d *modelDrain) pass(i int, at, used, after time.Duration) {
	if d.seconds[i] == 0 {
		return
	}
	end, grace := d.ends(i, at)
	d.now = max(d.now, min(at+used+after, end, d.h))
	if d.left = max(grace-used, 0); d.request.Options.NoRollOver {
		d.left = 0
	}
}

// planned is what each pod is granted, in the order of the pods, if each uses all of its
// time and every other step too.
func (m *model) planned(pods []*v1.Pod) []int64 {
	d, granted := &modelDrain{model: m, now: m.starts[0]}, make([]int64, len(pods))
	for i := range m.seconds {
		longest, at, found := int64(0), d.now+m.readiness[i], false
		for k, pod := range pods {
			if m.bucketOf(pod) == i {
				granted[k], found = d.granted(i, pod, at), true
				longest = max(longest, granted[k])
			}
		}
		if !found {
			d.skip(i)
			continue
		}
		d.pass(i, at, time.Duration(longest)*time.Second, m.unmount[i]+m.statuses[i])
	}
	return granted
}
