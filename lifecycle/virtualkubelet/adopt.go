package virtualkubelet

import (
	"context"
	"errors"
	"fmt"

	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/lifecycle"
)

var errAdopts = errors.New("a PodRuntime lists by itself which pods it has")

// Adopted is a pod that an earlier process of the agent has left running.
type Adopted struct {
	// Pod is the pod, as the API server or the agent's own records have it; nil is an error. Those of
	// its containers run that the [Runtime] lists. Of the others those have never been started that
	// have no status, or one that is waiting without a last end, and that come after all others in
	// the spec. The rest counts as terminated: as their status says, or with an unknown exit code.
	// Unless the pod was deleted, the restart policy has them started again.
	Pod *v1.Pod
	// Alive is true if this process has asked the API server and nobody has deleted the
	// pod. A later deletion is then new and has its full grace period. If it is false, a
	// deletion may be older than this process and has what its deletionTimestamp leaves,
	// until CreatePod or UpdatePod has shown that the pod is not deleted.
	Alive bool
}

// Adopt takes over a running pod. Call it before virtual-kubelet's PodController starts, which is
// before nodeutil's Node.Run, for each pod whose spec.nodeName is the node's:
//
//	list, err := client.CoreV1().Pods("").List(ctx, metav1.ListOptions{FieldSelector: "spec.nodeName=" + name})
//	for i := range list.Items { // of err == nil
//		pod := &list.Items[i]
//		err = errors.Join(err, provider.Adopt(ctx, virtualkubelet.Adopted{Pod: pod, Alive: pod.DeletionTimestamp == nil}))
//	}
//	err = virtual.Run(ctx) // of nodeutil.NewNode
//
// Adopt asks the [Runtime] once what runs of the pod, and waits for the answer: with a Runtime that
// polls, adopt several pods at once. If the Runtime cannot tell, the error is its error, and the pod is
// not adopted: call Adopt again. A pod that the provider knows already is not changed. Containers that
// have never been started are started now, after those before them; if there is no other,
// [Options.Admit] is asked.
//
// A deleted pod is terminated when DeletePod is called, which the controller does when it
// starts. If the pod has completed meanwhile, virtual-kubelet is notified. After
// [Provider.Close] the error is an errdefs.ErrInvalidInput that wraps
// [lifecycle.ErrClosed]. With a [PodRuntime], which lists by itself which pods it has, it is
// one too.
func (p *Provider) Adopt(ctx context.Context, adopted Adopted) error {
	if err := p.check(adopted.Pod); err != nil {
		return err
	}
	switch a := p.agent; {
	case a.isClosed():
		return newRefusedError(adopted.Pod, lifecycle.ErrClosed)
	case a.opts.Pods != nil:
		return newRefusedError(adopted.Pod, errAdopts)
	case a.pods.find(adopted.Pod) != nil:
		return nil
	}
	listed, err := p.agent.listOf(ctx, adopted.Pod)
	if err != nil {
		return fmt.Errorf("failed to adopt pod %s: %w", nameOf(adopted.Pod), err)
	}
	r := newRecord(ctx, p.agent, adopted.Pod)
	r.desired.adopted = !adopted.Alive
	begun := r.containers.adopt(adopted.Pod, listed)
	r.ending.starting = begun < len(r.containers.all)
	if known, _ := p.agent.pods.add(r); known != nil {
		r.cancel()
		return nil
	}
	r.notifier.wake()
	p.agent.spawn(r.name, r.notifier.run)
	p.agent.spawn(r.name, r.watch)
	for _, c := range r.containers.all[:begun] {
		r.goOn(c)
	}
	if begun < len(r.containers.all) {
		p.agent.spawn(r.name, (&starter{agent: p.agent, r: r, begun: begun > 0}).run)
	}
	if r.completed() {
		r.ender.endCompleted()
	}
	return nil
}

// listOf asks the runtime once what runs of a pod that is not known yet.
func (a *agent) listOf(ctx context.Context, pod *v1.Pod) (listed []lifecycle.Container, err error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	err = guarded(ctx, "Running", func() (err error) {
		listed, err = a.opts.Runtime.Running(ctx, pod.DeepCopy())
		return err
	})
	for _, c := range listed {
		if err == nil {
			err = checkID(c.ID)
		}
	}
	return listed, err
}

// goOn goes on with an adopted container, as it runs, is to be started again, or has ended.
func (r *record) goOn(c *container) {
	r.mu.Lock()
	id, runs, restarting, last, ended := c.id, c.running(), c.restarting, c.last, c.state.Terminated
	r.mu.Unlock()
	switch {
	case restarting:
		r.agent.spawn(r.name, func() {
			if r.tellEnd(c, id, *last) {
				_ = (&starter{agent: r.agent, r: r}).again(c) // shows in the state of the container
				r.over()
			}
		})
	case runs:
		r.watchExit(id)
	case id != "":
		r.agent.spawn(r.name, func() {
			if !r.tellEnd(c, id, *ended) {
				return
			}
			r.mu.Lock()
			r.containers.untold--
			r.mu.Unlock()
			r.over()
		})
	}
}
