package shutdown

import (
	"sync"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubegrace/kubegrace/internal/staticpod"
	"github.com/kubegrace/kubegrace/shutdown/internal/kills"
)

// finals knows the pods whose final status the API server has not acknowledged: they must
// not be started again under the same UID, because that status would be false then. Static
// pods are: they keep their UID over a restart.
type finals struct {
	mu   sync.Mutex // guards pods
	pods map[types.UID]bool
}

func (f *finals) add(pod *v1.Pod) {
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

func (f *finals) remove(pod *v1.Pod) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.pods, kills.Key(pod))
}

// has tells whether the final status of a pod is on its way. A nil pod has none.
func (f *finals) has(pod *v1.Pod) bool {
	if pod == nil {
		return false
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.pods[kills.Key(pod)]
}
