//go:build go1.25

package lifecycle_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/kubegrace/kubegrace/graceperiod"
	"github.com/kubegrace/kubegrace/lifecycle"
)

// judgedPod is one pod of a run.
type judgedPod struct {
	spec   *v1.Pod
	names  []string
	handle *lifecycle.Pod // of its first life
}

// asked is one call that says what runs, or that stops it.
type asked struct {
	pod              string
	container        *lifecycle.Container // nil: all of the pod
	named            []string             // IDs
	shown            []string             // IDs that run by the status
	proven           map[string]time.Time // by name: a status says that nothing from before this time runs
	complete         bool
	kills            bool
	limits           bool // its grace period was given, and is not that of the pod
	seconds          int64
	called, returned moment
	result           lifecycle.Result
	err              error
}

// judgedForget is one call of Forget.
type judgedForget struct {
	pod              string
	called, returned moment
}

// judgedGrant is a grace period that somebody gave.
type judgedGrant struct {
	pod, name, id string // name and id are "" for all containers of the pod
	seq           int
	since         time.Time
	seconds       int64
}

// judgedRun is one run: random calls for random pods.
type judgedRun struct {
	*judgedRuntime

	tr       *lifecycle.Terminator
	pods     []*judgedPod
	ctx      context.Context //nolint:containedctx // with a silent logger
	calls    []*asked
	forgets  []*judgedForget
	began    time.Time
	misnames bool // lists may have an ID under the name of another container
	closing  moment
	closed   moment
	verdict  []string // what was wrong
}

func (j *judgedRun) newPod(r *rand.Rand, name string) *judgedPod {
	p := &judgedPod{spec: &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID("uid-" + name)},
		Spec:       v1.PodSpec{TerminationGracePeriodSeconds: ptr.To(int64(1 + r.IntN(12)))},
	}}
	if r.IntN(8) == 0 {
		p.spec.UID = ""
	}
	for i := range 1 + r.IntN(3) {
		hook := func(kind string) *v1.LifecycleHandler {
			return &v1.LifecycleHandler{Exec: &v1.ExecAction{Command: []string{kind, name, fmt.Sprint("c", i)}}}
		}
		c := v1.Container{Name: fmt.Sprint("c", i), Lifecycle: &v1.Lifecycle{PostStart: hook("postStart")}}
		if r.IntN(3) > 0 {
			c.Lifecycle.PreStop = hook("preStop")
		}
		if r.IntN(4) == 0 {
			c.Lifecycle.PreStop = &v1.LifecycleHandler{Sleep: &v1.SleepAction{Seconds: int64(r.IntN(8))}}
			j.sleepers[name+"/"+c.Name] = true
		}
		p.names = append(p.names, c.Name)
		if r.IntN(3) == 0 {
			c.RestartPolicy = ptr.To(v1.ContainerRestartPolicyAlways)
			p.spec.Spec.InitContainers = append(p.spec.Spec.InitContainers, c)
		} else {
			p.spec.Spec.Containers = append(p.spec.Spec.Containers, c)
		}
	}
	p.handle, j.graces[name] = j.tr.Pod(p.spec), *p.spec.Spec.TerminationGracePeriodSeconds
	return p
}

// withStatus is the pod with its status as it was some time ago, with the seconds of the API.
func (j *judgedRun) withStatus(p *judgedPod, ago time.Duration) *v1.Pod {
	pod, asOf := p.spec.DeepCopy(), time.Now().Add(-ago)
	j.mu.Lock()
	defer j.mu.Unlock()
	seconds := func(at time.Time) metav1.Time { return metav1.NewTime(at.Truncate(time.Second)) }
	for _, name := range p.names {
		s := v1.ContainerStatus{Name: name, State: v1.ContainerState{Waiting: &v1.ContainerStateWaiting{}}}
		for _, c := range j.real {
			switch {
			case c.pod != pod.Name || c.name != name || c.began.at.After(asOf):
			case c.ended.seq == 0 || c.ended.at.After(asOf):
				s.ContainerID, s.State = "judged://"+c.id, v1.ContainerState{Running: &v1.ContainerStateRunning{StartedAt: seconds(c.began.at)}}
			default:
				s.ContainerID = "judged://" + c.id
				s.State = v1.ContainerState{Terminated: &v1.ContainerStateTerminated{
					ContainerID: s.ContainerID, StartedAt: seconds(c.began.at), FinishedAt: seconds(c.ended.at),
				}}
			}
		}
		statuses := &pod.Status.ContainerStatuses
		if slices.ContainsFunc(pod.Spec.InitContainers, func(c v1.Container) bool { return c.Name == name }) {
			statuses = &pod.Status.InitContainerStatuses
		}
		*statuses = append(*statuses, s)
	}
	return pod
}

