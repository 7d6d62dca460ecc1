//go:build linux

package shutdown_test

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"

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

	// The mutex of the world guards all below.
	died      time.Time // zero: it was not killed
	stopping  time.Time // zero: it goes on
	contacted time.Time // when a session has answered first; zero: none has
	connected time.Time // when its session has answered; zero: it has none
	adopted   bool      // the lock of a former agent
	sessions  []shutdown.Session
	locks     []io.Closer
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
	m, err := shutdown.NewManagerWith(shutdown.Options{
		Config: config, Source: a, Killer: a, Reporter: a, Pods: a.listPods, OnReport: a.onReport, StateDir: a.dir,
		LateStart: func(e shutdown.Event) bool { return w.late && e.Origin == "notice" },
		OnRelease: func(context.Context) { a.enter("let go"); _ = a.leave(nil) },
	}, w.boot.sinceBoot, a.write)
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
func (a *pairsAgent) enter(string) {
	a.locked(a.passes)
	select {
	case <-a.gone:
		<-a.over
	default:
	}
}

func (a *pairsAgent) leave(err error) error {
	a.locked(a.passes)
	select {
	case <-a.gone:
		<-a.over
		return errKilled
	default:
		return err
	}
}

func (a *pairsAgent) listPods(context.Context) (pods []*v1.Pod, err error) {
	a.enter("list")
	a.locked(func() {
		switch now := time.Now(); {
		case now.Before(a.failing):
			err = errors.New("the list fails")
		case !now.Before(a.empty):
			pods = a.lists()
		}
	})
	return pods, a.leave(err)
}

// KillPod acts as package lifecycle does: a second call joins the first and only shortens.
func (a *pairsAgent) KillPod(ctx context.Context, pod *v1.Pod, req shutdown.KillRequest) (shutdown.KillResult, error) {
	a.enter("kill")
	if err := a.leave(nil); err != nil {
		return shutdown.KillResult{}, err
	}
	var p *pairsPod
	a.locked(func() {
		p = a.find(pod)
		a.signalled(p, pairsKill{time.Now(), *req.GracePeriodSeconds, a, a.table.current})
	})
	time.AfterFunc(time.Duration(*req.GracePeriodSeconds)*time.Second, func() { // SIGKILL, whether anybody waits or not
		a.locked(func() {
			if !p.hung && !a.isDead() {
				a.end(p)
			}
		})
	})
	select {
	case <-p.exit:
		if err := a.leave(nil); err != nil {
			return shutdown.KillResult{}, err
		}
		a.locked(func() {
			if p.reached.agent == nil || p.reached.agent.isDead() {
				p.reached = pairsKill{time.Now(), 0, a, a.table.current}
			}
		})
		return shutdown.KillResult{Outcome: "Ended"}, nil
	case <-ctx.Done():
	case <-a.gone:
	}
	return shutdown.KillResult{}, a.leave(context.Cause(ctx))
}

// signalled is a call of KillPod. The mutex is held.
func (w *pairsWorld) signalled(p *pairsPod, k pairsKill) {
	w.say("%s is killed with %d s", p.pod.Name, k.seconds)
	until := k.until()
	if p.ended.IsZero() {
		w.judgeKill(p, k)
	}
	if len(p.kills) == 0 && p.term >= 0 {
		time.AfterFunc(p.term, func() { w.locked(func() { w.end(p) }) })
	}
	if len(p.kills) == 0 || until.Before(p.killed) {
		p.killed = until
	}
	p.kills = append(p.kills, k)
}

func (a *pairsAgent) PublishNode(ctx context.Context, state shutdown.NodeState) error {
	return a.answer(ctx, a, func() { a.published = state })
}

func (a *pairsAgent) FlushPod(ctx context.Context, pod *v1.Pod) error {
	return a.answer(ctx, a, func() {
		p := a.find(pod)
		a.say("the API server is told of the end of %s", pod.Name)
		if p.told = append(p.told, time.Now()); p.ended.IsZero() {
			a.violate("the API server is told of the end of %s, which runs", pod.Name)
		}
	})
}

