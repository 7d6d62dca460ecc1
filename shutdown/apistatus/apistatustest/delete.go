package apistatustest

import (
	"errors"
	"fmt"
	"net/http"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/utils/ptr"

	"github.com/kubegrace/kubegrace/graceperiod"
)

// remove carries out a DELETE.
func (a *api) remove(k kind) verb {
	return func(r *http.Request) (int, object, error) {
		options, err := readOptions(r)
		if err != nil {
			return 0, nil, err
		}
		o, err := a.store.delete(k, r.PathValue("namespace"), r.PathValue("name"), options)
		return http.StatusOK, o, err
	}
}

// readOptions is the body of a DELETE; without one the defaults.
func readOptions(r *http.Request) (*metav1.DeleteOptions, error) {
	options := &metav1.DeleteOptions{}
	if r.ContentLength == 0 {
		return options, nil
	}
	body, err := readJSON(r)
	if err != nil || len(body) == 0 {
		return options, err
	}
	if err := json.Unmarshal(body, options); err != nil {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("failed to decode DeleteOptions: %v", err))
	}
	return options, nil
}

// delete begins, shortens or ends the deletion of an object, as the registry's
// Store.Delete does, and gives what it is then.
func (s *store) delete(k kind, namespace, name string, options *metav1.DeleteOptions) (object, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	stored, err := s.find(k, namespace, name)
	if err != nil {
		return nil, err
	}
	o := stored.DeepCopyObject().(object)
	keep, err := beforeDelete(k, o, options)
	if err != nil {
		return nil, err
	}
	if keep || len(o.GetFinalizers()) > 0 {
		return s.replace(k, o, stored), nil
	}
	s.drop(k, o)
	return o, nil
}

// beforeDelete writes into an object that it is being deleted. With keep it is
// stored so, which is its end if its grace is 0.
func beforeDelete(k kind, o object, options *metav1.DeleteOptions) (keep bool, err error) {
	pod, ok := o.(*v1.Pod)
	if !ok {
		return false, markDeleted(k, o, options)
	}
	graceful, pending, err := graceperiod.BeforeDelete(pod, options, now())
	return graceful || pending, err
}

// markDeleted is for the kinds that are deleted without a grace.
func markDeleted(k kind, o object, options *metav1.DeleteOptions) error {
	if wanted := options.Preconditions; wanted != nil {
		if wanted.UID != nil && *wanted.UID != o.GetUID() {
			return sameUID(k, &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{UID: *wanted.UID}}, o)
		}
		if wanted.ResourceVersion != nil && *wanted.ResourceVersion != o.GetResourceVersion() {
			return apierrors.NewConflict(k.groupResource(), o.GetName(), errors.New(modified))
		}
	}
	if o.GetDeletionTimestamp() == nil {
		o.SetDeletionTimestamp(ptr.To(metav1.NewTime(now())))
		o.SetDeletionGracePeriodSeconds(ptr.To(int64(0)))
	}
	return nil
}
