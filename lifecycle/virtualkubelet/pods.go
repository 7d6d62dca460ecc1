package virtualkubelet

import (
	"cmp"
	"iter"
	"maps"
	"slices"
	"sync"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// podTable holds the records of the known pods: those that were added and not forgotten.
type podTable struct {
	mu     sync.Mutex
	byKey  map[types.UID]*record            // all pods: older ones of a name stay until they have ended
	byName map[types.NamespacedName]*record // the newest pod of each name
}

func newPodTable() *podTable {
	return &podTable{byKey: map[types.UID]*record{}, byName: map[types.NamespacedName]*record{}}
}

// keyOf returns the pod's UID, or its namespace and name if it has none, as package lifecycle does.
func keyOf(pod *v1.Pod) types.UID {
	if pod.UID != "" {
		return pod.UID
	}
	return types.UID(nameOf(pod).String())
}

// nameOf returns the pod's namespace and name, which a later pod with another UID may share.
func nameOf(pod *v1.Pod) types.NamespacedName {
	return types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}
}

// find returns the record of a pod, or nil if it is unknown.
func (t *podTable) find(pod *v1.Pod) *record {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.findLocked(pod)
}

// findLocked finds a pod by its UID; a pod without one is the newest of its name. The caller holds the
// mutex.
func (t *podTable) findLocked(pod *v1.Pod) *record {
	if r := t.byKey[keyOf(pod)]; r != nil || pod.UID != "" {
		return r
	}
	return t.byName[nameOf(pod)]
}

// named returns the newest record with a name, or nil.
func (t *podTable) named(name types.NamespacedName) *record {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.byName[name]
}

// add adds a record and returns the earlier pods with its name, which must end before the new pod starts. If the pod
// is known already, add changes nothing and returns the known record.
func (t *podTable) add(r *record) (known *record, earlier []*record) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if known = t.findLocked(r.desired.pod); known != nil {
		return known, nil
	}
	for _, other := range t.byKey {
		if other.name == r.name {
			earlier = append(earlier, other)
		}
	}
	t.byKey[r.key], t.byName[r.name] = r, r
	return nil, earlier
}

// remove forgets a pod. If a newer pod has taken its name, the name stays that pod's.
func (t *podTable) remove(r *record) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.byKey, r.key)
	if t.byName[r.name] == r {
		delete(t.byName, r.name)
	}
}

// newest returns the newest record of each name, sorted by namespace and name.
func (t *podTable) newest() []*record {
	t.mu.Lock()
	defer t.mu.Unlock()
	return sorted(maps.Values(t.byName))
}

// all returns all records, sorted by namespace and name.
func (t *podTable) all() []*record {
	t.mu.Lock()
	defer t.mu.Unlock()
	return sorted(maps.Values(t.byKey))
}

// sorted sorts records by namespace, name and key.
func sorted(records iter.Seq[*record]) []*record {
	return slices.SortedFunc(records, func(a, b *record) int {
		return cmp.Or(cmp.Compare(a.name.Namespace, b.name.Namespace), cmp.Compare(a.name.Name, b.name.Name), cmp.Compare(a.key, b.key))
	})
}
