package main

import (
	"strconv"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
)

// nodes returns the resource nodes. A node keeps the status with which it is created, because a kubelet registers its
// node together with a status.
func nodes() resource {
	return resource{
		GroupVersion: v1.SchemeGroupVersion, kind: "Node", plural: "nodes", singular: "node",
		newItem:         func() runtime.Object { return &v1.Node{} },
		newList:         func() runtime.Object { return &v1.NodeList{} },
		isClusterScoped: true,
		update:          func(obj, old runtime.Object) { obj.(*v1.Node).Status = old.(*v1.Node).Status },
		updateStatus:    func(obj, old runtime.Object) { obj.(*v1.Node).Spec = old.(*v1.Node).Spec },
		fields: func(obj runtime.Object) fields.Set {
			return fields.Set{"spec.unschedulable": strconv.FormatBool(obj.(*v1.Node).Spec.Unschedulable)}
		},
	}
}
