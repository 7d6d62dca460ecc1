package main

import (
	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

func leases() resource {
	return resource{
		GroupVersion: coordinationv1.SchemeGroupVersion, kind: "Lease", plural: "leases", singular: "lease",
		newItem:        func() runtime.Object { return &coordinationv1.Lease{} },
		newList:        func() runtime.Object { return &coordinationv1.LeaseList{} },
		createOnUpdate: true,
		versioned:      true,
	}
}
