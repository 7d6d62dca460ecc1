package main

import (
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// resource describes a resource that the server serves, such as pods. Resources with rules of their own are in files
// with their names.
type resource struct {
	schema.GroupVersion

	plural, singular, kind string
	newItem, newList       func() runtime.Object

	// isClusterScoped is true for objects without a namespace.
	isClusterScoped bool
	// createOnUpdate makes a PUT create an object that does not exist.
	createOnUpdate bool
	// needsVersion makes a PUT without a resourceVersion fail.
	needsVersion bool
	// lifetime is how many seconds after its last write etcd removes an object; 0: never.
	lifetime uint64
	// graceful makes a DELETE follow the rules of graceperiod for pods.
	graceful bool
	// returnsDeleted makes a DELETE answer with the removed object instead of a metav1.Status.
	returnsDeleted bool

	// create modifies a new object, and update one that replaces old; nil: no change.
	create func(obj runtime.Object)
	update func(obj, old runtime.Object)
	// updateStatus modifies an object that a request to the path /status writes; nil: there is no such path.
	updateStatus func(obj, old runtime.Object)
	// fields returns the fields for field selectors, except name and namespace; nil: none.
	fields func(obj runtime.Object) fields.Set
	// defaults sets the defaults of a decoded object; nil: none.
	defaults func(obj runtime.Object)
}

// resources returns all resources that the server serves.
func resources() []resource {
	return []resource{
		pods(), nodes(), namespaces(), events(), leases(),
		plain("ConfigMap", "configmaps", &v1.ConfigMap{}, &v1.ConfigMapList{}),
		plain("Secret", "secrets", &v1.Secret{}, &v1.SecretList{}),
		plain("Service", "services", &v1.Service{}, &v1.ServiceList{}),
	}
}

// plain returns a resource of v1 without rules of its own. Those are ConfigMaps, Secrets and Services, which the
// server has because virtual-kubelet watches them.
func plain(kind, plural string, item, list runtime.Object) resource {
	return resource{
		GroupVersion: v1.SchemeGroupVersion, kind: kind, plural: plural, singular: plural[:len(plural)-1],
		newItem: item.DeepCopyObject, newList: list.DeepCopyObject,
	}
}

// path returns the URL path that lists the resource across all namespaces.
func (r resource) path() string {
	if r.Group == "" {
		return "/api/" + r.Version + "/" + r.plural
	}
	return "/apis/" + r.Group + "/" + r.Version + "/" + r.plural
}

// groupResource returns the group and plural name, by which k8s.io/apiserver identifies the resource.
func (r resource) groupResource() schema.GroupResource {
	return r.WithResource(r.plural).GroupResource()
}

// selectable returns the fields of an object for field selectors, without those of the metadata. It is a new map, to
// which the caller may add.
func (r resource) selectable(obj runtime.Object) fields.Set {
	if r.fields == nil {
		return fields.Set{}
	}
	return r.fields(obj)
}
