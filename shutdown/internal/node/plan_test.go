package node_test

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubegrace/kubegrace/internal/times"
	"github.com/kubegrace/kubegrace/shutdown/internal/node"
	"github.com/kubegrace/kubegrace/shutdown/plan"
	"github.com/kubegrace/kubegrace/shutdown/source"
)

// drainRun is a drain without failures, and what it has done.
type drainRun struct {
	*node.Node
	drainOptions

	now      time.Time
	answers  []answer          // inputs that will come, in any order
	kills    map[string]killed // the first kill of each pod, by its name
	order    []string          // the names of the pods, in the order of their first kills
	plan     plan.Plan         // the plan that OnPlan got
	released time.Time
}

// answer is an input that comes at a time.
type answer struct {
	at time.Time
	in node.Input
}

// killed is the first kill of a pod. Its time counts from the announcement.
type killed struct {
	at      time.Duration
	seconds int64
}

var announced = time.Unix(100, 0) // when the host announces the shutdown of a drainRun

// drainOptions are the inputs of one drainRun.
type drainOptions struct {
	config      node.Config
	pods        []*v1.Pod
	endsAfter   map[string]time.Duration // how long a pod takes to end after its kill; missing: 0
	limit       time.Duration            // how long the host waits; 0: it names no deadline
	usesAllTime bool                     // each step takes its whole time; otherwise none
}

// runDrain drains a node, from the host's announcement to the release.
func runDrain(o drainOptions) *drainRun {
	run := &drainRun{Node: node.New(o.config), drainOptions: o, now: time.Unix(50, 0), kills: map[string]killed{}}
	run.step(node.LogRead{SameBoot: true})
	run.step(node.HostAnswered{Known: true})
	run.now = announced
	e := node.Event{Event: source.Event{Kind: source.KindReboot}, Host: true}
	if o.limit != 0 {
		e.Deadline = announced.Add(o.limit)
	}
	run.step(e)
	for run.released.IsZero() {
		run.step(run.nextInput())
	}
	return run
}

// nextInput moves the time on to the next input and returns it: the earliest answer, or a Tick if that is due before.
func (p *drainRun) nextInput() node.Input {
	next, index := answer{at: p.Wake(), in: node.Tick{}}, -1 // the index of the answer; -1: it is the Tick
	for i, a := range p.answers {
		if next.at.IsZero() || !next.at.Before(a.at) {
			next, index = a, i
		}
	}
	if index >= 0 {
		p.answers = slices.Delete(p.answers, index, index+1)
	}
	p.now = times.Later(p.now, next.at)
	return next.in
}

// step passes an input, and queues the results of the effects for later steps.
func (p *drainRun) step(in node.Input) {
	for _, e := range p.Step(p.now, in) {
		switch e.Do {
		case node.List:
			p.list(e)
		case node.Kill:
			p.kill(e)
		case node.Prepare, node.Hold, node.Unmount:
			at := p.now
			if p.usesAllTime {
				at = e.Until
			}
			p.answer(at, node.CallReturned{Call: e.Call})
		case node.Sync, node.OnRelease:
			p.answer(p.now, node.CallReturned{Call: e.Call})
		case node.Publish:
			p.answer(p.now, node.Published{Call: e.Call})
		case node.SendMessage:
			p.answer(p.now, node.MessageAnswered{Call: e.Call, Key: e.Pod.Key})
		case node.OnPlan:
			var pods []*v1.Pod
			for _, due := range e.Pods {
				pods = append(pods, due.Object)
			}
			p.plan = e.Shutdown.Timetable.Plan(pods)
		case node.ReleaseLock:
			p.released = p.now
		default: // not part of a plan
		}
	}
}

// answer queues an input that comes at the time at.
func (p *drainRun) answer(at time.Time, in node.Input) { p.answers = append(p.answers, answer{at, in}) }

// list answers a list with all pods, also those that have ended.
func (p *drainRun) list(e node.Effect) {
	in := node.Listed{Call: e.Call}
	for _, pod := range p.pods {
		in.Pods = append(in.Pods, node.Pod{Key: pod.UID, Namespace: pod.Namespace, Name: pod.Name, Priority: *pod.Spec.Priority, Object: pod})
	}
	p.answer(p.now, in)
}

