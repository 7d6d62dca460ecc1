package virtualkubelet

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	v1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"

	"github.com/kubegrace/kubegrace/graceperiod"
	"github.com/kubegrace/kubegrace/lifecycle"
)

// remote is the body of a pod that runs as a whole at the place of a [PodRuntime].
type remote struct {
	*record

	place *place
}

// observe takes over what a list says of the pod; nil: the list lacks it.
func (r *remote) observe(listed *v1.Pod, asked time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var status *v1.PodStatus
	if listed != nil {
		status = &listed.Status
	}
	wasOver := r.place.over
	if r.place.observe(status, asked) && !r.ending.finalizing {
		r.containers.observe(r.place.status)
		r.notifier.wake()
	}
	switch {
	case r.place.over && !wasOver:
		r.agent.workers.spawn(r.name, r.over)
	case wasOver && !r.place.over && r.ending.terminating: // it is there after all
		r.agent.workers.spawn(r.name, func() { _ = r.ender.end(r.ctx, nil) }) // fails only when the agent stops
	}
}

// deleted records the answer of a Delete.
func (r *remote) deleted(err error) {
	isNotFound := errors.Is(err, lifecycle.ErrContainerNotFound)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.place.owed = r.place.owed && err != nil && !isNotFound
	if isNotFound {
		r.place.lose()
	}
}

// lose records that the place has nothing of the pod.
func (r *remote) lose() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.place.lose()
}

// is reports whether the place of the pod is so.
func (r *remote) is(so func(*place) bool) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return so(r.place)
}

// await waits until the place of the pod is so, at most for a time unless that is 0, and reports
// whether it is.
func (r *remote) await(ctx context.Context, atMost time.Duration, isSo func(*place) bool) bool {
	if atMost > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, atMost)
		defer cancel()
	}
	for {
		r.mu.Lock()
		so, changed := isSo(r.place), r.place.changed
		r.mu.Unlock()
		if so {
			return true
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return false
		}
	}
}

// ask makes a call of the PodRuntime for the pod, bounded in time, and logs why it failed.
func (r *remote) ask(ctx context.Context, name string, timeout time.Duration, f func(context.Context) error) error {
	bounded, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	err := guarded(bounded, name, func() error { return f(bounded) })
	if err != nil && ctx.Err() == nil {
		klog.FromContext(ctx).V(1).Info("A call for a pod failed", "call", name, "pod", r.name, "err", err)
	}
	return err
}

// create has the place create the pod, unless it has it already, and asks until it has.
func (r *remote) create() error {
	ctx, cancel := r.agent.workers.context(r.ctx, r.name, r.terminating)
	defer cancel()
	for pause := backOffFirst; !r.is((*place).hasPod); pause = min(2*pause, backOffMost) {
		err := r.tryCreate(ctx)
		if errdefs.IsInvalidInput(err) {
			for _, c := range r.containers.all {
				slot{r.record, c}.markTerminated(notStarted(err))
			}
			return err
		}
		if ctx.Err() == nil {
			r.tellCreate(err)
			r.await(ctx, pause, (*place).hasPod)
		}
		switch {
		case r.isTerminating():
			return lifecycle.ErrTerminating
		case r.agent.workers.isClosed():
			return lifecycle.AgentStopping
		}
	}
	return nil
}

// tellCreate shows in the status of the pod why a Create has failed; nil: it has not.
func (r *remote) tellCreate(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.place.status != nil || r.ending.terminating {
		return
	}
	for _, c := range r.containers.all {
		if c.state = (v1.ContainerState{}); err != nil {
			c.state.Waiting = &v1.ContainerStateWaiting{Reason: reasonCreateError, Message: err.Error()}
		}
	}
	r.notifier.wake()
}

