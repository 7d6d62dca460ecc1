package virtualkubelet

import (
	"cmp"
	"iter"
	"maps"
	"slices"
	"sync"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubegrace/kubegrace/internal/podkey"
)

// podTable holds the known pods: those that were added and not forgotten.
type podTable struct {
	mu     sync.Mutex
	byKey  map[types.UID]*managedPod            // all pods: a pod stays until it has ended, even if a newer one has its name
	byName map[types.NamespacedName]*managedPod // the newest pod of each name
}

func newPodTable() *podTable {
	return &podTable{byKey: map[types.UID]*managedPod{}, byName: map[types.NamespacedName]*managedPod{}}
}

// nameOf returns the pod's namespace and name, which a later pod with another UID may share.
func nameOf(pod *v1.Pod) types.NamespacedName {
	return types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}
}

// find returns a pod, or nil if it is unknown.
func (t *podTable) find(pod *v1.Pod) *managedPod {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.findLocked(pod)
}

// findLocked finds a pod by its UID; a pod without one is the newest of its name. The caller holds the
// mutex.
func (t *podTable) findLocked(pod *v1.Pod) *managedPod {
	if m := t.byKey[podkey.Of(pod)]; m != nil || pod.UID != "" {
		return m
	}
	return t.byName[nameOf(pod)]
}

// named returns the newest pod with a name, or nil.
func (t *podTable) named(name types.NamespacedName) *managedPod {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.byName[name]
}

// add adds a pod and returns the earlier pods with its name, which must end before the new pod starts. If the pod
// is known already, add changes nothing and returns the known pod.
func (t *podTable) add(m *managedPod) (known *managedPod, earlier []*managedPod) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if known = t.findLocked(m.desired.pod); known != nil {
		return known, nil
	}
	hasOtherName := func(other *managedPod) bool { return other.name != m.name }
	earlier = slices.DeleteFunc(slices.Collect(maps.Values(t.byKey)), hasOtherName)
	t.byKey[m.key], t.byName[m.name] = m, m
	return nil, earlier
}

// remove forgets a pod. If a newer pod has taken its name, the name stays that pod's.
func (t *podTable) remove(m *managedPod) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.byKey, m.key)
	if t.byName[m.name] == m {
		delete(t.byName, m.name)
	}
}

// newest returns the newest pod of each name, sorted by namespace and name.
func (t *podTable) newest() []*managedPod {
	t.mu.Lock()
	defer t.mu.Unlock()
	return sorted(maps.Values(t.byName))
}

// all returns all pods, sorted by namespace and name.
func (t *podTable) all() []*managedPod {
	t.mu.Lock()
	defer t.mu.Unlock()
	return sorted(maps.Values(t.byKey))
}

// sorted sorts pods by namespace, name and key.
func sorted(pods iter.Seq[*managedPod]) []*managedPod {
	return slices.SortedFunc(pods, func(a, b *managedPod) int {
		return cmp.Or(cmp.Compare(a.name.Namespace, b.name.Namespace), cmp.Compare(a.name.Name, b.name.Name), cmp.Compare(a.key, b.key))
	})
}