// kill records the first kill of a pod, and lets it return when the pod ends.
func (p *drainRun) kill(e node.Effect) {
	if _, wasKilled := p.kills[e.Pod.Name]; wasKilled {
		return
	}
	p.kills[e.Pod.Name] = killed{p.now.Sub(announced), e.Seconds}
	p.order = append(p.order, e.Pod.Name)
	p.answer(p.now.Add(p.endsAfter[e.Pod.Name]), node.Killed{Call: e.Call, Key: e.Pod.Key})
}

// planPod returns a pod of the API. A negative grace period stands for a pod without one.
func planPod(name string, priority int32, grace int64) *v1.Pod {
	pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{UID: node.Key(name), Namespace: "default", Name: name}, Spec: v1.PodSpec{Priority: &priority}}
	if grace >= 0 {
		pod.Spec.TerminationGracePeriodSeconds = &grace
	}
	return pod
}

// randomDrain draws a drain in which every step takes its whole time, and the first pod of each bucket never ends. opts are the
// options for plan.New: those of the drain, but with the time that the host waits, if it limits the drain, as Limit.
func randomDrain(random *rand.Rand) (o drainOptions, opts plan.Options) {
	flip := func() bool { return random.IntN(2) == 0 }
	timeout := func() time.Duration {
		return []time.Duration{0, -1, time.Duration(random.IntN(20_000)) * time.Millisecond}[random.IntN(3)]
	}
	o = drainOptions{endsAfter: map[string]time.Duration{}, usesAllTime: true}
	c := &o.config
	c.Options = plan.Options{
		NoRollOver: flip(), PrepareTimeout: timeout(), HoldTimeout: timeout(), UnmountTimeout: timeout(),
		Steps: plan.Steps{Prepare: flip(), Hold: flip(), Unmount: flip()},
	}
	for i := range 1 + random.IntN(4) {
		c.Schedule = append(c.Schedule, plan.Bucket{Priority: int32(i), Seconds: random.Int64N(30)})
		for k := range random.IntN(4) {
			pod := planPod(fmt.Sprint("pod-", i, "-", k), int32(i), random.Int64N(60)-1)
			o.pods = append(o.pods, pod)
			if isFirst := k == 0; isFirst {
				o.endsAfter[pod.Name] = time.Hour
			}
		}
	}
	opts = c.Options
	if flip() {
		return o, opts
	}
	opts.Limit = time.Duration(random.Int64N(int64(plan.NewBudget(c.Schedule, opts).Total())))
	opts.Limit = max(opts.Limit, 2*time.Second)        // Prepare may use up a shorter limit, and a drain has at least 300 ms
	if opts.Limit%time.Second > 800*time.Millisecond { // up to 200 ms below a whole second are rounded up
		opts.Limit -= 300 * time.Millisecond
	}
	if flip() {
		o.limit = opts.Limit // of the host
	} else {
		c.Options = opts
	}
	return o, opts
}

// randomDrain draws schedules, limits and pods. runDrain drains a node with them: every step takes its whole time, and the
// first pod of each bucket never ends. Each pod must be killed when plan.New predicts it, with the predicted seconds. isDrawn
// records which fields of plan.Options were drawn: it must be all of them, so that a new field cannot be forgotten in the plan
// or in the drain.
func TestADrainDoesWhatWasPlanned(t *testing.T) {
	isDrawn := map[string]bool{
		"PriorityOf":     true,                          // the plan and the drain get pods whose priorities are resolved
		"PublishTimeout": true, "StatusesTimeout": true, // randomDrain does not draw these steps
	}
	for seed := range uint64(5000) {
		o, opts := randomDrain(rand.New(rand.NewPCG(seed, 0)))
		if len(o.pods) == 0 {
			continue // nothing is planned
		}
		for _, field := range reflect.VisibleFields(reflect.TypeFor[plan.Options]()) {
			isDrawn[field.Name] = isDrawn[field.Name] || !reflect.ValueOf(opts).FieldByIndex(field.Index).IsZero()
		}
		about := fmt.Sprintf("seed %d: %v within %v", seed, o.config.Schedule, opts.Limit)
		want := plan.New(o.config.Schedule, o.pods, opts)
		run := runDrain(o)
		require.Equal(t, want.Buckets, run.plan.Buckets, about)
		wantKills := map[string]killed{}
		for _, bucket := range want.Buckets {
			for _, planned := range bucket.Pods {
				wantKills[planned.Pod.Name] = killed{planned.Start, planned.GrantedSeconds}
			}
		}
		require.Equal(t, wantKills, run.kills, about)
	}
	for option, drawn := range isDrawn {
		require.True(t, drawn, "the test must draw plan.Options.%s", option)
	}
}
