package cri

import (
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

const unsupported = "is not supported with --runtime=cri"

// ValidatePod returns the fields of a pod that this package cannot honour: fields without
// which a container would miss something or would be less isolated than its author meant,
// and stop signals that CRI does not have. [Runtime.StartPod] refuses such a pod; an
// agent can call ValidatePod before it starts any pod.
func ValidatePod(pod *v1.Pod) field.ErrorList {
	var errs field.ErrorList
	spec := field.NewPath("spec")
	if pod.UID == "" {
		errs = append(errs, field.Required(field.NewPath("metadata", "uid"), "a running pod is found by it"))
	}
	for name, isSet := range map[string]bool{
		"securityContext":  !equality.Semantic.DeepEqual(pod.Spec.SecurityContext, &v1.PodSecurityContext{}) && pod.Spec.SecurityContext != nil,
		"runtimeClassName": pod.Spec.RuntimeClassName != nil,
		"hostPID":          pod.Spec.HostPID, "hostIPC": pod.Spec.HostIPC, "shareProcessNamespace": pod.Spec.ShareProcessNamespace != nil,
	} {
		if isSet {
			errs = append(errs, field.Forbidden(spec.Child(name), unsupported))
		}
	}
	slices.SortFunc(errs, func(a, b *field.Error) int { return strings.Compare(a.Field, b.Field) })
	for i := range pod.Spec.InitContainers {
		errs = append(errs, validateContainer(&pod.Spec.InitContainers[i], spec.Child("initContainers").Index(i))...)
	}
	for i := range pod.Spec.Containers {
		errs = append(errs, validateContainer(&pod.Spec.Containers[i], spec.Child("containers").Index(i))...)
	}
	return errs
}

// validateContainer refuses the fields that configBuilder.container does not pass on,
// except resources, ports and probes: a container runs without them, and package manifest
// warns about them.
func validateContainer(container *v1.Container, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	refuse := func(path *field.Path) {
		errs = append(errs, field.Forbidden(path, unsupported))
	}
	for i := range container.VolumeMounts {
		refuse(path.Child("volumeMounts").Index(i))
	}
	for i := range container.VolumeDevices {
		refuse(path.Child("volumeDevices").Index(i))
	}
	for i := range container.EnvFrom {
		refuse(path.Child("envFrom").Index(i))
	}
	for i, env := range container.Env {
		if env.ValueFrom != nil {
			refuse(path.Child("env").Index(i).Child("valueFrom"))
		}
	}
	if container.SecurityContext != nil {
		refuse(path.Child("securityContext"))
	}
	if _, known := stopSignal(container); !known {
		errs = append(errs, field.Invalid(path.Child("lifecycle", "stopSignal"), *container.Lifecycle.StopSignal, "is not a signal"))
	}
	return errs
}
