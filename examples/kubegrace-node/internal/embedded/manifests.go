package embedded

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/kubegrace/kubegrace/examples/internal/document"
	"github.com/kubegrace/kubegrace/validation"
)

// Load reads pod manifests from the files of a folder that end in .yaml, .yml or .json, sorted by name. It
// sets the defaults that the API server would set. The error names every problem, each with its file. The
// warnings are lines for people.
func Load(dir string, opts validation.Options) (pods []*v1.Pod, warnings []string, err error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, nil, fmt.Errorf("failed to list the pod manifests: %w", err)
	}
	var errs []error
	for _, entry := range entries {
		file := filepath.Join(dir, entry.Name())
		if !slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(file)) {
			continue
		}
		docs, err := document.Read(file)
		errs = append(errs, err)
		for _, doc := range docs {
			pod, err := document.Decode[v1.Pod](doc)
			if err != nil {
				errs = append(errs, err)
				continue
			}
			setDefaults(pod)
			validation.DropDisabledFields(&pod.Spec, nil, opts)
			for _, problem := range append(problemsOf(pod), validation.ValidatePodTermination(&pod.Spec, opts, field.NewPath("spec"))...) {
				errs = append(errs, fmt.Errorf("%s: %w", doc.Source, problem))
			}
			for _, warning := range validation.WarnPodTermination(&pod.Spec, field.NewPath("spec")) {
				warnings = append(warnings, doc.Source+": "+warning)
			}
			if slices.ContainsFunc(pods, func(other *v1.Pod) bool { return other.UID == pod.UID }) {
				errs = append(errs, fmt.Errorf("%s: %w", doc.Source, field.Duplicate(field.NewPath("metadata", "name"), pod.Name)))
			}
			pods = append(pods, pod)
		}
	}
	if len(pods) == 0 {
		warnings = append(warnings, dir+": has no pod manifests (files that end in .yaml, .yml or .json)")
	}
	return pods, warnings, errors.Join(errs...)
}

// setDefaults sets the namespace, the UID and the grace period, if they are missing.
func setDefaults(pod *v1.Pod) {
	pod.Namespace = cmp.Or(pod.Namespace, metav1.NamespaceDefault)
	pod.UID = cmp.Or(pod.UID, types.UID(pod.Namespace+"/"+pod.Name))
	if pod.Spec.TerminationGracePeriodSeconds == nil {
		pod.Spec.TerminationGracePeriodSeconds = ptr.To(int64(v1.DefaultTerminationGracePeriodSeconds))
	}
}

// problemsOf returns the reasons why a pod cannot be simulated.
func problemsOf(pod *v1.Pod) field.ErrorList {
	var errs field.ErrorList
	if pod.Kind != "Pod" || pod.APIVersion != "v1" {
		errs = append(errs, field.NotSupported(field.NewPath("kind"), pod.APIVersion+" "+pod.Kind, []string{"v1 Pod"}))
	}
	if pod.Name == "" {
		errs = append(errs, field.Required(field.NewPath("metadata", "name"), "a name is needed"))
	}
	if len(pod.Spec.Containers) == 0 {
		errs = append(errs, field.Required(field.NewPath("spec", "containers"), "a pod has at least one container"))
	}
	containers := slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers)
	for key, text := range pod.Annotations {
		name, isScript := strings.CutPrefix(key, ScriptPrefix)
		if isScript && !slices.ContainsFunc(containers, func(c v1.Container) bool { return c.Name == name }) {
			errs = append(errs, field.Invalid(field.NewPath("metadata", "annotations").Key(key), text, fmt.Sprintf("the pod has no container %q", name)))
		}
	}
	return errs
}
