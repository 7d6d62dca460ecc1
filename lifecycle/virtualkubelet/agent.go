package virtualkubelet

import (
	"context"
	"sync"

	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/lifecycle"
)

// agent is shared by all pods of a provider.
type agent struct {
	opts       Options
	terminator *lifecycle.Terminator
	workers    *workers
	listener   *listener
	pods       *podTable
	poller     *poller
	exits      *exits        // nil with a PodRuntime
	starts     chan struct{} // of size MaxStarts: has an element for each start under way
}

// listener holds virtual-kubelet's callback for pods whose status has changed.
type listener struct {
	registered chan struct{} // closed by the first register

	mu     sync.Mutex
	notify func(*v1.Pod) // nil: not registered yet
}

func newListener() *listener { return &listener{registered: make(chan struct{})} }

// register sets or replaces the callback. Nil changes nothing.
func (l *listener) register(notify func(*v1.Pod)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.notify == nil && notify != nil {
		close(l.registered)
	}
	if notify != nil {
		l.notify = notify
	}
}

// notifyPod calls the callback, which must be registered, and blocks as long as it does.
func (l *listener) notifyPod(pod *v1.Pod) {
	l.mu.Lock()
	notify := l.notify
	l.mu.Unlock()
	notify(pod)
}

// takeTurn waits until fewer than [Options.MaxStarts] starts are under way; false if ctx ends
// before.
func (a *agent) takeTurn(ctx context.Context) bool {
	select {
	case a.starts <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}

// endTurn ends what takeTurn began.
func (a *agent) endTurn() { <-a.starts }
