package shutdown

import (
	"sync"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubegrace/kubegrace/shutdown/internal/kills"
)

// unended has the kills of shutdowns that are over whose pods are still waited for. Such a pod is not
// admitted, and a later shutdown that finds it joins its kill. Once a kill was given up nobody will
// tell of the end of its pod, so it is dropped: the pod is the embedder's again.
type unended struct {
	mu    sync.Mutex // guards kills
	kills map[types.UID]*kills.Kill
}

// add adds kills, but for those that are not under way any more.
func (u *unended) add(added ...*kills.Kill) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.kills == nil {
		u.kills = map[types.UID]*kills.Kill{}
	}
	for _, k := range added {
		if k.UnderWay() {
			u.kills[kills.Key(k.Pod())] = k
		}
	}
}

// remove removes a kill that is not under way any more.
func (u *unended) remove(k *kills.Kill) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if len(u.kills) > 0 && u.kills[kills.Key(k.Pod())] == k {
		delete(u.kills, kills.Key(k.Pod()))
	}
}

// find returns the kill of a pod; nil if there is none.
func (u *unended) find(key types.UID) *kills.Kill {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.kills[key]
}

// has reports whether a pod has a kill. A nil pod has none.
func (u *unended) has(pod *v1.Pod) bool { return pod != nil && u.find(kills.Key(pod)) != nil }
