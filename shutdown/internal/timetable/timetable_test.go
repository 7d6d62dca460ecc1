package timetable_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/shutdown/internal/timetable"
	"github.com/kubegrace/kubegrace/shutdown/plan"
)

const (
	second = time.Second
	ms     = time.Millisecond
)

// received is when the events of these tests are received.
func received() time.Time { return time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC) }

// after is the time that long after the event.
func after(d time.Duration) time.Time { return received().Add(d) }

// buckets returns a schedule of buckets with these seconds.
func buckets(seconds ...int64) (s plan.Schedule) {
	for i, n := range seconds {
		s = append(s, plan.Bucket{Priority: int32(i) * 1000, Seconds: n})
	}
	return s
}

// allHooks has all steps but Prepare and the hold.
func allHooks() plan.Hooks {
	return plan.Hooks{Publish: true, Readiness: true, Unmount: true, Statuses: true}
}

// request asks for two buckets of 20 s and 10 s and a host that waits for limit; 0: no host
// waits.
func request(limit time.Duration, opts plan.Options) timetable.Request {
	r := timetable.Request{Schedule: buckets(20, 10), Options: opts, Received: received()}
	if limit != 0 {
		r.HostEnd = after(limit)
	}
	return r
}

// table is the timetable of that request.
func table(limit time.Duration, opts plan.Options) timetable.Table {
	return timetable.New(request(limit, opts))
}

// pod makes a pod with these grace periods: one or none.
func pod(grace ...int64) *v1.Pod {
	p := &v1.Pod{}
	for _, seconds := range grace {
		p.Spec.TerminationGracePeriodSeconds = &seconds
	}
	return p
}

// A drain ends before the host's end, by the margin, or earlier if it needs no more time.
func TestEnd(t *testing.T) {
	hooks := plan.Options{Hooks: allHooks()}
	operator := plan.Options{Hooks: allHooks(), Limit: 20 * second}
	full := hooks
	full.Hooks.Prepare, full.Hooks.Hold = true, true
	for name, c := range map[string]struct {
		limit time.Duration
		opts  plan.Options
		set   func(*timetable.Request)
		want  time.Duration
	}{
		"no host waits":                   {0, hooks, nil, 42500 * ms},
		"half an hour":                    {30 * time.Minute, hooks, nil, 42500 * ms},
		"what was asked for":              {42500 * ms, hooks, nil, 42 * second},
		"less":                            {30 * second, hooks, nil, 29500 * ms},
		"less than ten margins":           {2 * second, hooks, nil, 1800 * ms},
		"the end has passed":              {-second, hooks, nil, 0},
		"an operator's limit":             {0, operator, nil, 19500 * ms},
		"an operator's limit is nearer":   {30 * second, operator, nil, 19500 * ms},
		"an operator's limit is farther":  {10 * second, operator, nil, 9500 * ms},
		"an operator leaves nothing":      {30 * second, plan.Options{Limit: -1}, nil, 0},
		"no margin":                       {30 * second, plan.Options{ReleaseMargin: -1}, nil, 30 * second},
		"without hooks, for half an hour": {30 * time.Minute, plan.Options{}, nil, 32500 * ms},
		"every step":                      {0, full, nil, 54500 * ms},
		"Prepare has been":                {0, full, func(r *timetable.Request) { r.Prepared = true }, 52500 * ms},
		"the hold has been":               {0, full, func(r *timetable.Request) { r.Held = true }, 44500 * ms},
		"it was published":                {0, full, func(r *timetable.Request) { r.Published = true }, 52500 * ms},
		"pods that need less":             {0, hooks, func(r *timetable.Request) { r.Needs = []int64{1, 0} }, 42500 * ms},
		"a bucket is done":                {0, hooks, func(r *timetable.Request) { r.Done = 1 }, 42500 * ms},
		"late":                            {30 * time.Minute, hooks, func(r *timetable.Request) { r.Late = true }, 1799500 * ms},
		"late, and no host waits":         {0, hooks, func(r *timetable.Request) { r.Late = true }, 42500 * ms},
		"late, and an operator's limit":   {time.Minute, operator, func(r *timetable.Request) { r.Late = true }, 19500 * ms},
	} {
		r := request(c.limit, c.opts)
		if c.set != nil {
			c.set(&r)
		}
		h, unlock := timetable.End(r)
		require.Equal(t, after(c.want), h, name)
		made := timetable.New(r)
		require.Equal(t, h, made.H(), name)
		require.Equal(t, h.Add(made.Budget().Margin/2), made.Unlock(), name)
		require.Equal(t, made.Unlock(), unlock, name)
	}
}

// The end saturates where a schedule overflows.
func TestEndOfHugeSchedules(t *testing.T) {
	r := request(0, plan.Options{})
	r.Schedule = buckets(math.MaxInt64, math.MaxInt64)
	h, _ := timetable.End(r)
	require.True(t, h.After(after(100*365*24*time.Hour)))
}

