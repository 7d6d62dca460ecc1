package virtualkubelet

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"k8s.io/utils/ptr"

	"github.com/kubegrace/kubegrace/lifecycle"
)

// conclude waits for the end of a termination, and for the exits of its containers.
// Those that are stuck are left as running: DeletePod tries again, and they may exit
// after all.
func (p *Provider) conclude(r *record, t *lifecycle.Termination) {
	<-t.Done() // after Close, too
	defer close(r.concluded)
	result := t.Result()
	if result.Outcome() == lifecycle.LeftRunning {
		return
	}
	until := time.Now().Add(p.opts.ExitSlack)
	for _, c := range result.Containers {
		if c.Outcome != lifecycle.RuntimeStuck {
			p.awaitExit(r, c.ID, until)
		}
	}
	p.mu.Lock()
	r.settled, r.stuck = true, result.Err()
	p.mu.Unlock()
	p.settle(r)
}

// settle makes the status of a pod final once its termination, its start and all of
// its containers have ended.
func (p *Provider) settle(r *record) {
	if !p.over(r) {
		return
	}
	pod := p.view(r)
	p.mu.Lock()
	set := r.setStatus
	p.mu.Unlock()
	if set != nil {
		set(&pod.Status)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	r.final = &pod.Status
	close(r.ended)
	r.wakeLocked()
}

// over tells, once, whether a pod has ended.
func (p *Provider) over(r *record) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if r.settling || !r.settled || r.starting || len(r.runningLocked()) > 0 {
		return false
	}
	r.settling = true
	r.unknownLocked()
	return true
}

// again tries once more to stop the containers of a pod that are stuck, beside the
// caller, and gives the reason that they are: the error has virtual-kubelet call again,
// later and later. It is nil for a pod that has ended or is about to.
func (p *Provider) again(r *record) error {
	p.mu.Lock()
	err := r.stuck
	if r.settling {
		err = nil
	}
	begin := err != nil && !r.retrying && len(r.runningLocked()) > 0
	r.retrying = r.retrying || begin
	p.mu.Unlock()
	if err == nil {
		return nil
	}
	if begin {
		p.spawn(r.name, func() { p.retry(r) })
	}
	return fmt.Errorf("failed to end pod %s: %w", r.name, err)
}

// retry stops those containers once more that run, without a hook and without a grace
// that would start afresh.
func (p *Provider) retry(r *record) {
	pod := p.view(r)
	pod.DeletionGracePeriodSeconds = ptr.To(int64(0))
	p.mu.Lock()
	running := r.runningLocked()
	p.mu.Unlock()
	var stops sync.WaitGroup
	errs := make([]error, len(running))
	for i, c := range running {
		stops.Go(func() {
			if _, errs[i] = p.terminator.KillContainer(r.ctx, pod, c, lifecycle.ContainerRequest{}); errs[i] == nil {
				p.awaitExit(r, c.ID, time.Now().Add(p.opts.ExitSlack))
			}
		})
	}
	stops.Wait()
	p.mu.Lock()
	r.stuck, r.retrying = errors.Join(errs...), false
	p.mu.Unlock()
	p.settle(r)
}
