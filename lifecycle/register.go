package lifecycle

import (
	"maps"
	"sync"
	"weak"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubegrace/kubegrace/internal/podkey"
)

// register finds the lives of pods by UID, or by NAMESPACE/NAME for those that began without.
// Its mutex is not held while anything blocks; it may be locked while that of a life is held.
type register struct {
	mu       sync.Mutex
	lives    map[types.UID]*life
	named    map[types.UID]weak.Pointer[life] // of which there is only a handle
	enough   int                              // with how many of them to look which have gone
	nameless bool                             // there was a pod without UID
}

// fewNames is how many handles are not worth a look.
const fewNames = 16

// newRegister makes an empty register.
func newRegister() *register {
	return &register{lives: map[types.UID]*life{}, named: map[types.UID]weak.Pointer[life]{}, enough: fewNames}
}

// get returns the life with a key, nil if there is none.
func (r *register) get(key types.UID) *life {
	r.mu.Lock()
	defer r.mu.Unlock()
	if l := r.lives[key]; l != nil {
		return l
	}
	return r.named[key].Value()
}

// lifeOf returns the life of a pod. If it has none, a new one is made for it, which is under
// way, or is only named. One that began without a UID takes the first that comes with its name,
// and is found by both from then on.
func (r *register) lifeOf(tr *Terminator, pod *v1.Pod, named bool) *life {
	r.mu.Lock()
	defer r.mu.Unlock()
	key := podkey.Of(pod)
	r.nameless = r.nameless || pod.UID == ""
	l := r.lives[key]
	mayTake := l == nil && pod.UID != "" && r.nameless
	if mayTake {
		l = r.take(r.lives[podkey.Name(pod)], pod.UID)
	}
	if l == nil { // what is under way goes before what is only named
		l = r.named[key].Value()
	}
	if l == nil && mayTake {
		l = r.take(r.named[podkey.Name(pod)].Value(), pod.UID)
	}
	if l == nil {
		l = &life{terminator: tr, name: key}
		l.own.life, l.handle = l, &l.own
		r.put(l, named)
	}
	return l
}

// take gives a life that began without a UID the first one. It returns nil if there is no such
// life.
func (r *register) take(l *life, uid types.UID) *life {
	if l == nil || !l.takeUID(uid) {
		return nil
	}
	r.put(l, r.lives[l.name] != l)
	return l
}

// put adds a life. One that is only named goes when nobody has its handle any more: whenever
// there are twice as many of them as after the last look, all are looked at.
func (r *register) put(l *life, named bool) {
	for _, key := range l.keys() {
		if !named {
			r.lives[key] = l
			delete(r.named, key)
			continue
		}
		r.named[key] = weak.Make(l)
	}
	if len(r.named) > r.enough {
		maps.DeleteFunc(r.named, func(_ types.UID, l weak.Pointer[life]) bool { return l.Value() == nil })
		r.enough = max(2*len(r.named), fewNames)
	}
}

// enter adds a life that begins.
func (r *register) enter(l *life) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.put(l, false)
}

// leave removes a life of which nothing is known any more. Those who have its handle may
// begin it again, unless it was forgotten.
func (r *register) leave(l *life, forgotten bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, key := range l.keys() {
		if r.lives[key] == l {
			delete(r.lives, key)
		}
		if r.named[key].Value() == l {
			delete(r.named, key)
		}
	}
	if !forgotten {
		r.put(l, true)
	}
}

// all returns the lives that are under way. One that is found by two keys is there twice.
func (r *register) all() (lives []*life) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, l := range r.lives {
		lives = append(lives, l)
	}
	return lives
}
