package virtualkubelet

import (
	"cmp"
	"maps"
	"slices"
	"sync"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// podTable finds the records of pods.
type podTable struct {
	mu    sync.Mutex
	byKey map[types.UID]*record
	// byName has the newest of each name. The former one stays in byKey until it has
	// ended.
	byName map[types.NamespacedName]*record
}

func newPodTable() *podTable {
	return &podTable{byKey: map[types.UID]*record{}, byName: map[types.NamespacedName]*record{}}
}

// keyOf is how a pod is known, as package lifecycle does: by its UID, or by its
// namespace and name where it has none.
func keyOf(pod *v1.Pod) types.UID {
	if pod.UID != "" {
		return pod.UID
	}
	return types.UID(nameOf(pod).String())
}

func nameOf(pod *v1.Pod) types.NamespacedName {
	return types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}
}

// find gives the record of a pod, nil if it is not known.
func (t *podTable) find(pod *v1.Pod) *record {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.byKey[keyOf(pod)]
}

// named gives the newest record of a name, nil if there is none.
func (t *podTable) named(name types.NamespacedName) *record {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.byName[name]
}

// enter adds a record, unless that of the same pod is known, which it then gives. It
// gives the former record of the name, too, nil if there is none.
func (t *podTable) enter(r *record) (known, former *record) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if known = t.byKey[r.key]; known != nil {
		return known, nil
	}
	former = t.byName[r.name]
	t.byKey[r.key], t.byName[r.name] = r, r
	return nil, former
}

// remove takes a record out.
func (t *podTable) remove(r *record) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.byKey, r.key)
	if t.byName[r.name] == r {
		delete(t.byName, r.name)
	}
}

// newest gives the newest record of each name, sorted by name.
func (t *podTable) newest() []*record {
	t.mu.Lock()
	records := slices.Collect(maps.Values(t.byName))
	t.mu.Unlock()
	slices.SortFunc(records, func(a, b *record) int {
		return cmp.Or(cmp.Compare(a.name.Namespace, b.name.Namespace), cmp.Compare(a.name.Name, b.name.Name))
	})
	return records
}
