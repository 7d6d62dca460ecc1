package virtualkubelet

import (
	"context"

	v1 "k8s.io/api/core/v1"
)

// NotifyPods registers who is told of statuses; virtual-kubelet's PodController does
// that when it begins. Until then nobody is told, and no pod forgotten. notify is
// called for one status of a pod after the other, for several pods at once, and may
// block; nil changes nothing. The context is not used: [Provider.Close] ends the calls.
func (p *Provider) NotifyPods(_ context.Context, notify func(*v1.Pod)) {
	p.agent.listener.register(notify)
}

// teller tells virtual-kubelet of one pod.
type teller struct {
	*record

	changed chan struct{} // holds one: there is news
}

// wake says that there is news. It does not block.
func (t *teller) wake() {
	select {
	case t.changed <- struct{}{}:
	default:
	}
}

// run tells virtual-kubelet of a pod until that is forgotten. What has changed when
// the agent stops is told before it does.
func (t *teller) run() {
	select {
	case <-t.agent.listener.registered:
	case <-t.agent.workers.closing:
		return
	}
	for closing := false; !closing; {
		select {
		case <-t.changed:
		case <-t.agent.workers.closing:
			closing = true
		}
		if t.tell() && t.ender.forget() {
			return
		}
	}
}

// tell tells what is to be told, and tells whether the pod is to be forgotten.
func (t *teller) tell() (done bool) {
	news, final := t.news()
	if news != nil {
		t.agent.listener.tell(t.agent.complete(news, final))
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ending.told = t.ending.told || final
	return t.ending.told && t.orders.deleted
}

// news gives what is to be told of a pod, nil if nothing is, and whether
// it is final. While a pod is being terminated its last status stands: virtual-kubelet
// removes a deleted pod at once when it has no running entry in ContainerStatuses,
// though sidecars, and their hooks, may still run.
func (t *teller) news() (news *v1.Pod, final bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	final = t.ending.final != nil
	if t.orders.superseded || t.ending.told || t.ending.begun && !final {
		return nil, final
	}
	return t.copyLocked(), final
}
