package main

import (
	"slices"
	"strconv"

	v1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
)

// pods returns the resource pods. A delete only begins the termination, and the agent's delete with 0 s removes the pod.
func pods() resource {
	return resource{
		GroupVersion: v1.SchemeGroupVersion, kind: "Pod", plural: "pods", singular: "pod",
		newItem:        func() runtime.Object { return &v1.Pod{} },
		newList:        func() runtime.Object { return &v1.PodList{} },
		graceful:       true,
		returnsDeleted: true,
		create:         func(obj runtime.Object) { createPod(obj.(*v1.Pod)) },
		update:         func(obj, old runtime.Object) { updatePod(obj.(*v1.Pod), old.(*v1.Pod)) },
		updateStatus:   func(obj, old runtime.Object) { updatePodStatus(obj.(*v1.Pod), old.(*v1.Pod)) },
		fields:         func(obj runtime.Object) fields.Set { return podFields(obj.(*v1.Pod)) },
		defaults:       func(obj runtime.Object) { defaultPod(&obj.(*v1.Pod).Spec) },
	}
}

// createPod sets what clients may not set: generation 1, and the status of a new pod.
func createPod(pod *v1.Pod) {
	pod.Generation = 1
	pod.Status = v1.PodStatus{Phase: v1.PodPending, QOSClass: qosClass(&pod.Spec)}
}

// updatePod keeps the status, which only the path /status writes, and counts changes of the spec in the generation.
func updatePod(pod, old *v1.Pod) {
	pod.Status = old.Status
	if !apiequality.Semantic.DeepEqual(pod.Spec, old.Spec) {
		pod.Generation = old.Generation + 1
	}
}

// updatePodStatus keeps the old pod's spec, owners and QoS class, as podStatusStrategy of the API server does. The
// rest of the status, the labels, the annotations and the finalizers come from the request. It clears the deletion
// timestamp of the request, and the store sets the stored one.
func updatePodStatus(pod, old *v1.Pod) {
	pod.Spec = old.Spec
	pod.DeletionTimestamp = nil
	pod.OwnerReferences = old.OwnerReferences
	pod.Status.QOSClass = old.Status.QOSClass
}

// podFields returns the fields of a pod that field selectors may use, as in kube-apiserver.
func podFields(pod *v1.Pod) fields.Set {
	return fields.Set{
		"spec.nodeName":            pod.Spec.NodeName,
		"spec.restartPolicy":       string(pod.Spec.RestartPolicy),
		"spec.schedulerName":       pod.Spec.SchedulerName,
		"spec.serviceAccountName":  pod.Spec.ServiceAccountName,
		"spec.hostNetwork":         strconv.FormatBool(pod.Spec.HostNetwork),
		"status.phase":             string(pod.Status.Phase),
		"status.podIP":             pod.Status.PodIP,
		"status.nominatedNodeName": pod.Status.NominatedNodeName,
	}
}

// orDefault sets a field that is zero to a default.
func orDefault[T comparable](field *T, value T) {
	var none T
	if *field == none {
		*field = value
	}
}

// defaultPod sets the defaults of kube-apiserver that virtual-kubelet and the tests depend on.
func defaultPod(spec *v1.PodSpec) {
	if spec.TerminationGracePeriodSeconds == nil {
		spec.TerminationGracePeriodSeconds = ptr.To(int64(v1.DefaultTerminationGracePeriodSeconds))
	}
	if spec.EnableServiceLinks == nil {
		spec.EnableServiceLinks = ptr.To(v1.DefaultEnableServiceLinks)
	}
	if spec.SecurityContext == nil {
		spec.SecurityContext = &v1.PodSecurityContext{}
	}
	orDefault(&spec.RestartPolicy, v1.RestartPolicyAlways)
	orDefault(&spec.DNSPolicy, v1.DNSClusterFirst)
	orDefault(&spec.SchedulerName, v1.DefaultSchedulerName)
	for _, containers := range [][]v1.Container{spec.InitContainers, spec.Containers} {
		for i := range containers {
			defaultContainer(&containers[i])
		}
	}
}

// defaultContainer sets the defaults of a container. As in kube-apiserver, a limit without a request is also the request.
func defaultContainer(container *v1.Container) {
	orDefault(&container.TerminationMessagePath, v1.TerminationMessagePathDefault)
	orDefault(&container.TerminationMessagePolicy, v1.TerminationMessageReadFile)
	orDefault(&container.ImagePullPolicy, v1.PullIfNotPresent)
	for name, limit := range container.Resources.Limits {
		if _, ok := container.Resources.Requests[name]; !ok {
			if container.Resources.Requests == nil {
				container.Resources.Requests = v1.ResourceList{}
			}
			container.Resources.Requests[name] = limit.DeepCopy()
		}
	}
}

// qosClass returns the QoS class of a pod from the CPU and memory of its containers. It is BestEffort without any
// requests and limits, and Guaranteed if each container has limits for both, equal to its requests. Otherwise it is
// Burstable.
func qosClass(spec *v1.PodSpec) v1.PodQOSClass {
	hasNone, isGuaranteed := true, true
	for _, c := range slices.Concat(spec.InitContainers, spec.Containers) {
		for _, name := range []v1.ResourceName{v1.ResourceCPU, v1.ResourceMemory} {
			request, limit := c.Resources.Requests[name], c.Resources.Limits[name]
			hasNone = hasNone && request.IsZero() && limit.IsZero()
			isGuaranteed = isGuaranteed && !limit.IsZero() && request.Equal(limit)
		}
	}
	switch {
	case hasNone:
		return v1.PodQOSBestEffort
	case isGuaranteed:
		return v1.PodQOSGuaranteed
	default:
		return v1.PodQOSBurstable
	}
}