func (a *pairsAgent) MarkNotReady(ctx context.Context, pod *v1.Pod) error {
	return a.answer(ctx, a, func() { a.find(pod).setReady(false) })
}

func (a *pairsAgent) RestoreReadiness(ctx context.Context, pod *v1.Pod) error {
	return a.answer(ctx, a, func() { a.find(pod).setReady(true) })
}

func (a *pairsAgent) onReport(_ context.Context, r shutdown.Report) {
	a.enter("report")
	if a.leave(nil) == nil {
		a.locked(func() { a.addReport(a, r, false) })
	}
}

// write writes a state file. What an agent is killed in is lost.
func (a *pairsAgent) write(path string, encode func(io.Writer) error) error {
	var data bytes.Buffer
	if err := encode(&data); err != nil {
		return err
	}
	a.enter("write")
	<-time.After(a.diskTakes)
	a.enter("written")
	if err := a.leave(os.WriteFile(path, data.Bytes(), 0o600)); err != nil {
		return err
	}
	a.locked(func() { a.disk[filepath.Base(path)] = data.Bytes() })
	return nil
}

// Adopt hands over what systemd's FD store has.
func (a *pairsAgent) Adopt() (left io.Closer) {
	a.locked(func() {
		if kept := a.kept; kept != nil && !a.isDead() {
			a.kept, a.adopted = nil, true
			left = a.hold(kept)
		}
	})
	return left
}

// Connect connects to the host.
func (a *pairsAgent) Connect(ctx context.Context) (shutdown.Session, error) {
	a.enter("connect")
	if err := a.leave(nil); err != nil {
		return nil, err
	}
	s, err := a.host.Connect(ctx)
	if err != nil {
		return nil, err
	}
	a.locked(func() { a.sessions = append(a.sessions, s) })
	return &pairsSession{s, a}, nil
}

// pairsSession is a session of an agent.
type pairsSession struct {
	shutdown.Session

	a *pairsAgent
}

func (s *pairsSession) Pending(ctx context.Context) (*shutdown.Event, error) {
	s.a.enter("pending")
	pending, err := s.Session.Pending(ctx)
	if err := s.a.leave(err); err != nil {
		return nil, err
	}
	s.a.locked(func() {
		if pending != nil {
			s.a.announced("host", pending.Deadline, true)
		} else {
			s.a.cancelled("host")
		}
		s.a.connected = time.Now()
		s.a.contacted = cmp.Or(s.a.contacted, s.a.connected)
	})
	return pending, nil
}

func (s *pairsSession) Inhibit(ctx context.Context) (io.Closer, error) {
	s.a.enter("inhibit")
	l, err := s.Session.Inhibit(ctx)
	if err != nil {
		return nil, s.a.leave(err)
	}
	var held io.Closer
	s.a.locked(func() {
		if held = s.a.hold(l); s.a.isDead() {
			_ = l.Close()
		}
	})
	return held, s.a.leave(nil)
}

func (s *pairsSession) Close() error {
	if err := s.a.leave(nil); err != nil {
		return err
	}
	s.a.locked(func() {
		s.a.sessions = slices.DeleteFunc(s.a.sessions, func(o shutdown.Session) bool { return o == s.Session })
	})
	return s.Session.Close()
}

// hold has an agent hold a lock. The mutex is held.
func (a *pairsAgent) hold(l io.Closer) io.Closer {
	a.locks = append(a.locks, l)
	return &pairsLock{a, l, time.Now()}
}

// pairsLock is a lock that an agent holds.
type pairsLock struct {
	a     *pairsAgent
	l     io.Closer
	taken time.Time
}

func (l *pairsLock) Close() error {
	l.a.enter("release")
	if err := l.a.leave(nil); err != nil {
		return err
	}
	l.a.locked(func() {
		l.a.locks = slices.DeleteFunc(l.a.locks, func(o io.Closer) bool { return o == l.l })
		if time.Since(l.taken) > 0 { // else it came too late to be held
			l.a.judgeRelease(l.a)
		}
	})
	return l.l.Close()
}
