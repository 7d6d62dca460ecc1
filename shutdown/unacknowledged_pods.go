package shutdown

import (
	"sync"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubegrace/kubegrace/internal/staticpod"
	"github.com/kubegrace/kubegrace/shutdown/internal/kills"
)

// unacknowledgedPods is the set of pods whose final status the API server has not acknowledged.
// Such a pod must not be started again under its UID, because its final status would be false.
// Static pods are not in the set: they keep their UID over a restart.
type unacknowledgedPods struct {
	mu   sync.Mutex // guards pods
	pods map[types.UID]bool
}

func (u *unacknowledgedPods) add(pod *v1.Pod) {
	if staticpod.IsOrMirrors(pod) {
		return
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.pods == nil {
		u.pods = map[types.UID]bool{}
	}
	u.pods[kills.Key(pod)] = true
}

func (u *unacknowledgedPods) remove(pod *v1.Pod) {
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(u.pods, kills.Key(pod))
}

// has reports whether a pod is in the set. A nil pod is not.
func (u *unacknowledgedPods) has(pod *v1.Pod) bool {
	if pod == nil {
		return false
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.pods[kills.Key(pod)]
}
