//go:build linux && go1.25

package shutdown_test

import (
	"context"
	"errors"
	"io"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"

	"github.com/kubegrace/kubegrace/lifecycle"
	"github.com/kubegrace/kubegrace/shutdown"
	"github.com/kubegrace/kubegrace/shutdown/plan"
)

// pairsAgent is a process. A killed one changes nothing any more: its calls do not return before the
// end of the run, and what it has not written is lost.
type pairsAgent struct {
	*pairsWorld

	m        *shutdown.Manager
	dir      string
	started  time.Time
	stop     context.CancelFunc
	gone     chan struct{} // closed when it is killed
	returned chan struct{} // closed when Run has returned
	err      error         // of Run
	ranUntil time.Time     // when finish has seen the end of Run

	// The mutex of the world guards all below.
	died        time.Time // zero: it was not killed
	stopping    time.Time // zero: it goes on
	contacted   time.Time // when a session has answered first; zero: none has
	connected   time.Time // when its session has answered; zero: it has none
	adopted     bool      // the lock of a former agent
	sessions    []shutdown.Session
	lost        time.Time // when it lost its session
	heard       bool      // its session has sent an event
	listed      time.Time // when Options.Pods was called last
	wrote       time.Time // when the last write of the record that was done has begun
	locks       []io.Closer
	termination *pairsTermination // nil: TerminateAll was not called

	terminator *lifecycle.Terminator
	killer     shutdown.PodKiller // over the terminator
	unanswered sync.WaitGroup     // kills whose answers were lost
}

// start starts an agent.
func (w *pairsWorld) start() {
	a := &pairsAgent{pairsWorld: w, started: time.Now(), gone: make(chan struct{}), returned: make(chan struct{})}
	w.locked(func() {
		w.say("an agent starts")
		a.dir = w.newDir()
		w.started(a.dir)
		w.agents = append(w.agents, a)
	})
	var config plan.Config
	for _, b := range pairsSchedule {
		config.ShutdownGracePeriodByPodPriority = append(config.ShutdownGracePeriodByPodPriority, plan.PodPriorityGracePeriod{Priority: b.priority, ShutdownGracePeriodSeconds: b.seconds})
	}
	call := func(kind string) func(context.Context) error {
		return func(ctx context.Context) error {
			a.enter(kind)
			return a.leave(a.spoil(ctx, kind, "", func() error { return nil }))
		}
	}
	opts := shutdown.Options{
		Config: config, Source: a, Killer: a, Reporter: a, Pods: a.listPods, OnReport: a.onReport, StateDir: a.dir,
		LateStart: func(e shutdown.Event) bool { return w.late && e.Origin == "notice" },
		OnRelease: func(ctx context.Context) { _ = call("release")(ctx) },
	}
	if w.hasFault("plan") {
		opts.OnPlan = func(ctx context.Context, _ plan.Plan) { _ = call("plan")(ctx) }
	}
	if w.hasFault("hold") {
		opts.Hold, opts.Plan.HoldTimeout = call("hold"), pairsHold
	}
	if w.hasFault("policy") {
		opts.Policy = func(shutdown.Kind) shutdown.PodPolicy {
			_ = call("policy")(a.Context())
			return shutdown.PolicySetTerminal
		}
	}
	if w.hasFault("volumes") {
		opts.Volumes = volumes(func(ctx context.Context, _ []*v1.Pod) error { return call("volumes")(ctx) })
	}
	if w.hasFault("prepare") {
		opts.Prepare = call("prepare")
	}
	a.newTerminator()
	m, err := shutdown.NewManagerWith(opts, w.boot.sinceBoot, a.write)
	if err != nil {
		panic(err)
	}
	ctx, stop := context.WithCancel(klog.NewContext(w.Context(), klog.Logger{}))
	a.m, a.stop = m, stop
	go func() {
		defer close(a.returned)
		a.err = m.Run(ctx)
	}()
	go func() {
		<-m.Ready()
		w.locked(func() { w.show(a) })
	}()
	time.AfterFunc(50*time.Millisecond, a.watchNotice)
}

// watchNotice announces the notice that stands, as its poller does.
func (a *pairsAgent) watchNotice() {
	notice := time.Time{}
	a.locked(func() {
		if a.isDead() {
			return
		}
		if !a.notice.IsZero() {
			notice = a.notice
			a.announced("notice", notice, false)
		}
	})
	if !notice.IsZero() {
		a.trigger(shutdown.Event{Origin: "notice", Deadline: notice})
	}
}