// tryCreate asks the place once to create the pod, unless its termination has begun.
func (r *remote) tryCreate(ctx context.Context) error {
	if !r.agent.takeTurn(ctx) {
		return context.Cause(ctx)
	}
	defer r.agent.endTurn()
	pod := r.view()
	given := maps.Clone(pod.Annotations)
	r.mu.Lock()
	if r.ending.terminating {
		r.mu.Unlock()
		return lifecycle.ErrTerminating
	}
	r.place.startCreating()
	r.mu.Unlock()
	err := r.ask(ctx, "Create", createTimeout, func(ctx context.Context) error { return r.agent.opts.Pods.Create(ctx, pod) })
	isNone := errdefs.IsInvalidInput(err) || errors.Is(err, lifecycle.ErrContainerNotFound)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.place.created(err == nil, isNone)
	r.desired.annotate(given, pod.Annotations)
	return err
}

// placeStopper stops a pod at the place of a [PodRuntime]. It is a [lifecycle.PodStopper].
type placeStopper struct{ *agent }

// StopPod asks the place to stop the pod until it has taken that, and waits until the place
// says that nothing of the pod runs any more.
func (s placeStopper) StopPod(ctx context.Context, pod *v1.Pod, timeoutSeconds int64) error {
	known := s.pods.find(pod)
	if known == nil {
		return lifecycle.ErrContainerNotFound
	}
	r := known.remote()
	until := time.Now().Add(graceperiod.Duration(timeoutSeconds))
	if err := s.poller.await(ctx); err != nil {
		return err
	}
	isOver := func(p *place) bool { return p.over }
	if !r.await(ctx, 0, func(p *place) bool { return !p.creating }) {
		return fmt.Errorf("the pod is being created: %w", context.Cause(ctx))
	}
	for !r.is(isOver) {
		left := max(int64((time.Until(until)+time.Second-1)/time.Second), 0) // rounded up: a moment has passed
		err := r.ask(ctx, "Stop", callTimeout, func(ctx context.Context) error { return s.opts.Pods.Stop(ctx, pod.DeepCopy(), left) })
		again := time.Duration(0)
		switch {
		case errors.Is(err, lifecycle.ErrContainerNotFound):
			r.lose()
		case err != nil:
			again = s.opts.PollInterval
		}
		if !r.await(ctx, again, isOver) && ctx.Err() != nil {
			return errors.Join(err, context.Cause(ctx))
		}
	}
	return nil
}

// clear has the place forget the pod, and asks until it has. It reports whether it has.
func (r *remote) clear() bool {
	ctx, cancel := r.agent.workers.context(r.ctx, r.name, nil)
	defer cancel()
	isOver := func(p *place) bool { return p.over }
	for !r.is((*place).cleared) {
		if !r.await(ctx, 0, isOver) || ctx.Err() != nil {
			return false
		}
		pod := r.view()
		err := r.ask(ctx, "Delete", callTimeout, func(ctx context.Context) error { return r.agent.opts.Pods.Delete(ctx, pod) })
		r.deleted(err)
		r.await(ctx, r.agent.opts.PollInterval, (*place).cleared)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ender.leave()
	return true
}

// members returns the containers that a termination is to stop with the pod. The caller holds
// the mutex.
func (r *remote) members() []lifecycle.Container {
	members := []lifecycle.Container{}
	if r.place.over {
		return members
	}
	_, hasHooks := r.agent.opts.Pods.(lifecycle.CommandRunner)
	for _, c := range r.containers.all {
		if c.state.Terminated == nil {
			members = append(members, lifecycle.Container{
				Name: c.spec.Name, ID: string(r.key) + "/" + c.spec.Name, PreStopDone: !hasHooks || !c.running(),
			})
		}
	}
	if len(members) == 0 { // what runs of the pod is not known
		members = append(members, lifecycle.Container{Name: r.name.Name, ID: string(r.key), PreStopDone: true})
	}
	return members
}

// mayRun reports whether something of the pod runs or may run. The caller holds the mutex.
func (r *remote) mayRun() bool { return !r.place.over }

// goesOn reports whether the pod has not completed. The caller holds the mutex.
func (r *remote) goesOn() bool { return !r.place.over }

// write writes the status of the pod. The caller holds the mutex.
func (r *remote) write(pod *v1.Pod, ended bool) {
	r.place.write(&pod.Status)
	r.containers.write(pod, ended)
	pod.Status.Phase = r.place.phase(pod.Status.Phase, ended)
}
