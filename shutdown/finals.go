package shutdown

import (
	"sync"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubegrace/kubegrace/internal/staticpod"
	"github.com/kubegrace/kubegrace/shutdown/internal/kills"
)

// finals knows the pods whose final status the API server has not acknowledged, or whose
// acknowledgement is not stored: they must not be started again under the same UID, because
// that status would be false then.
type finals struct {
	mu   sync.Mutex // guards pods
	pods map[types.UID]func()
}

// add is called when a final status is to be told. withdraw takes it back, and calls remove
// once that has come about. It is used for static pods only: they keep their UID, and the API
// server that is to acknowledge may be one of them. Nil: it cannot be taken back.
func (f *finals) add(pod *v1.Pod, withdraw func()) {
	if !staticpod.IsOrMirrors(pod) {
		withdraw = nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.pods == nil {
		f.pods = map[types.UID]func(){}
	}
	f.pods[kills.Key(pod)] = withdraw
}

func (f *finals) remove(pod *v1.Pod) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.pods, kills.Key(pod))
}

// refuses tells whether the final status of a pod is on its way, and withdraws that of a
// static pod. A nil pod has none.
func (f *finals) refuses(pod *v1.Pod) bool {
	if pod == nil {
		return false
	}
	withdraw, has := f.find(pod)
	if withdraw != nil {
		withdraw()
		_, has = f.find(pod)
	}
	return has
}

func (f *finals) find(pod *v1.Pod) (withdraw func(), has bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	withdraw, has = f.pods[kills.Key(pod)]
	return withdraw, has
}
