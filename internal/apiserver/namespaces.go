package main

import (
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
)

// namespaces returns the resource namespaces. A new namespace is active and has the label with its name.
func namespaces() resource {
	return resource{
		GroupVersion: v1.SchemeGroupVersion, kind: "Namespace", plural: "namespaces", singular: "namespace",
		newItem:         func() runtime.Object { return &v1.Namespace{} },
		newList:         func() runtime.Object { return &v1.NamespaceList{} },
		isClusterScoped: true,
		create:          func(obj runtime.Object) { obj.(*v1.Namespace).Status.Phase = v1.NamespaceActive },
		update:          func(obj, old runtime.Object) { obj.(*v1.Namespace).Status = old.(*v1.Namespace).Status },
		fields: func(obj runtime.Object) fields.Set {
			return fields.Set{"status.phase": string(obj.(*v1.Namespace).Status.Phase)}
		},
		defaults: func(obj runtime.Object) {
			if namespace := obj.(*v1.Namespace); namespace.Name != "" {
				metav1.SetMetaDataLabel(&namespace.ObjectMeta, v1.LabelMetadataName, namespace.Name)
			}
		},
	}
}
