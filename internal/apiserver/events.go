package main

import (
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
)

// events returns the resource events. As in kube-apiserver, a PUT creates an event, and events vanish after an hour.
func events() resource {
	return resource{
		GroupVersion: v1.SchemeGroupVersion, kind: "Event", plural: "events", singular: "event",
		newItem:        func() runtime.Object { return &v1.Event{} },
		newList:        func() runtime.Object { return &v1.EventList{} },
		createOnUpdate: true,
		lifetime:       3600, // kube-apiserver's --event-ttl
		fields:         func(obj runtime.Object) fields.Set { return eventFields(obj.(*v1.Event)) },
	}
}

// eventFields returns the fields of an event that field selectors may use, as in kube-apiserver.
func eventFields(event *v1.Event) fields.Set {
	return fields.Set{
		"involvedObject.kind":            event.InvolvedObject.Kind,
		"involvedObject.namespace":       event.InvolvedObject.Namespace,
		"involvedObject.name":            event.InvolvedObject.Name,
		"involvedObject.uid":             string(event.InvolvedObject.UID),
		"involvedObject.apiVersion":      event.InvolvedObject.APIVersion,
		"involvedObject.resourceVersion": event.InvolvedObject.ResourceVersion,
		"involvedObject.fieldPath":       event.InvolvedObject.FieldPath,
		"reason":                         event.Reason,
		"reportingComponent":             event.ReportingController,
		"source":                         event.Source.Component,
		"type":                           event.Type,
	}
}
