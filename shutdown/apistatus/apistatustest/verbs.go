package apistatustest

import (
	"net/http"
	"strconv"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// get carries out a GET of one object.
func (a *api) get(k kind) verb {
	return func(r *http.Request) (int, object, error) {
		o, err := a.store.get(k, r.PathValue("namespace"), r.PathValue("name"))
		return http.StatusOK, o, err
	}
}

// create carries out a POST. The status of a new pod is the API server's.
func (a *api) create(k kind) verb {
	return func(r *http.Request) (int, object, error) {
		o, err := readObject(r, k)
		if err != nil {
			return 0, nil, err
		}
		if err := named(r, o); err != nil {
			return 0, nil, err
		}
		if o.GetName() == "" {
			return 0, nil, apierrors.NewInvalid(k.GroupKind(), "", field.ErrorList{
				field.Required(field.NewPath("metadata", "name"), "name or generateName is required"),
			})
		}
		o.SetUID("")
		if pod, ok := o.(*v1.Pod); ok {
			pod.Generation, pod.Status = 1, v1.PodStatus{Phase: v1.PodPending}
		}
		o, err = a.store.create(k, o)
		return http.StatusCreated, o, err
	}
}

// put carries out a PUT of an object, or of its status. Without a resourceVersion
// it replaces whatever is there.
func (a *api) put(k kind, status bool) verb {
	return func(r *http.Request) (int, object, error) {
		wanted, err := readObject(r, k)
		if err != nil {
			return 0, nil, err
		}
		if err := named(r, wanted); err != nil {
			return 0, nil, err
		}
		o, err := a.store.update(k, wanted.GetNamespace(), wanted.GetName(), status, func(stored object) (object, error) {
			return wanted, sameUID(k, wanted, stored)
		})
		return http.StatusOK, o, err
	}
}

// list answers with the objects of a namespace, or all, that its selectors choose.
func (a *api) list(k kind, r *http.Request) (runtime.Object, error) {
	query := r.URL.Query()
	if watch, err := strconv.ParseBool(query.Get("watch")); err == nil && watch {
		return nil, apierrors.NewMethodNotSupported(k.groupResource(), "watch")
	}
	chosen, err := choice(k, query.Get("fieldSelector"), query.Get("labelSelector"))
	if err != nil {
		return nil, err
	}
	all, revision := a.store.list(k, r.PathValue("namespace"))
	found := make([]object, 0, len(all))
	for _, o := range all {
		if chosen(o) {
			found = append(found, o)
		}
	}
	return encodeList(k, found, revision), nil
}

// choice is what two selectors choose.
func choice(k kind, byField, byLabel string) (func(object) bool, error) {
	withFields, err := fields.ParseSelector(byField)
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	for _, requirement := range withFields.Requirements() {
		if !selectable(k.empty()).Has(requirement.Field) {
			return nil, apierrors.NewBadRequest("field label not supported: " + requirement.Field)
		}
	}
	withLabels, err := labels.Parse(byLabel)
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	return func(o object) bool {
		return withFields.Matches(selectable(o)) && withLabels.Matches(labels.Set(o.GetLabels()))
	}, nil
}