// The waits before the first bucket follow each other, and none is longer than the drain.
func TestWaitsBeforeTheBuckets(t *testing.T) {
	opts := plan.Options{Hooks: allHooks()}
	opts.Hooks.Prepare, opts.Hooks.Hold = true, true
	for limit, want := range map[time.Duration][]time.Duration{
		time.Hour:    {12 * second, 14 * second, 14 * second},
		47500 * ms:   {5 * second, 7 * second, 7 * second},
		32 * second:  {2 * second, 2 * second, 2 * second},
		1000 * ms:    {900 * ms, 900 * ms, 2 * second},
		31500 * ms:   {2 * second, 2 * second, 2 * second},
		-time.Second: {0, 0, 2 * second},
	} {
		tt := table(limit, opts)
		got := []time.Time{tt.HoldEnd(), tt.PublishEnd(), tt.First()}
		for i, end := range got {
			require.Equal(t, after(want[i]), end, "%v: %d", limit, i)
		}
	}
	r := request(time.Hour, opts)
	r.Prepared, r.Held, r.Published = true, true, true
	tt := timetable.New(r)
	require.Equal(t, received(), tt.First())
	require.Equal(t, received(), tt.PublishEnd())
}

// The buckets have what their pods need, and what else the limit leaves.
func TestNewFitsTheNeeds(t *testing.T) {
	r := request(10*second, plan.Options{Hooks: allHooks()})
	short := timetable.New(r)
	require.Equal(t, buckets(0, 10), short.Schedule())
	r.Needs = r.Schedule.Needs([]*v1.Pod{pod(3), pod(7), nil}, r.Options)
	require.Equal(t, []int64{7, 0}, r.Needs)
	tt := timetable.New(r)
	require.Equal(t, buckets(7, 0), tt.Schedule())
	require.Equal(t, second, tt.Budget().Publish, "3 s for twice as much")
	w := tt.Window(0, tt.First(), 0)
	require.Equal(t, int64(7), w.Seconds(pod(99), w.Ready))
	require.Equal(t, after(9500*ms), w.End)
	require.Equal(t, after(9500*ms), tt.H())
}

// The buckets that an earlier drain has finished need nothing, and have no other steps.
func TestNewAfterFinishedBuckets(t *testing.T) {
	for _, needs := range [][]int64{nil, {20, 10}, {20}} {
		r := request(15*second, plan.Options{Hooks: allHooks()})
		r.Needs, r.Done = needs, 1
		tt := timetable.New(r)
		require.Equal(t, buckets(0, 10), tt.Schedule())
		require.Zero(t, tt.Budget().Reserves[0])
		require.NotZero(t, tt.Budget().Reserves[1])
		if len(needs) > 0 {
			require.Equal(t, int64(20), needs[0], "the argument is not changed")
		}
		r.HostEnd = time.Time{}
		tt = timetable.New(r)
		require.Equal(t, buckets(20, 10), tt.Schedule())
		require.Zero(t, tt.Budget().Reserves[0])
		r.Done = 99
		tt = timetable.New(r)
		require.Len(t, tt.Schedule(), 2)
	}
}

// A drain that starts late ends when the host stops waiting. The 2 s of the containers'
// stops come before that.
func TestLateStart(t *testing.T) {
	late := func(limit time.Duration, opts plan.Options) timetable.Table {
		r := request(limit, opts)
		r.Late = true
		return timetable.New(r)
	}
	tt := late(2*time.Minute, plan.Options{Hooks: allHooks()})
	require.Equal(t, after(119500*ms), tt.H())
	require.Equal(t, after(79500*ms), tt.NotBefore(), "119.5 s less 2 s and twice 4 s beside 30 s")
	require.Equal(t, tt.NotBefore(), tt.First())
	require.Equal(t, after(117500*ms), tt.Window(1, after(100*second), 0).End)

	tt = late(20*second, plan.Options{Hooks: allHooks()})
	require.Zero(t, tt.NotBefore(), "there is no time to wait for")
	require.Equal(t, received().Add(tt.Budget().Publish), tt.First())

	tt = late(0, plan.Options{Limit: time.Hour})
	require.Zero(t, tt.NotBefore(), "no host waits")
	require.Equal(t, received(), tt.First())
	early := table(2*time.Minute, plan.Options{})
	require.Zero(t, early.NotBefore())
}

// The plan of a timetable has its times.
func TestPlan(t *testing.T) {
	opts := plan.Options{Hooks: allHooks()}
	r := request(2*time.Minute, opts)
	r.Late = true
	tt := timetable.New(r)
	p := tt.Plan([]*v1.Pod{pod(99)}, opts)
	require.Equal(t, 79500*ms, p.Buckets[0].Start)
	require.Equal(t, 119500*ms, p.Release)
	require.Equal(t, int64(20), p.Buckets[0].Pods[0].GrantedSeconds)
	require.Empty(t, p.Fitted.Hold+p.Fitted.Prepare)

	r = request(25*second, opts)
	r.Needs = []int64{20, 0}
	tt = timetable.New(r)
	opts.Limit = 25 * second
	pods := []*v1.Pod{pod(99)}
	require.Equal(t, plan.New(buckets(20, 10), pods, opts), tt.Plan(pods, opts))
}
