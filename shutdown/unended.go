package shutdown

import (
	"maps"
	"sync"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubegrace/kubegrace/internal/staticpod"
	"github.com/kubegrace/kubegrace/shutdown/internal/kills"
)

// unended has the kills of shutdowns that are over whose pods are not known to have ended, given up
// or not. Such a pod is not admitted, and a later shutdown joins its kill: if the pod is waited for,
// listed or not, else if it is listed. A static pod is started again under its UID, so its kill is
// dropped once nobody waits for its end.
type unended struct {
	mu    sync.Mutex // guards kills
	kills map[types.UID]*kills.Kill
}

// add adds the kills of pods that were signalled and are not known to have ended.
func (u *unended) add(added ...*kills.Kill) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.kills == nil {
		u.kills = map[types.UID]*kills.Kill{}
	}
	for _, k := range added {
		if k.Signalled() && !k.HasEnded() && (k.UnderWay() || !staticpod.IsOrMirrors(k.Pod())) {
			u.kills[kills.Key(k.Pod())] = k
		}
	}
}

// remove removes a kill.
func (u *unended) remove(k *kills.Kill) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if len(u.kills) > 0 && u.kills[kills.Key(k.Pod())] == k {
		delete(u.kills, kills.Key(k.Pod()))
	}
}

// forget drops the kills that were given up, but for those of listed pods.
func (u *unended) forget(listed []*v1.Pod) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if len(u.kills) == 0 {
		return
	}
	keys := make(map[types.UID]bool, len(listed))
	for _, pod := range listed {
		if pod != nil {
			keys[kills.Key(pod)] = true
		}
	}
	maps.DeleteFunc(u.kills, func(key types.UID, k *kills.Kill) bool { return !keys[key] && !k.UnderWay() })
}

// find returns the kill of a pod; nil if there is none.
func (u *unended) find(key types.UID) *kills.Kill {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.kills[key]
}

// underWay returns the kills whose pods are waited for.
func (u *unended) underWay() (underWay []*kills.Kill) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, k := range u.kills {
		if k.UnderWay() {
			underWay = append(underWay, k)
		}
	}
	return underWay
}

// has reports whether a pod has a kill. A nil pod has none.
func (u *unended) has(pod *v1.Pod) bool { return pod != nil && u.find(kills.Key(pod)) != nil }
