package main

import (
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// resource is what the server has to know of one kind of object. The files that are
// called after kinds have one each.
type resource struct {
	schema.GroupVersion

	plural, singular, kind string
	newItem, newList       func() runtime.Object

	// global objects have no namespace.
	global bool
	// createOnUpdate lets a PUT make the object that it does not find.
	createOnUpdate bool
	// versioned refuses a PUT that names no resourceVersion.
	versioned bool
	// lifetime in seconds, after which etcd drops an object; 0: none.
	lifetime uint64
	// graceful deletes as graceperiod says of pods.
	graceful bool
	// returned is answered to a DELETE when the object has gone, not a metav1.Status.
	returned bool

	// create changes an object that is new, update one that replaces old; nil: nothing.
	create func(obj runtime.Object)
	update func(obj, old runtime.Object)
	// status is update for the /status of an object; nil: there is no such path.
	status func(obj, old runtime.Object)
	// fields are those of an object that field selectors know, beside its name and
	// its namespace; nil: there are none.
	fields func(obj runtime.Object) fields.Set
	// defaults are written into an object that is decoded; nil: there are none.
	defaults func(obj runtime.Object)
}

func resources() []resource {
	return []resource{
		pods(), nodes(), namespaces(), events(), leases(),
		plain("ConfigMap", "configmaps", &v1.ConfigMap{}, &v1.ConfigMapList{}),
		plain("Secret", "secrets", &v1.Secret{}, &v1.SecretList{}),
		plain("Service", "services", &v1.Service{}, &v1.ServiceList{}),
	}
}

// plain is a resource of v1 without rules of its own. virtual-kubelet watches such.
func plain(kind, plural string, item, list runtime.Object) resource {
	return resource{
		GroupVersion: v1.SchemeGroupVersion, kind: kind, plural: plural, singular: plural[:len(plural)-1],
		newItem: item.DeepCopyObject, newList: list.DeepCopyObject,
	}
}

// path is that of a list of all namespaces.
func (r resource) path() string {
	if r.Group == "" {
		return "/api/" + r.Version + "/" + r.plural
	}
	return "/apis/" + r.Group + "/" + r.Version + "/" + r.plural
}

func (r resource) resource() schema.GroupResource { return r.WithResource(r.plural).GroupResource() }

// selectable are the fields of an object that selectors know, but for the metadata.
func (r resource) selectable(obj runtime.Object) fields.Set {
	if r.fields == nil {
		return fields.Set{}
	}
	return r.fields(obj)
}
