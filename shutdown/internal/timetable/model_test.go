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

// newModel computes the model of a request whose pods are given; complete says that they are
// a complete list.
func newModel(r timetable.Request, pods []*v1.Pod, complete bool) *model {
	m := &model{request: r}
	m.need(pods, complete)
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

// need works out n(i).
func (m *model) need(pods []*v1.Pod, complete bool) {
	m.needs = make([]int64, len(m.request.Schedule))
	for _, pod := range pods {
		i := m.bucketOf(pod)
		seconds := max(m.request.Schedule[i].Seconds, 0)
		if grace := pod.Spec.TerminationGracePeriodSeconds; grace != nil {
			seconds = min(seconds, max(*grace, 0))
		}
		m.needs[i] = max(m.needs[i], seconds)
	}
	for i, b := range m.request.Schedule {
		if !complete {
			m.needs[i] = max(b.Seconds, 0)
		}
		if i < m.request.Done {
			m.needs[i] = 0
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

// end works out L, the margin, H and when the lock goes. The Limit of the options, which is
// what the platform leaves, ends the drain as a host does.
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

// fit shares out the limit L in this order: Prepare, the pods' needs, the
// steps beside the kills, the margin, the floor, the hold, and the pods' other seconds. Steps
// of buckets that need nothing have no time, unless there is enough for everything.
func (m *model) fit() {
	asked := m.total
	for i := range min(m.request.Done, len(m.seconds)) {
		asked -= m.bucket(i) - time.Duration(m.seconds[i])*time.Second
		m.readiness[i], m.unmount[i], m.statuses[i] = 0, 0, 0
	}
	if asked <= m.limit {
		return
	}
	wanted, left, cut := slices.Clone(m.seconds), max(m.limit-m.prepare, 0), false
	for i := len(m.seconds) - 1; i >= 0; i-- {
		m.seconds[i] = min(m.needs[i], int64(left/time.Second))
		left -= time.Duration(m.seconds[i]) * time.Second
		cut = cut || m.seconds[i] < m.needs[i]
		if m.needs[i] == 0 {
			m.readiness[i], m.unmount[i], m.statuses[i] = 0, 0, 0
		}
	}
	if cut {
		left = 0
	}
	left -= m.share(left)
	left -= min(left, m.margin)
	m.floor = min(m.floor, left)
	left -= m.floor
	m.hold = min(m.hold, left)
	left -= m.hold
	for _, needed := range []bool{true, false} {
		for i := len(m.seconds) - 1; i >= 0; i-- {
			if m.needs[i] > 0 == needed {
				more := min(wanted[i]-m.seconds[i], int64(left/time.Second))
				m.seconds[i] += more
				left -= time.Duration(more) * time.Second
			}
		}
	}
}

// share shortens publishing and the reserves to what there is, and returns what that takes.
func (m *model) share(have time.Duration) time.Duration {
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
	return have
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
	latest := m.h - 2*time.Second - buckets
	if m.late = m.late && latest > start; m.late {
		start = latest
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
