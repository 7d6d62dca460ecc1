package shutdown

import (
	"slices"
	"sync"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// roster knows which pods a drain has signalled. The pods are listed again before
// each bucket, and almost always each is where it was: so they are compared by
// their places first, and looked up by their names only where that fails.
type roster struct {
	listed   []*v1.Pod // as they were listed last; a copy, the list is its owner's
	included []bool    // by the same places: signalled, or about to be

	mu      sync.Mutex // guards all below
	kills   []*kill    // as signalled; written by the drain alone
	indexed int        // so many kills are in the index
	index   map[types.UID]*kill
}

// pick gives the pods of a list that wanted chooses, and that were not picked
// before.
func (r *roster) pick(pods []*v1.Pod, wanted func(*v1.Pod) bool) []*v1.Pod {
	included := make([]bool, len(pods))
	var picked []*v1.Pod
	for i, pod := range pods {
		if pod == nil {
			continue
		}
		same := i < len(r.listed) && r.listed[i] == pod
		if same && r.included[i] || !same && r.find(podKey(pod)) != nil {
			included[i] = true
			continue
		}
		if included[i] = wanted(pod); included[i] {
			picked = append(picked, pod)
		}
	}
	r.listed, r.included = append(r.listed[:0], pods...), included
	return picked
}

// add makes kills known and gives them as they are ordered.
func (r *roster) add(kills []kill) []*kill {
	r.mu.Lock()
	defer r.mu.Unlock()
	before := len(r.kills)
	for i := range kills {
		r.kills = append(r.kills, &kills[i])
	}
	return slices.Clip(r.kills[before:])
}

// all are the kills so far. The list is not written to again.
func (r *roster) all() []*kill {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clip(r.kills)
}

// find gives what was asked for a pod; nil: nothing was. The index is made when
// it is asked for.
func (r *roster) find(key types.UID) *kill {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.indexed < len(r.kills) && r.index == nil {
		r.index = make(map[types.UID]*kill, len(r.kills))
	}
	for ; r.indexed < len(r.kills); r.indexed++ {
		k := r.kills[r.indexed]
		r.index[podKey(k.pod)] = k
	}
	return r.index[key]
}
