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

func (f *unacknowledgedPods) add(pod *v1.Pod) {
	if staticpod.IsOrMirrors(pod) {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.pods == nil {
		f.pods = map[types.UID]bool{}
	}
	f.pods[kills.Key(pod)] = true
}

func (f *unacknowledgedPods) remove(pod *v1.Pod) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.pods, kills.Key(pod))
}

// has reports whether a pod is in the set. A nil pod is not.
func (f *unacknowledgedPods) has(pod *v1.Pod) bool {
	if pod == nil {
		return false
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.pods[kills.Key(pod)]
}