func (a *pairsAgent) trigger(e shutdown.Event) {
	if err := a.m.Trigger(e); err != nil {
		a.locked(func() { a.violate("Trigger: %v", err) })
	}
}

func (a *pairsAgent) isDead() bool { return !a.died.IsZero() }

// kill ends the process as kill -9 does, and systemd starts the next one. The mutex is held.
func (a *pairsAgent) kill() {
	a.say("the agent is killed")
	a.died = time.Now()
	close(a.gone)
	for _, p := range a.pods {
		p.changing = 0
	}
	for _, s := range a.sessions {
		_ = s.Close()
	}
	for i, l := range a.locks {
		if i == 0 && a.keeps {
			a.kept = l
		} else {
			_ = l.Close()
		}
	}
	a.locks = nil
	time.AfterFunc(a.restart, a.start)
}

// enter is the begin of a call that leaves the process, and leave its end.
func (a *pairsAgent) enter(kind string) {
	a.locked(func() { a.passes(kind) })
	select {
	case <-a.gone:
		<-a.over
	default:
	}
}

func (a *pairsAgent) leave(err error) error {
	a.locked(func() { a.passes("") })
	select {
	case <-a.gone:
		<-a.over
		return errKilled
	default:
		return err
	}
}

func (a *pairsAgent) listPods(ctx context.Context) (pods []*v1.Pod, err error) {
	a.enter("list")
	err = a.spoil(ctx, "list", "", func() (err error) {
		a.locked(func() {
			a.listed = time.Now()
			switch now := time.Now(); {
			case now.Before(a.failing):
				err = errors.New("the list fails")
			case !now.Before(a.empty):
				pods = a.lists()
			}
		})
		return err
	})
	return pods, a.leave(err)
}

// signalled is a call of KillPod. The mutex is held.
func (w *pairsWorld) signalled(p *pairsPod, k pairsKill) {
	w.say("%s is killed with %d s", p.pod.Name, k.seconds)
	until := k.until()
	if p.ended.IsZero() {
		w.judgeKill(p, k)
	}
	if len(p.kills) == 0 || until.Before(p.killed) {
		p.killed = until
	}
	p.kills = append(p.kills, k)
}

func (a *pairsAgent) PublishNode(ctx context.Context, state shutdown.NodeState) error {
	return a.answer(ctx, "publish", "", func() { a.published = state })
}

func (a *pairsAgent) FlushPod(ctx context.Context, pod *v1.Pod) error {
	return a.answer(ctx, "flush", pod.Name, func() {
		p := a.find(pod)
		a.say("the API server is told of the end of %s", pod.Name)
		if p.told = append(p.told, time.Now()); p.ended.IsZero() {
			a.violate("the API server is told of the end of %s, which runs", pod.Name)
		}
	})
}

func (a *pairsAgent) MarkNotReady(ctx context.Context, pod *v1.Pod) error {
	return a.changeReadiness(ctx, "mark", pod, false)
}

func (a *pairsAgent) RestoreReadiness(ctx context.Context, pod *v1.Pod) error {
	return a.changeReadiness(ctx, "restore", pod, true)
}

// changeReadiness is a call for the readiness of a pod. The later one of a mark and its restoration must
// reach the API server last, so they are never made at the same time.
func (a *pairsAgent) changeReadiness(ctx context.Context, kind string, pod *v1.Pod, ready bool) error {
	var p *pairsPod
	a.locked(func() {
		if p = a.find(pod); a.isDead() {
			return
		}
		if p.changing++; p.changing > 1 {
			a.violate("the readiness of %s is changed twice at the same time", pod.Name)
		}
	})
	defer a.locked(func() {
		if !a.isDead() {
			p.changing--
		}
	})
	return a.answer(ctx, kind, pod.Name, func() { p.setReady(ready) })
}

func (a *pairsAgent) onReport(ctx context.Context, r shutdown.Report) {
	a.enter("report")
	if a.leave(nil) == nil {
		a.locked(func() { a.addReport(a, r, false) })
		_ = a.spoil(ctx, "report", "", func() error { return nil })
	}
}