// list is a list of containers: right, stale, early or wrong.
func (j *judgedRun) list(r *rand.Rand, p *judgedPod) []lifecycle.Container {
	j.mu.Lock()
	defer j.mu.Unlock()
	list, kind, then := []lifecycle.Container{}, r.IntN(8), time.Now().Add(-3*time.Second)
	for _, c := range j.real {
		asOfThen := !c.began.at.After(then) && (c.ended.seq == 0 || c.ended.at.After(then))
		if c.pod == p.spec.Name && (kind != 0 && c.ended.seq == 0 || kind == 0 && asOfThen) {
			list = append(list, lifecycle.Container{Name: c.name, ID: c.id})
		}
	}
	for _, s := range j.starts {
		if kind == 1 && s.pod == p.spec.Name && s.container == nil && s.returned.seq == 0 {
			list = append(list, lifecycle.Container{Name: s.name, ID: s.id})
		}
	}
	switch {
	case kind == 2:
		list = append(list, lifecycle.Container{Name: p.names[0], ID: p.spec.Name + "/never"})
	case kind == 3 && len(list) > 0 && j.misnames:
		list[r.IntN(len(list))].Name = p.names[0]
	case kind == 4 && len(list) > 0:
		list = list[1:]
	}
	return list
}

// ask logs a call before it is made.
func (j *judgedRun) ask(a *asked, pod *v1.Pod, list []lifecycle.Container) *asked {
	a.pod, a.proven = pod.Name, map[string]time.Time{}
	for _, c := range list {
		a.named = append(a.named, c.ID)
	}
	for _, s := range slices.Concat(pod.Status.ContainerStatuses, pod.Status.InitContainerStatuses) {
		switch {
		case s.State.Running != nil:
			a.shown = append(a.shown, s.ContainerID[len("judged://"):])
			a.proven[s.Name] = s.State.Running.StartedAt.Time
		case s.State.Terminated != nil:
			a.proven[s.Name] = s.State.Terminated.FinishedAt.Time
		}
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	a.called = j.nowLocked()
	j.calls = append(j.calls, a)
	if a.kills {
		g := judgedGrant{pod: a.pod, seq: a.called.seq, since: a.called.at, seconds: a.seconds}
		if a.container != nil {
			g.name, g.id = a.container.Name, a.container.ID
		}
		j.grants = append(j.grants, g)
	}
	return a
}

// overrideOf is a random grace period, nil for none, and the seconds that it gives a pod.
func overrideOf(r *rand.Rand, pod *v1.Pod) (*int64, int64) {
	if r.IntN(3) > 0 {
		return nil, *pod.Spec.TerminationGracePeriodSeconds
	}
	override := int64(r.IntN(10))
	return &override, max(override, 1)
}

// kill stops a pod with a random request.
func (j *judgedRun) kill(r *rand.Rand, p *judgedPod, h *lifecycle.Pod) {
	pod, req := p.spec, lifecycle.Request{Complete: r.IntN(6) == 0, OneAttempt: r.IntN(6) == 0}
	if r.IntN(3) == 0 {
		pod = j.withStatus(p, time.Duration(r.IntN(2))*3*time.Second)
	}
	if req.Complete || r.IntN(3) > 0 {
		req.Containers = j.list(r, p)
	}
	if r.IntN(8) == 0 {
		req.Hooks = j.judgedRuntime
	}
	a := &asked{kills: true, complete: req.Complete}
	req.GracePeriodSeconds, a.seconds = overrideOf(r, pod)
	a.limits = req.GracePeriodSeconds != nil
	ctx := j.ctx
	if r.IntN(6) == 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Duration(r.IntN(8))*time.Second)
		defer cancel()
	}
	j.ask(a, pod, req.Containers)
	if pod != p.spec || r.IntN(2) == 0 {
		a.result, a.err = j.tr.KillPod(ctx, pod, req)
	} else {
		a.result, a.err = h.Terminate(ctx, req).Wait(ctx)
	}
	j.mark(&a.returned)
}

