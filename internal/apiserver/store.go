package main

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apiserver/pkg/registry/generic"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// storage makes the stores of the resources, all in one etcd.
type storage struct {
	etcd   string // the URL of etcd
	scheme *runtime.Scheme
	codecs serializer.CodecFactory
}

// stores returns the stores of a resource and of its /status, by their paths. Both write the same objects in etcd.
// Each keeps the fields that only the other one writes, and does not make its clients the owners of these fields.
func (s storage) stores(r resource) (map[string]rest.Storage, error) {
	store, err := s.store(r)
	if err != nil {
		return nil, fmt.Errorf("failed to store %s: %w", r.plural, err)
	}
	stores := map[string]rest.Storage{r.plural: store}
	if r.updateStatus != nil {
		store.ResetFieldsStrategy = resetFields{r.Version, "status"} // the field that the path does not write
		status := *store
		status.UpdateStrategy = newStatusStrategy(s.scheme, r)
		status.ResetFieldsStrategy = resetFields{r.Version, "spec"}
		stores[r.plural+"/status"] = statusREST{TableConvertor: store.TableConvertor, store: &status}
	}
	return stores, nil
}

// store returns the store of a resource, which applies the resource's rules to each write.
func (s storage) store(r resource) (*genericregistry.Store, error) {
	strategy := newStrategy(s.scheme, r)
	store := &genericregistry.Store{
		NewFunc: r.newItem, NewListFunc: r.newList,
		DefaultQualifiedResource:  r.groupResource(),
		SingularQualifiedResource: schema.GroupResource{Group: r.Group, Resource: r.singular},
		CreateStrategy:            strategy, UpdateStrategy: strategy, DeleteStrategy: strategy,
		ReturnDeletedObject: r.returnsDeleted,
		TableConvertor:      rest.NewDefaultTableConvertor(r.groupResource()),
	}
	if r.lifetime > 0 {
		store.TTLFunc = func(runtime.Object, uint64, bool) (uint64, error) { return r.lifetime, nil }
	}
	options := s.options(r)
	return store, store.CompleteWithOptions(&generic.StoreOptions{RESTOptions: options, AttrFunc: r.attributes})
}

// options returns the options to store a resource in etcd behind a watch cache.
func (s storage) options(r resource) generic.RESTOptions {
	config := storagebackend.NewDefaultConfig("/registry", s.codecs.LegacyCodec(r.GroupVersion))
	config.EncodeVersioner = r.GroupVersion
	config.Transport.ServerList = []string{s.etcd}
	config.CompactionInterval = 5 * time.Minute // as in kube-apiserver
	return generic.RESTOptions{
		StorageConfig:           config.ForResource(r.groupResource()),
		Decorator:               genericregistry.StorageWithCacher(),
		EnableGarbageCollection: true,
		DeleteCollectionWorkers: 1,
		ResourcePrefix:          r.plural,
	}
}

// attributes returns the labels and fields of an object for selectors.
func (r resource) attributes(obj runtime.Object) (labels.Set, fields.Set, error) {
	object, err := meta.Accessor(obj)
	if err != nil {
		return nil, nil, err
	}
	set := r.selectable(obj)
	set["metadata.name"] = object.GetName()
	if !r.isClusterScoped {
		set["metadata.namespace"] = object.GetNamespace()
	}
	return object.GetLabels(), set, nil
}

// resetFields is a field that a path does not write: "status" for a resource itself, "spec" for its /status. With it a
// server-side apply through that path does not make the client the owner of a field that it could not change.
type resetFields struct{ version, field string }

// GetResetFields returns the field as a set.
func (r resetFields) GetResetFields() map[fieldpath.APIVersion]*fieldpath.Set {
	return map[fieldpath.APIVersion]*fieldpath.Set{
		fieldpath.APIVersion(r.version): fieldpath.NewSet(fieldpath.MakePathOrDie(r.field)),
	}
}
