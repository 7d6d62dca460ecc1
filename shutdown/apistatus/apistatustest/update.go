package apistatustest

import (
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// settle takes back what an update must not change, as rest.BeforeUpdate and the
// strategies of pods and nodes do.
func settle(k kind, changed, stored object, status bool) object {
	changed.SetUID(stored.GetUID())
	changed.SetResourceVersion(stored.GetResourceVersion())
	changed.SetGeneration(stored.GetGeneration())
	changed.SetCreationTimestamp(stored.GetCreationTimestamp())
	changed.SetDeletionTimestamp(stored.GetDeletionTimestamp())
	changed.SetDeletionGracePeriodSeconds(stored.GetDeletionGracePeriodSeconds())
	changed.GetObjectKind().SetGroupVersionKind(stored.GetObjectKind().GroupVersionKind())
	switch {
	case status:
		keepSpec(changed, stored)
	case k.status:
		keepStatus(changed, stored)
	}
	complete(changed)
	if respecified(changed, stored) {
		changed.SetGeneration(stored.GetGeneration() + 1)
	}
	return changed
}

// replace stores a changed object, if it is changed: an update without a change is
// no new version. One that was waiting for its last finalizer only is gone then.
// The mutex is held.
func (s *store) replace(k kind, changed, stored object) object {
	if equality.Semantic.DeepEqual(changed, stored) {
		return stored
	}
	grace := changed.GetDeletionGracePeriodSeconds()
	s.save(k, changed)
	if changed.GetDeletionTimestamp() != nil && len(changed.GetFinalizers()) == 0 && (grace == nil || *grace == 0) {
		s.drop(k, changed)
	}
	return changed
}

// sameUID refuses an update that was meant for another object of that name: the
// UID of a PUT is a precondition, Conflict in the words of storage.Preconditions.
func sameUID(k kind, wanted, stored object) error {
	if wanted.GetUID() == "" || wanted.GetUID() == stored.GetUID() {
		return nil
	}
	cause := fmt.Sprintf("Precondition failed: UID in precondition: %v, UID in object meta: %v", wanted.GetUID(), stored.GetUID())
	return apierrors.NewConflict(k.groupResource(), stored.GetName(), errors.New(cause))
}

// constantUID refuses a change of the UID, which is what a PATCH of another one
// comes to: rest.BeforeUpdate finds it Invalid.
func constantUID(k kind, changed, stored object) error {
	if changed.GetUID() == "" || changed.GetUID() == stored.GetUID() {
		return nil
	}
	return apierrors.NewInvalid(k.GroupKind(), stored.GetName(), field.ErrorList{
		field.Invalid(field.NewPath("metadata", "uid"), changed.GetUID(), "field is immutable"),
	})
}
