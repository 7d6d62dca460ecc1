package apistatustest

import (
	"fmt"
	"reflect"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

	"github.com/kubegrace/kubegrace/graceperiod"
)

// object is what the store keeps.
type object interface {
	metav1.Object
	runtime.Object
}

// kind is one resource of the API.
type kind struct {
	schema.GroupVersionKind
	resource   string // its name in the path
	namespaced bool
	status     bool          // it has the subresource /status
	empty      func() object // a new one
}

// kinds are the resources that are served.
func kinds() []kind { return []kind{nodes(), pods(), events(), leases()} }

func nodes() kind {
	return kind{v1.SchemeGroupVersion.WithKind("Node"), "nodes", false, true, func() object { return &v1.Node{} }}
}

func pods() kind {
	return kind{v1.SchemeGroupVersion.WithKind("Pod"), "pods", true, true, func() object { return &v1.Pod{} }}
}

func events() kind {
	return kind{v1.SchemeGroupVersion.WithKind("Event"), "events", true, false, func() object { return &v1.Event{} }}
}

func leases() kind {
	lease := coordinationv1.SchemeGroupVersion.WithKind("Lease")
	return kind{lease, "leases", true, false, func() object { return &coordinationv1.Lease{} }}
}

// groupResource is the name of the resource in errors.
func (k kind) groupResource() schema.GroupResource {
	return schema.GroupResource{Group: k.Group, Resource: k.resource}
}

// root is the path under which the resource is found.
func (k kind) root() string {
	if k.Group == "" {
		return "/api/" + k.Version + "/"
	}
	return "/apis/" + k.Group + "/" + k.Version + "/"
}

// kindOf is the kind of an object of a caller.
func kindOf(from runtime.Object) (kind, error) {
	for _, k := range kinds() {
		if reflect.TypeOf(k.empty()) == reflect.TypeOf(from) {
			return k, nil
		}
	}
	return kind{}, fmt.Errorf("failed to store an object: a %T is not served", from)
}

// complete fills in what every stored object has. The grace of a pod is the
// default of the API's SetDefaults_PodSpec.
func complete(o object) {
	if o.GetCreationTimestamp().Time.IsZero() {
		o.SetCreationTimestamp(metav1.NewTime(now()))
	}
	if pod, ok := o.(*v1.Pod); ok {
		pod.Generation = max(pod.Generation, 1)
		if pod.Spec.TerminationGracePeriodSeconds == nil {
			pod.Spec.TerminationGracePeriodSeconds = ptr.To(graceperiod.DefaultSeconds)
		}
	}
}

// keepSpec undoes a change of the spec, as /status does.
func keepSpec(changed, stored object) {
	switch changed := changed.(type) {
	case *v1.Pod:
		stored.(*v1.Pod).Spec.DeepCopyInto(&changed.Spec)
	case *v1.Node:
		stored.(*v1.Node).Spec.DeepCopyInto(&changed.Spec)
	}
}

// keepStatus undoes a change of the status, as all but /status does.
func keepStatus(changed, stored object) {
	switch changed := changed.(type) {
	case *v1.Pod:
		stored.(*v1.Pod).Status.DeepCopyInto(&changed.Status)
	case *v1.Node:
		stored.(*v1.Node).Status.DeepCopyInto(&changed.Status)
	}
}

// respecified tells whether a pod has a new spec, which makes a new generation.
func respecified(changed, stored object) bool {
	pod, ok := changed.(*v1.Pod)
	return ok && !equality.Semantic.DeepEqual(pod.Spec, stored.(*v1.Pod).Spec)
}

// selectable are the fields that a list can be restricted to.
func selectable(o object) fields.Set {
	set := fields.Set{"metadata.name": o.GetName(), "metadata.namespace": o.GetNamespace()}
	if pod, ok := o.(*v1.Pod); ok {
		set["spec.nodeName"] = pod.Spec.NodeName
		set["status.phase"] = string(pod.Status.Phase)
	}
	return set
}

// now is the time as the API writes it, in whole seconds.
func now() time.Time {
	return time.Now().Truncate(time.Second)
}
