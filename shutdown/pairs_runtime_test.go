//go:build linux && go1.25

package shutdown_test

import (
	"cmp"
	"context"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/lifecycle"
	"github.com/kubegrace/kubegrace/shutdown"
	"github.com/kubegrace/kubegrace/shutdown/podkiller"
)

// newTerminator makes the terminator of an agent, whose calls of the runtime are steps of the process.
func (a *pairsAgent) newTerminator() {
	t, err := lifecycle.NewTerminator(lifecycle.TerminatorOptions{Runtime: pairsRuntime{a}, Commands: pairsRuntime{a}, Exits: a.rt})
	if err != nil {
		panic(err)
	}
	a.terminator, a.killer = t, podkiller.New(t, podkiller.Options{Status: a.podStatus})
}

// pairsRuntime is the container runtime as an agent has it.
type pairsRuntime struct{ a *pairsAgent }

func (r pairsRuntime) StopContainer(ctx context.Context, id string, seconds int64) error {
	return r.a.call(ctx, "stop", id, func(ctx context.Context) error { return r.a.rt.StopContainer(ctx, id, seconds) })
}

func (r pairsRuntime) RunInContainer(ctx context.Context, id string, cmd []string, timeout time.Duration) (output []byte, err error) {
	err = r.a.call(ctx, "hook", id, func(ctx context.Context) error {
		output, err = r.a.rt.RunInContainer(ctx, id, cmd, timeout)
		return err
	})
	return output, err
}

// call makes a call that ends with the process.
func (a *pairsAgent) call(ctx context.Context, kind, of string, do func(context.Context) error) error {
	a.enter(kind)
	return a.leave(a.spoil(ctx, kind, of, func() error {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		returned := make(chan struct{})
		defer close(returned)
		go func() {
			select {
			case <-a.gone:
				cancel()
			case <-returned:
			}
		}()
		return do(ctx)
	}))
}

// podStatus returns the status of a pod with the state that its container has.
func (a *pairsAgent) podStatus(_ context.Context, pod *v1.Pod) (status *v1.PodStatus) {
	container := v1.ContainerStatus{Name: "main", ContainerID: "cri://" + pod.Name, State: v1.ContainerState{Running: &v1.ContainerStateRunning{}}}
	if code, exited := a.rt.ExitCode(pod.Name); exited {
		container.State = v1.ContainerState{Terminated: &v1.ContainerStateTerminated{ExitCode: code}}
	}
	a.locked(func() { status = a.find(pod).pod.Status.DeepCopy() })
	status.ContainerStatuses = []v1.ContainerStatus{container}
	return status
}

// KillPod is a kill by the terminator.
func (a *pairsAgent) KillPod(ctx context.Context, pod *v1.Pod, req shutdown.KillRequest) (result shutdown.KillResult, err error) {
	a.enter("kill")
	if err := a.leave(nil); err != nil {
		return result, err
	}
	var p *pairsPod
	a.locked(func() {
		p = a.find(pod)
		k := pairsKill{time.Now(), *req.GracePeriodSeconds, a, a.table.current, a.termination != nil}
		if a.triesAgain(p) && k.of == nil {
			k.of = p.kills[len(p.kills)-1].of
		}
		a.signalled(p, k)
	})
	if s := a.meets("kill", pod.Name); s != nil {
		if s.after { // it is carried out, whoever waits
			a.unanswered.Go(func() { _, _ = a.killer.KillPod(ctx, pod, req) })
		}
		if err := a.goWrong(ctx, s); err != nil {
			return result, err
		}
	}
	if result, err = a.killer.KillPod(ctx, pod, req); err != nil {
		return result, a.leave(err)
	}
	if err := a.leave(nil); err != nil {
		return result, err
	}
	a.locked(func() {
		if p.reached.agent == nil || p.reached.agent.isDead() {
			p.reached = pairsKill{time.Now(), 0, a, a.table.current, a.termination != nil}
		}
	})
	return result, nil
}

// pairsStopLag is how much later than its grace period a pod may end: a StopContainer that hangs is made
// again, and the terminator gives a container at least two seconds.
const pairsStopLag = 4 * time.Second

// judgeStop judges how a pod was stopped: not before its grace period was over, and not long after. The
// mutex is held.
func (w *pairsWorld) judgeStop(p *pairsPod) {
	var until time.Time
	spoilt := slices.ContainsFunc([]string{"kill", "stop", "hook"}, func(kind string) bool {
		return slices.ContainsFunc(w.spoilt(nil, kind), func(s *pairsSpoilt) bool { return s.of == p.pod.Name })
	})
	for _, k := range p.kills {
		if end := k.until(); until.IsZero() || end.Before(until) {
			until = end
		}
		if limit := k.until().Add(pairsStopLag); !p.hung && !spoilt && k.agent.life().After(limit) && (p.ended.IsZero() || p.ended.After(limit)) {
			w.violate("%s has not ended %v after its grace period", p.pod.Name, cmp.Or(p.ended, time.Now()).Sub(k.until()))
		}
	}
	for _, s := range w.rt.Signals() {
		if s.ID == p.pod.Name && s.Signal == v1.SIGKILL && (until.IsZero() || s.At.Before(until.Add(-time.Second))) {
			w.violate("%s has had SIGKILL %v before the end of its grace period", p.pod.Name, until.Sub(s.At))
		}
	}
}
