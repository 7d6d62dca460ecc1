package apistatustest

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/json"
)

// Put stores copies of objects behind the clients' back: new ones, or others in
// the place of what is there, with their status. Each gets the next
// resourceVersion; without a UID it keeps that of the object it replaces, or gets
// one. What the API server fills in is filled in: the creationTimestamp, a pod's
// first generation and its terminationGracePeriodSeconds of 30. The error is that of
// an object without a name, or of a kind that is not served; nothing is stored then.
func (s *Server) Put(objects ...runtime.Object) error {
	kinds, copies := make([]kind, len(objects)), make([]object, len(objects))
	for i, from := range objects {
		k, err := kindOf(from)
		if err != nil {
			return err
		}
		if copies[i], err = reread(k, from); err != nil {
			return err
		}
		kinds[i] = k
	}
	for i, o := range copies {
		s.store.put(kinds[i], o)
	}
	return nil
}

// reread is a copy of an object as a client would read it, its times in whole
// seconds, so that a patch that changes nothing is seen to change nothing.
func reread(k kind, from runtime.Object) (object, error) {
	data, err := json.Marshal(from)
	if err != nil {
		return nil, fmt.Errorf("failed to store a %s: %w", k.Kind, err)
	}
	o, err := decode(k, data)
	switch {
	case err != nil:
		return nil, fmt.Errorf("failed to store a %s: %w", k.Kind, err)
	case o.GetName() == "":
		return nil, fmt.Errorf("failed to store a %s: metadata.name is missing", k.Kind)
	case k.namespaced && o.GetNamespace() == "":
		return nil, fmt.Errorf("failed to store the %s %q: metadata.namespace is missing", k.Kind, o.GetName())
	default:
		return o, nil
	}
}

// Remove takes a pod out of the store behind the clients' back, whatever its grace
// and its finalizers are. Nothing happens if it is not there.
func (s *Server) Remove(namespace, name string) {
	s.store.mu.Lock()
	defer s.store.mu.Unlock()
	if pod, err := s.store.find(pods(), namespace, name); err == nil {
		s.store.drop(pods(), pod)
	}
}

// Pod is a copy of a pod; false: there is none.
func (s *Server) Pod(namespace, name string) (*v1.Pod, bool) {
	return lookUp[*v1.Pod](s.store, pods(), namespace, name)
}

// Node is a copy of a node; false: there is none.
func (s *Server) Node(name string) (*v1.Node, bool) {
	return lookUp[*v1.Node](s.store, nodes(), "", name)
}

// Pods are copies of all pods, by namespace and name.
func (s *Server) Pods() []*v1.Pod { return all[*v1.Pod](s.store, pods()) }

// Events are copies of all events, in the order of their last changes.
func (s *Server) Events() []*v1.Event {
	found := all[*v1.Event](s.store, events())
	slices.SortFunc(found, func(a, b *v1.Event) int { return cmp.Compare(version(a), version(b)) })
	return found
}

// version is the resourceVersion of a stored object, which is always a number.
func version(o object) int64 {
	v, _ := strconv.ParseInt(o.GetResourceVersion(), 10, 64)
	return v
}

// lookUp is a copy of a stored object.
func lookUp[T object](s *store, k kind, namespace, name string) (T, bool) {
	var none T
	o, err := s.get(k, namespace, name)
	if err != nil {
		return none, false
	}
	return o.DeepCopyObject().(T), true
}

// all are copies of the stored objects of a kind.
func all[T object](s *store, k kind) []T {
	stored, _ := s.list(k, "")
	copies := make([]T, len(stored))
	for i, o := range stored {
		copies[i] = o.DeepCopyObject().(T)
	}
	return copies
}
