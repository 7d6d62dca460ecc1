package virtualkubelet

import (
	"context"

	v1 "k8s.io/api/core/v1"
)

// NotifyPods registers who is told of statuses; virtual-kubelet's PodController does
// that when it begins. Until then nobody is told, and no pod forgotten. notify is
// called for one status of a pod after the other, for several pods at once, and may
// block.
func (p *Provider) NotifyPods(_ context.Context, notify func(*v1.Pod)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.notify == nil {
		close(p.registered)
	}
	p.notify = notify
}

// tell tells virtual-kubelet of a pod until that is forgotten. What has changed when
// the agent stops is told before it does.
func (p *Provider) tell(r *record) {
	select {
	case <-p.registered:
	case <-p.closing:
		return
	}
	for closing := false; !closing; {
		select {
		case <-r.changed:
		case <-p.closing:
			closing = true
		}
		if p.tellNow(r) && p.forget(r) {
			return
		}
	}
}

// tellNow tells what is to be told, and tells whether the pod is to be forgotten.
func (p *Provider) tellNow(r *record) (done bool) {
	notify, news, final := p.news(r)
	if notify != nil {
		notify(p.complete(news, final))
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	r.told = r.told || final
	return r.told && r.deleted
}

// news gives what is to be told of a pod and to whom, nil if nothing is, and whether
// it is final. While a pod is being terminated its last status stands: virtual-kubelet
// removes a deleted pod at once when it has no running entry in ContainerStatuses,
// though sidecars, and their hooks, may still run.
func (p *Provider) news(r *record) (notify func(*v1.Pod), news *v1.Pod, final bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	final = r.final != nil
	if r.superseded || r.told || r.terminating && !final {
		return nil, nil, final
	}
	return p.notify, r.copyLocked(), final
}

// forget lets go of a pod, unless somebody waits for its end.
func (p *Provider) forget(r *record) (done bool) {
	r.turn <- struct{}{}
	defer func() { <-r.turn }()
	p.mu.Lock()
	if r.kills > 0 {
		p.mu.Unlock()
		return false
	}
	r.forgotten = true
	delete(p.pods, r.key)
	if p.names[r.name] == r {
		delete(p.names, r.name)
	}
	p.mu.Unlock()
	p.terminator.Forget(r.key)
	return true
}
