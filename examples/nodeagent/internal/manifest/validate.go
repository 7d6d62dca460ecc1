package manifest

import (
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// validate checks what the agent needs to run a pod and to tell its containers apart. The
// API server checks more.
func validate(pod *v1.Pod) field.ErrorList {
	var errs field.ErrorList
	if pod.APIVersion != "v1" {
		errs = append(errs, field.NotSupported(field.NewPath("apiVersion"), pod.APIVersion, []string{"v1"}))
	}
	if pod.Kind != "Pod" {
		errs = append(errs, field.NotSupported(field.NewPath("kind"), pod.Kind, []string{"Pod"}))
	}
	meta, spec := field.NewPath("metadata"), field.NewPath("spec")
	errs = append(errs, checkName(meta.Child("name"), pod.Name, validation.IsDNS1123Subdomain)...)
	errs = append(errs, checkName(meta.Child("namespace"), pod.Namespace, validation.IsDNS1123Label)...)
	if len(pod.Spec.Containers) == 0 {
		errs = append(errs, field.Required(spec.Child("containers"), "a pod has at least one container"))
	}
	names := sets.New[string]()
	errs = append(errs, checkContainers(spec.Child("initContainers"), pod.Spec.InitContainers, names)...)
	errs = append(errs, checkContainers(spec.Child("containers"), pod.Spec.Containers, names)...)
	if len(pod.Spec.EphemeralContainers) > 0 {
		errs = append(errs, field.Forbidden(spec.Child("ephemeralContainers"), "a manifest has none"))
	}
	return errs
}

// checkContainers checks names and images. names has the names of the containers so far
// and gets those of containers.
func checkContainers(path *field.Path, containers []v1.Container, names sets.Set[string]) field.ErrorList {
	var errs field.ErrorList
	for i, c := range containers {
		at := path.Index(i)
		errs = append(errs, checkName(at.Child("name"), c.Name, validation.IsDNS1123Label)...)
		if names.Has(c.Name) {
			errs = append(errs, field.Duplicate(at.Child("name"), c.Name))
		}
		names.Insert(c.Name)
		if c.Image == "" {
			errs = append(errs, field.Required(at.Child("image"), "of container "+c.Name))
		}
		if c.RestartPolicy != nil && *c.RestartPolicy != v1.ContainerRestartPolicyAlways {
			errs = append(errs, field.NotSupported(at.Child("restartPolicy"), *c.RestartPolicy, []v1.ContainerRestartPolicy{v1.ContainerRestartPolicyAlways}))
		}
	}
	return errs
}

func checkName(path *field.Path, name string, check func(string) []string) field.ErrorList {
	if name == "" {
		return field.ErrorList{field.Required(path, "a name is needed")}
	}
	if problems := check(name); len(problems) > 0 {
		return field.ErrorList{field.Invalid(path, name, strings.Join(problems, ", "))}
	}
	return nil
}
