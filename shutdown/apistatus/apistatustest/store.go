package apistatustest

import (
	"cmp"
	"errors"
	"slices"
	"strconv"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/uuid"
)

// store keeps objects. One that is stored is never changed, only replaced, so that
// what it hands out may be read without a lock, but not written to.
type store struct {
	mu       sync.Mutex // guards all below
	revision int64      // the last resourceVersion
	objects  map[key]object
}

// key is where an object is stored.
type key struct{ resource, namespace, name string }

func (k kind) key(o object) key { return key{k.resource, o.GetNamespace(), o.GetName()} }

// get is a stored object.
func (s *store) get(k kind, namespace, name string) (object, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.find(k, namespace, name)
}

// find is get with the mutex held.
func (s *store) find(k kind, namespace, name string) (object, error) {
	if o, ok := s.objects[key{k.resource, namespace, name}]; ok {
		return o, nil
	}
	return nil, apierrors.NewNotFound(k.groupResource(), name)
}

// list are the stored objects of a kind by namespace and name, those of all
// namespaces if there is none, and the resourceVersion of the list.
func (s *store) list(k kind, namespace string) (found []object, revision string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for at, o := range s.objects {
		if at.resource == k.resource && (namespace == "" || at.namespace == namespace) {
			found = append(found, o)
		}
	}
	slices.SortFunc(found, func(a, b object) int {
		return cmp.Or(cmp.Compare(a.GetNamespace(), b.GetNamespace()), cmp.Compare(a.GetName(), b.GetName()))
	})
	return found, strconv.FormatInt(s.revision, 10)
}

// put stores an object over what is there, whose UID it takes over if it has none.
func (s *store) put(k kind, o object) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if stored, ok := s.objects[k.key(o)]; ok && o.GetUID() == "" {
		o.SetUID(stored.GetUID())
	}
	s.add(k, o)
}

// create stores an object that is not there yet.
func (s *store) create(k kind, o object) (object, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.objects[k.key(o)]; ok {
		return nil, apierrors.NewAlreadyExists(k.groupResource(), o.GetName())
	}
	return s.add(k, o), nil
}

// update replaces an object by what change makes of it, which must be another
// object. With status it changes only the status, else all but the status.
func (s *store) update(k kind, namespace, name string, status bool, change func(object) (object, error)) (object, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	stored, err := s.find(k, namespace, name)
	if err != nil {
		return nil, err
	}
	changed, err := change(stored)
	if err != nil {
		return nil, err
	}
	if v := changed.GetResourceVersion(); v != "" && v != stored.GetResourceVersion() {
		return nil, apierrors.NewConflict(k.groupResource(), name, errors.New(modified))
	}
	if err := constantUID(k, changed, stored); err != nil {
		return nil, err
	}
	return s.replace(k, settle(k, changed, stored, status), stored), nil
}

// modified is how the API server calls a resourceVersion that is not the last.
const modified = "the object has been modified; please apply your changes to the latest version and try again"

// add stores a new object. The mutex is held.
func (s *store) add(k kind, o object) object {
	if o.GetUID() == "" {
		o.SetUID(uuid.NewUUID())
	}
	complete(o)
	return s.save(k, o)
}

// save stores an object under a new resourceVersion. The mutex is held.
func (s *store) save(k kind, o object) object {
	s.revision++
	o.SetResourceVersion(strconv.FormatInt(s.revision, 10))
	if s.objects == nil {
		s.objects = map[key]object{}
	}
	s.objects[k.key(o)] = o
	return o
}

// drop takes an object out of the store. The mutex is held.
func (s *store) drop(k kind, o object) {
	s.revision++
	delete(s.objects, k.key(o))
}
