package virtualkubelet

import (
	"sync"

	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/lifecycle"
)

// agent is what all pods of a provider share.
type agent struct {
	opts       Options
	terminator *lifecycle.Terminator
	workers    *workers
	listener   *listener
	pods       *podTable
}

// listener is who is told of statuses: virtual-kubelet, once it has registered.
type listener struct {
	registered chan struct{} // closed by the first register

	mu     sync.Mutex
	notify func(*v1.Pod) // nil: nobody listens yet
}

func newListener() *listener { return &listener{registered: make(chan struct{})} }

// register replaces who is told.
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

// tell calls who is registered with a pod. It blocks as long as the call does.
func (l *listener) tell(pod *v1.Pod) {
	l.mu.Lock()
	notify := l.notify
	l.mu.Unlock()
	notify(pod)
}
