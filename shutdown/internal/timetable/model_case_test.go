package timetable_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/shutdown/internal/timetable"
	"github.com/kubegrace/kubegrace/shutdown/plan"
)

// modelSeed is the environment variable with the seed of the random cases.
const modelSeed = "KUBEGRACE_MODEL_SEED"

// draw returns a number from 0 to less than n.
type draw func(n int) int

// of returns one of the values.
func of[T any](d draw, values ...T) T { return values[d(len(values))] }

// modelCase is a request with the pods that are listed first, and those that come late.
type modelCase struct {
	request  timetable.Request
	complete bool // the first list is known
	pods     []*v1.Pod
	late     []latePod
}

// latePod is a pod that is listed from the check before a bucket on.
type latePod struct {
	before int
	pod    *v1.Pod
}

func (c modelCase) String() string {
	pods := []string{"pods"}
	for _, pod := range c.pods {
		pods = append(pods, describe(pod))
	}
	for _, late := range c.late {
		pods = append(pods, fmt.Sprintf("late before %d: %s", late.before, describe(late.pod)))
	}
	return fmt.Sprintf("%+v\nlimit %v, complete %v, %s", c.request, c.request.HostEnd.Sub(c.request.Received), c.complete, strings.Join(pods, ", "))
}

// describe is the priority and the grace period of a pod.
func describe(pod *v1.Pod) string {
	if grace := pod.Spec.TerminationGracePeriodSeconds; grace != nil {
		return fmt.Sprintf("%d:%d", *pod.Spec.Priority, *grace)
	}
	return fmt.Sprintf("%d:none", *pod.Spec.Priority)
}

// podOf makes a pod of a priority.
func podOf(priority int32, grace ...int64) *v1.Pod {
	p := pod(grace...)
	p.Spec.Priority = &priority
	return p
}

// pickCase draws a case.
func pickCase(d draw) (c modelCase) {
	c.request.Received = received()
	c.request.Options = pickModelOptions(d)
	c.complete = d(5) > 0
	most, sum := of(d, 3, 12, 121), int64(0)
	for i := range 1 + d(6) {
		c.request.Schedule = append(c.request.Schedule, plan.Bucket{Priority: int32(i) * 1000, Seconds: int64(d(most))})
		sum += c.request.Schedule[i].Seconds
		for range of(d, 0, 1, 1, 3) {
			c.pods = append(c.pods, pickPod(d, i, most))
		}
		if d(5) == 0 {
			c.late = append(c.late, latePod{before: i + d(3), pod: pickPod(d, i, most)})
		}
	}
	if d(4) == 0 {
		c.request.Done, c.request.Held, c.request.Published, c.request.Prepared = d(len(c.request.Schedule)+1), d(2) == 0, d(2) == 0, d(2) == 0
	}
	if d(6) > 0 {
		c.request.HostEnd = after(pickLimit(d, int(sum)))
		c.request.Late = d(4) == 0
	}
	if d(5) == 0 {
		c.request.Options.Limit = pickLimit(d, int(sum)) - time.Duration(d(2))
	}
	if c.complete {
		c.request.Needs = c.request.Schedule.Needs(c.pods, c.request.Options)
	}
	return c
}

// pickPod draws a pod of bucket i.
func pickPod(d draw, i, most int) *v1.Pod {
	priority := int32(i)*1000 + int32(d(1000))
	if i == 0 {
		priority -= int32(d(1000))
	}
	switch d(6) {
	case 0:
		return podOf(priority)
	case 1:
		return podOf(priority, int64(d(most))-1)
	}
	return podOf(priority, int64(d(most+most/2)))
}

// pickLimit draws a limit around what a drain needs whose buckets have these seconds.
func pickLimit(d draw, seconds int) time.Duration {
	whole := time.Duration(d(of(d, seconds+1, seconds+60, 2*seconds+10))) * time.Second
	return whole + of(d, 0, 0, 500*time.Millisecond, 937*time.Millisecond, time.Duration(d(1e9)))
}

// pickModelOptions draws hooks, none, all or some, and their durations.
func pickModelOptions(d draw) plan.Options {
	all := plan.Hooks{Prepare: true, Hold: true, Publish: true, Readiness: true, Unmount: true, Statuses: true}
	yes := func() bool { return d(2) == 0 }
	o := plan.Options{NoRollOver: d(4) == 0, Hooks: of(d, plan.Hooks{}, all, allHooks(),
		plan.Hooks{Prepare: yes(), Hold: yes(), Publish: yes(), Readiness: yes(), Unmount: yes(), Statuses: yes()})}
	if yes() {
		return o
	}
	for _, p := range []*time.Duration{&o.PrepareTimeout, &o.HoldTimeout, &o.PublishTimeout, &o.ReadinessReserve, &o.UnmountReserve, &o.FlushReserve, &o.ReleaseMargin} {
		*p = of(d, 0, 0, -1, 50*time.Millisecond, 333*time.Millisecond, time.Duration(d(5e9)), time.Duration(d(40))*time.Second)
	}
	return o
}

