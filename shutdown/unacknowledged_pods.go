package shutdown

import (
	"sync"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubegrace/kubegrace/internal/staticpod"
	"github.com/kubegrace/kubegrace/shutdown/internal/kills"
)

// unacknowledgedPods is the set of pods whose final status the API server has not acknowledged, or
// whose acknowledgement is not stored. Such a pod must not be started again under its UID, because
// its final status would be false.
type unacknowledgedPods struct {
	mu   sync.Mutex           // guards pods
	pods map[types.UID]func() // withdraws the final status; nil: it cannot be withdrawn
}

// add is called when a final status is queued. withdraw takes that status out of the queue, and
// remove is called once this is stored; nil: it cannot be withdrawn. It is used for static pods
// only: they keep their UID over a restart, and one of them may be the API server.
func (u *unacknowledgedPods) add(pod *v1.Pod, withdraw func()) {
	if !staticpod.IsOrMirrors(pod) {
		withdraw = nil
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.pods == nil {
		u.pods = map[types.UID]func(){}
	}
	u.pods[kills.Key(pod)] = withdraw
}

func (u *unacknowledgedPods) remove(pod *v1.Pod) {
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(u.pods, kills.Key(pod))
}

// refuses reports whether a pod is in the set, and withdraws the final status of a static pod
// before. A nil pod is not in the set.
func (u *unacknowledgedPods) refuses(pod *v1.Pod) bool {
	if pod == nil {
		return false
	}
	withdraw, has := u.find(pod)
	if withdraw != nil {
		withdraw()
		_, has = u.find(pod)
	}
	return has
}

func (u *unacknowledgedPods) find(pod *v1.Pod) (withdraw func(), has bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	withdraw, has = u.pods[kills.Key(pod)]
	return withdraw, has
}