// killContainer stops one container with a random request.
func (j *judgedRun) killContainer(r *rand.Rand, p *judgedPod, h *lifecycle.Pod) {
	list := j.list(r, p)
	if len(list) == 0 {
		return
	}
	c, req := list[r.IntN(len(list))], lifecycle.ContainerRequest{OneAttempt: r.IntN(6) == 0}
	for spec := range slices.Values(slices.Concat(p.spec.Spec.Containers, p.spec.Spec.InitContainers)) {
		if spec.Name == c.Name {
			a := &asked{container: &c, kills: true, seconds: graceperiod.ForContainer(p.spec, &spec, graceperiod.ReasonUnknown)}
			if r.IntN(2) == 0 {
				req.GracePeriodSeconds, a.seconds = overrideOf(r, p.spec)
				if req.GracePeriodSeconds != nil {
					a.seconds, a.limits = *req.GracePeriodSeconds, true
				}
			}
			j.ask(a, p.spec, []lifecycle.Container{c})
			result, err := h.KillContainer(j.ctx, c, req)
			a.result.Containers, a.err = []lifecycle.ContainerResult{result}, err
			j.mark(&a.returned)
		}
	}
}

// start starts a container through Start.
func (j *judgedRun) start(r *rand.Rand, p *judgedPod, h *lifecycle.Pod, id string) {
	name := p.names[r.IntN(len(p.names))]
	s := &startCall{pod: p.spec.Name, name: name, id: p.spec.Name + "/" + name + id, plan: startPlan{
		takes: time.Duration(r.IntN(7)) * time.Second / 2, deaf: r.IntN(4) == 0, comesUp: r.IntN(6) > 0,
		ends: []string{"", "", "", "", "", "notFound", "fail", "panic", "noID", "both"}[r.IntN(10)],
	}}
	inside := r.IntN(5) == 0
	_ = h.Start(j.ctx, name, j.startFunc(s, func(ctx context.Context) { // the log has what came of it
		if inside {
			j.postStart(ctx, p, h, lifecycle.Container{Name: name, ID: s.id})
		}
	}))
}

// postStart runs a hook, after whose failure the container is killed.
func (j *judgedRun) postStart(ctx context.Context, p *judgedPod, h *lifecycle.Pod, c lifecycle.Container) {
	a := j.ask(&asked{container: &c}, p.spec, []lifecycle.Container{c})
	a.err = h.PostStart(ctx, c)
	j.mark(&a.returned)
}

// act does one random thing.
func (j *judgedRun) act(r *rand.Rand, p *judgedPod, number int) {
	h := p.handle
	if r.IntN(3) > 0 {
		h = j.tr.Pod(p.spec)
	}
	id := fmt.Sprint("-", number)
	if r.IntN(3) == 0 {
		id = "" // a name as an ID, which is used again
	}
	switch r.IntN(24) {
	case 0, 1, 2, 3, 4:
		j.start(r, p, h, id)
	case 5, 6, 7, 8, 9, 10:
		j.kill(r, p, h)
	case 11, 12, 13:
		j.killContainer(r, p, h)
	case 14, 15:
		if list := j.list(r, p); len(list) > 0 {
			j.postStart(j.ctx, p, h, list[0])
		}
	case 16, 17:
		j.forget(p, h, r.IntN(2) == 0)
	case 18, 19, 20:
		j.shorten(r, p, h)
	case 21, 22:
		name := p.names[r.IntN(len(p.names))]
		j.begin(p.spec.Name, name, p.spec.Name+"/"+name+id, nil) // by the runtime itself, or by somebody else
	default:
		if r.IntN(6) == 0 {
			j.close()
		}
	}
}

func (j *judgedRun) forget(p *judgedPod, h *lifecycle.Pod, byKey bool) {
	f := &judgedForget{pod: p.spec.Name}
	j.mark(&f.called)
	j.mu.Lock()
	j.forgets = append(j.forgets, f)
	j.mu.Unlock()
	key := p.spec.UID
	if key == "" {
		key = "ns/" + types.UID(p.spec.Name)
	}
	if byKey {
		j.tr.ForgetPod(key)
	} else {
		h.Forget()
	}
	j.mark(&f.returned)
}