// TestModelRandom compares the code with the model for random cases, and judges it by what
// has to hold whatever the model says.
func TestModelRandom(t *testing.T) {
	seed := rand.Uint64()
	if text := os.Getenv(modelSeed); text != "" {
		var err error
		seed, err = strconv.ParseUint(text, 10, 64)
		require.NoError(t, err)
	}
	r, k := rand.New(rand.NewPCG(seed, 0)), 0
	defer func() { t.Logf("%d cases of %s=%d", k, modelSeed, seed) }()
	for ; k < 10_000; k++ {
		c := pickCase(r.IntN)
		c.compare(t, r.IntN)
		c.judge(t, r.IntN)
	}
}

// FuzzModel is TestModelRandom with the bytes of the fuzzer as its random numbers.
func FuzzModel(f *testing.F) {
	for seed := range uint64(20) {
		data, r := make([]byte, 400), rand.New(rand.NewPCG(seed, 0))
		for i := range data {
			data[i] = byte(r.IntN(256))
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		d := func(n int) (drawn int) {
			for size := n; size > 1 && len(data) > 0; size /= 256 {
				drawn, data = drawn<<8|int(data[0]), data[1:]
			}
			return drawn % n
		}
		c := pickCase(d)
		c.compare(t, d)
		c.judge(t, d)
	})
}

// TestModelEveryLimit compares each small schedule, with pods that need less than their
// bucket has, as much, more, or their default, with all hooks, some and none, for each
// second of the limit up to what is asked for, and some fractions.
func TestModelEveryLimit(t *testing.T) {
	r, cases := rand.New(rand.NewPCG(1, 0)), 0
	all := allHooks()
	all.Prepare, all.Hold = true, true
	pods := func(i int, seconds int64) [][]*v1.Pod {
		priority := int32(i) * 1000
		return [][]*v1.Pod{nil, {podOf(priority)}, {podOf(priority, 0)}, {podOf(priority, seconds/2), podOf(priority, 1)}, {podOf(priority, seconds)}, {podOf(priority, seconds+5)}}
	}
	for _, hooks := range []plan.Hooks{{}, allHooks(), {Publish: true, Unmount: true}, all} {
		for _, low := range []int64{0, 1, 5, 20} {
			for _, high := range []int64{0, 2, 10} {
				for _, lowPods := range pods(0, low) {
					for _, highPods := range pods(1, high) {
						c := modelCase{complete: true, pods: append(slices.Clip(lowPods), highPods...)}
						c.request = timetable.Request{Received: received(), Schedule: buckets(low, high), Options: plan.Options{Hooks: hooks}}
						c.request.Needs = c.request.Schedule.Needs(c.pods, c.request.Options)
						total := plan.NewBudget(c.request.Schedule, c.request.Options).Total()
						for limit := second; limit <= total+2*second; limit += second {
							c.request.HostEnd = after(limit - []time.Duration{0, 0, 0, 1, 63 * ms, 500 * ms, 999 * ms}[cases%7])
							c.request.Late, c.request.Options.NoRollOver = cases%5 == 0, cases%3 == 0
							c.compare(t, r.IntN)
							cases++
						}
					}
				}
			}
		}
	}
	t.Log(cases, "cases")
}

// TestModelManyBuckets compares schedules of 3,000 buckets.
func TestModelManyBuckets(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 0))
	c := modelCase{complete: true, request: timetable.Request{Received: received(), Options: plan.Options{Hooks: allHooks()}}}
	var needed time.Duration
	for i := range 3000 {
		c.request.Schedule = append(c.request.Schedule, plan.Bucket{Priority: int32(i) * 1000, Seconds: int64(i % 40)})
		if i%5 < 2 {
			c.pods = append(c.pods, podOf(int32(i)*1000, int64(i%30)))
		}
	}
	c.request.Needs = c.request.Schedule.Needs(c.pods, c.request.Options)
	for _, n := range c.request.Needs {
		needed += time.Duration(n) * second
	}
	for _, limit := range []time.Duration{0, second, needed / 2, needed - 1, needed, needed + 50*ms, needed + 5*second, needed + 200*second, needed + time.Hour, needed + 5*time.Hour, 100 * time.Hour} {
		c.request.HostEnd = after(limit)
		c.compare(t, r.IntN)
		c.judge(t, r.IntN)
	}
}
