package lifecycle

import (
	"hash/maphash"
	"maps"
	"strings"
	"sync"
	"sync/atomic"
	"weak"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// register finds the lives of pods by UID, or by NAMESPACE/NAME for those without.
type register struct {
	seed     maphash.Seed
	shards   [64]shard
	nameless atomic.Bool // there was a pod without UID
	withUID  atomic.Bool // there was one with a UID, so that names have to be compared
	names    sync.Mutex  // held while a life is looked for by name, or takes its UID
}

// shard has some of the lives. With one mutex for all pods, killing many pods at once would
// spend most of its time waiting for that mutex.
type shard struct {
	mu     sync.Mutex // not held while anything blocks; may be locked while a state's is held
	lives  map[types.UID]*Pod
	named  map[types.UID]weak.Pointer[Pod] // handles of lives that have not begun
	enough int                             // with how many of them to look which have gone
}

// fewNames is how many handles of a shard are not worth a look.
const fewNames = 16

// newRegister makes an empty register.
func newRegister() *register {
	r := &register{seed: maphash.MakeSeed()}
	for i := range r.shards {
		r.shards[i].lives, r.shards[i].named = map[types.UID]*Pod{}, map[types.UID]weak.Pointer[Pod]{}
	}
	return r
}

// keyOf returns the key of a pod: its UID, or NAMESPACE/NAME if it has none.
func keyOf(pod *v1.Pod) types.UID {
	if pod.UID != "" {
		return pod.UID
	}
	return nameOf(pod)
}

// nameOf returns NAMESPACE/NAME.
func nameOf(pod *v1.Pod) types.UID { return types.UID(pod.Namespace + "/" + pod.Name) }

// lockShard returns the shard that a key belongs to, locked.
func (r *register) lockShard(key types.UID) *shard {
	s := &r.shards[maphash.String(r.seed, string(key))%uint64(len(r.shards))]
	s.mu.Lock()
	return s
}

// get returns the life with a key, nil if there is none.
func (s *shard) get(key types.UID) *Pod {
	if p := s.lives[key]; p != nil {
		return p
	}
	return s.named[key].Value()
}

// find returns the life that a pod has, nil if it has none. With created, that is then the
// life of the pod, which is under way, or is only named.
func (r *register) find(pod *v1.Pod, created *Pod, named bool) *Pod {
	key := keyOf(pod)
	other := &r.withUID
	if pod.UID == "" {
		r.nameless.Store(true)
	} else {
		other = &r.nameless
		if !r.withUID.Load() {
			r.withUID.Store(true)
		}
	}
	s := r.lockShard(key)
	p := s.get(key)
	byName := p == nil && other.Load() // read with the mutex held, so that of two that come at once one sees the other
	if p == nil && !byName && created != nil {
		s.put(key, created, named)
		p = created
	}
	s.mu.Unlock()
	if !byName {
		return p
	}
	r.names.Lock()
	defer r.names.Unlock()
	if p = r.findByName(pod); p != nil {
		return p
	}
	s = r.lockShard(key)
	defer s.mu.Unlock()
	if p = s.get(key); p == nil && created != nil {
		s.put(key, created, named)
		p = created
	}
	return p
}

// findByName returns the life of a pod whose key nobody has: for a pod without UID the one
// of that name, for one with a UID the one that began without, which takes the UID. names is
// held.
func (r *register) findByName(pod *v1.Pod) *Pod {
	if pod.UID != "" {
		s := r.lockShard(nameOf(pod))
		p := s.get(nameOf(pod))
		s.mu.Unlock()
		if p != nil && r.takeUID(p, pod.UID) {
			return p
		}
		return nil
	}
	var found *Pod // the one with the least UID, if there are several
	for _, p := range r.all() {
		if p.isNamed(pod) && (found == nil || p.key < found.key) {
			found = p
		}
	}
	return found
}

// takeUID gives a life its UID. It returns false if the life has one, or was forgotten.
func (r *register) takeUID(p *Pod, uid types.UID) bool {
	state, err := p.lock()
	if err != nil {
		return false
	}
	defer state.mu.Unlock()
	if p.hasUID {
		return false
	}
	old := p.key
	p.key, p.hasUID = uid, true
	s := r.lockShard(old)
	begun := s.lives[old] == p
	delete(s.lives, old)
	delete(s.named, old)
	s.mu.Unlock()
	s = r.lockShard(uid)
	defer s.mu.Unlock()
	s.put(uid, p, !begun)
	return true
}

// put adds a life. One that is only named goes when nobody has its handle any more: whenever
// there are twice as many of them as after the last look, all are looked at.
func (s *shard) put(key types.UID, p *Pod, named bool) {
	if !named {
		s.lives[key] = p
		delete(s.named, key)
		return
	}
	s.named[key] = weak.Make(p)
	if len(s.named) > s.enough {
		maps.DeleteFunc(s.named, func(_ types.UID, handle weak.Pointer[Pod]) bool { return handle.Value() == nil })
		s.enough = max(2*len(s.named), fewNames)
	}
}

// enter adds a life that begins. Its state is locked, as in leave.
func (r *register) enter(p *Pod) {
	s := r.lockShard(p.key)
	defer s.mu.Unlock()
	s.put(p.key, p, false)
}

// leave removes a life of which nothing is known any more. Those who have its handle may
// begin it again, unless it was forgotten.
func (r *register) leave(p *Pod) {
	key := p.key
	s := r.lockShard(key)
	defer s.mu.Unlock()
	if s.lives[key] == p {
		delete(s.lives, key)
	}
	if s.named[key].Value() == p {
		delete(s.named, key)
	}
	if p.state.Load() != nil {
		s.put(key, p, true)
	}
}

// all returns the lives that are under way.
func (r *register) all() (lives []*Pod) {
	for i := range r.shards {
		s := &r.shards[i]
		s.mu.Lock()
		for _, p := range s.lives {
			lives = append(lives, p)
		}
		s.mu.Unlock()
	}
	return lives
}

// podOf returns a pod with the names of a key.
func podOf(key types.UID) *v1.Pod {
	if namespace, name, found := strings.Cut(string(key), "/"); found {
		return &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	}
	return &v1.Pod{ObjectMeta: metav1.ObjectMeta{UID: key}}
}
