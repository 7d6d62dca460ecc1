package main

import (
	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// leases returns the resource leases. As in kube-apiserver, a PUT creates a lease, and one that replaces it must have
// the current resourceVersion.
func leases() resource {
	return resource{
		GroupVersion: coordinationv1.SchemeGroupVersion, kind: "Lease", plural: "leases", singular: "lease",
		newItem:        func() runtime.Object { return &coordinationv1.Lease{} },
		newList:        func() runtime.Object { return &coordinationv1.LeaseList{} },
		createOnUpdate: true,
		needsVersion:   true,
	}
}
