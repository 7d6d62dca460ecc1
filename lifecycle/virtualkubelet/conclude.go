package virtualkubelet

import (
	"time"

	"github.com/kubegrace/kubegrace/lifecycle"
)

// conclude waits for the end of a termination, and for the exits of its containers.
// Those that are stuck are left as running: the next DeletePod or KillPod tries again, and
// they may exit after all.
func (p *Provider) conclude(r *record, t *lifecycle.Termination) {
	<-t.Done() // after Close, too
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
