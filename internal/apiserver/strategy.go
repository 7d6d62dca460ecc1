package main

import (
	"context"

	"k8s.io/apimachinery/pkg/api/meta"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/storage/names"

	"github.com/kubegrace/kubegrace/graceperiod"
)

// storeStrategy has the methods that a store calls before it creates, updates or deletes.
type storeStrategy interface {
	rest.RESTCreateStrategy
	rest.RESTUpdateStrategy
}

var (
	_ storeStrategy                   = strategy{}
	_ rest.RESTGracefulDeleteStrategy = podStrategy{}
)

// strategy applies the rules of a resource before each write. It validates only metadata: the validation of specs is
// in k8s.io/kubernetes, which cannot be imported.
type strategy struct {
	runtime.ObjectTyper
	names.NameGenerator

	resource resource
	update   func(obj, old runtime.Object) // the update of the resource or of its /status
}

// podStrategy deletes pods by the rules of graceperiod.
type podStrategy struct {
	strategy
	graceperiod.PodDeleteStrategy
}

// newStrategy returns the strategy for the objects of a resource (newStatusStrategy is that of the path /status). If
// the resource is deleted gracefully, as pods are, it also decides on deletes.
func newStrategy(scheme *runtime.Scheme, r resource) storeStrategy {
	s := strategy{ObjectTyper: scheme, NameGenerator: names.SimpleNameGenerator, resource: r, update: r.update}
	if r.graceful {
		return podStrategy{strategy: s}
	}
	return s
}

// newStatusStrategy returns the strategy of a resource's path /status.
func newStatusStrategy(scheme *runtime.Scheme, r resource) storeStrategy {
	return strategy{ObjectTyper: scheme, NameGenerator: names.SimpleNameGenerator, resource: r, update: r.updateStatus}
}

// NamespaceScoped and the next two methods tell the store whether objects are in namespaces, whether a PUT creates a missing
// object, and whether a PUT without a resourceVersion replaces any version.
func (s strategy) NamespaceScoped() bool          { return !s.resource.isClusterScoped }
func (s strategy) AllowCreateOnUpdate() bool      { return s.resource.createOnUpdate }
func (s strategy) AllowUnconditionalUpdate() bool { return !s.resource.needsVersion }
func (strategy) Canonicalize(runtime.Object)      {}

// PrepareForCreate sets what a client may not set in a new object.
func (s strategy) PrepareForCreate(_ context.Context, obj runtime.Object) {
	if s.resource.create != nil {
		s.resource.create(obj)
	}
}

// PrepareForUpdate restores from old what a client may not change in obj.
func (s strategy) PrepareForUpdate(_ context.Context, obj, old runtime.Object) {
	if s.update != nil {
		s.update(obj, old)
	}
}

// Validate validates the metadata of a new object.
func (s strategy) Validate(_ context.Context, obj runtime.Object) field.ErrorList {
	path := field.NewPath("metadata")
	object, err := meta.Accessor(obj)
	if err != nil {
		return field.ErrorList{field.InternalError(path, err)}
	}
	return apivalidation.ValidateObjectMetaAccessor(object, s.NamespaceScoped(), apivalidation.NameIsDNSSubdomain, path)
}

// ValidateUpdate returns no errors: the store itself validates the metadata.
func (strategy) ValidateUpdate(context.Context, runtime.Object, runtime.Object) field.ErrorList {
	return nil
}

// WarningsOnCreate returns no warnings.
func (strategy) WarningsOnCreate(context.Context, runtime.Object) []string { return nil }

// WarningsOnUpdate returns no warnings.
func (strategy) WarningsOnUpdate(context.Context, runtime.Object, runtime.Object) []string {
	return nil
}