func (j *judgedRun) shorten(r *rand.Rand, p *judgedPod, h *lifecycle.Pod) {
	t, ok := h.Termination()
	if !ok {
		return
	}
	seconds := int64(r.IntN(8))
	j.mu.Lock()
	j.grants = append(j.grants, judgedGrant{pod: p.spec.Name, seq: j.nowLocked().seq, since: time.Now(), seconds: max(seconds, 1)})
	j.mu.Unlock()
	t.Shorten(seconds)
	t.ShouldRestart(p.names[0])
}

func (j *judgedRun) close() {
	j.mu.Lock()
	if j.closing.seq == 0 {
		j.closing = j.nowLocked()
	}
	j.mu.Unlock()
	if err := j.tr.Close(j.ctx); err != nil {
		panic(err)
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.closed.seq == 0 {
		j.closed = j.nowLocked()
	}
}

// play makes all calls of a run, and ends everything that then still runs.
func (j *judgedRun) play() {
	r := j.random("play")
	j.unit, j.saysKill, j.watches = r.IntN(8) == 0, r.IntN(2) == 0, r.IntN(4) > 0
	opts := lifecycle.TerminatorOptions{Runtime: j, Commands: j, GiveUp: 15 * time.Second, StopSlack: 2 * time.Second, OnHook: j.hookEnded}
	if j.unit {
		opts.Pods = j
	}
	if j.watches {
		opts.Exits = j
	}
	if r.IntN(2) == 0 {
		opts.Hooks = j.judgedRuntime
	}
	if r.IntN(2) == 0 {
		opts.HookTiming = lifecycle.HooksAtTurn
	}
	var err error
	if j.random("events").IntN(2) == 0 {
		opts.Events = j
	}
	if j.tr, err = lifecycle.NewTerminator(opts); err != nil {
		panic(err)
	}
	var actors sync.WaitGroup
	for n := range 1 + r.IntN(2) {
		p := j.newPod(r, fmt.Sprint("pod", n))
		j.pods = append(j.pods, p)
		for range max(r.IntN(6)-3, 0) {
			j.podFaults[p.spec.Name] = append(j.podFaults[p.spec.Name], j.randomFault(r, false))
		}
	}
	for n, p := range j.pods {
		for i := range 3 + r.IntN(13) {
			at, own := time.Duration(r.IntN(16)-2)*time.Second/2, j.random("actor", n, i)
			actors.Go(func() {
				<-time.After(at)
				j.act(own, p, i)
			})
		}
	}
	actors.Wait()
	for _, p := range j.pods {
		for range r.IntN(3) {
			j.kill(r, p, j.tr.Pod(p.spec))
		}
	}
	j.mend()
	<-time.After(time.Minute)
	for _, p := range j.pods {
		j.settle(r, p)
	}
	j.close()
}

// settle asks about a pod until nothing of it is unknown, and forgets it.
func (j *judgedRun) settle(r *rand.Rand, p *judgedPod) {
	list := []lifecycle.Container{}
	for ask := range 4 {
		req := lifecycle.Request{GracePeriodSeconds: ptr.To(int64(3)), Complete: ask == 3}
		if ask >= 2 {
			j.mu.Lock()
			for _, c := range j.real {
				if c.pod == p.spec.Name && c.ended.seq == 0 {
					list = append(list, lifecycle.Container{Name: c.name, ID: c.id})
				}
			}
			j.mu.Unlock()
			req.Containers = list
		}
		a := j.ask(&asked{kills: true, limits: true, complete: req.Complete, seconds: 3}, p.spec, req.Containers)
		a.result, a.err = j.tr.KillPod(j.ctx, p.spec, req)
		j.mark(&a.returned)
		if req.Complete && j.closing.seq == 0 && !hasEnded(a.result.Outcome()) && !j.anyWrongly() {
			j.wrong("after a complete list: %s %v", a.result.Outcome(), a.err)
		}
	}
	j.forget(p, j.tr.Pod(p.spec), r.IntN(2) == 0)
}
