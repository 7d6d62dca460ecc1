package main

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

var (
	_ rest.Patcher             = statusREST{}
	_ rest.ResetFieldsStrategy = statusREST{}
)

// statusREST serves the path /status of a resource: GET, PUT and PATCH. Its store is that
// of the resource with another update strategy.
type statusREST struct {
	rest.TableConvertor

	store *genericregistry.Store
}

// New returns an empty object.
func (r statusREST) New() runtime.Object { return r.store.New() }

// Destroy does nothing: the store of the resource destroys what both share.
func (statusREST) Destroy() {}

// Get returns the whole object, not only its status.
func (r statusREST) Get(ctx context.Context, name string, options *metav1.GetOptions) (runtime.Object, error) {
	return r.store.Get(ctx, name, options)
}

// Update changes the status of an existing object. Unlike a PUT to the resource itself it never creates one.
func (r statusREST) Update(ctx context.Context, name string, object rest.UpdatedObjectInfo,
	create rest.ValidateObjectFunc, update rest.ValidateObjectUpdateFunc, _ bool, options *metav1.UpdateOptions,
) (runtime.Object, bool, error) {
	const forceAllowCreate = false
	return r.store.Update(ctx, name, object, create, update, forceAllowCreate, options)
}

// GetResetFields returns the fields that the path /status does not write.
func (r statusREST) GetResetFields() map[fieldpath.APIVersion]*fieldpath.Set {
	return r.store.GetResetFields()
}
