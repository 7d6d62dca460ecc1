package embedded

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/go-json-experiment/json"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/kubegrace/kubegrace/examples/internal/document"
	"github.com/kubegrace/kubegrace/validation"
)

// Load reads the pod manifests of a folder ([document.ReadFolder]). It sets the defaults that the API server
// would set. The error names every problem, each with its file. The warnings are lines for people.
func Load(dir string, opts validation.Options) (pods []*v1.Pod, warnings []string, err error) {
	docs, err := document.ReadFolder(dir)
	errs := []error{err}
	for _, doc := range docs {
		pod, err := decode(doc.JSON)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", doc.Source, err))
			continue
		}
		pod.Namespace = cmp.Or(pod.Namespace, metav1.NamespaceDefault)
		pod.UID = types.UID(pod.Namespace + "/" + pod.Name)
		if pod.Spec.TerminationGracePeriodSeconds == nil {
			pod.Spec.TerminationGracePeriodSeconds = ptr.To(int64(v1.DefaultTerminationGracePeriodSeconds))
		}
		validation.DropDisabledFields(&pod.Spec, nil, opts)
		for _, problem := range validation.ValidatePodTermination(&pod.Spec, opts, field.NewPath("spec")) {
			errs = append(errs, fmt.Errorf("%s: %w", doc.Source, problem))
		}
		for _, warning := range validation.WarnPodTermination(&pod.Spec, field.NewPath("spec")) {
			warnings = append(warnings, doc.Source+": "+warning)
		}
		pods = append(pods, pod)
	}
	if len(pods) == 0 {
		warnings = append(warnings, dir+": has no pods in files that end in .yaml, .yml, .json or .manifest")
	}
	return pods, warnings, errors.Join(errs...)
}

// decode decodes the manifest of a pod. Another kind, an unknown field, and a pod without a name are errors.
func decode(manifest []byte) (*v1.Pod, error) {
	var object metav1.TypeMeta
	pod := &v1.Pod{}
	if err := json.Unmarshal(manifest, &object); err != nil {
		return nil, err
	}
	if object.Kind != "Pod" {
		return nil, field.NotSupported(field.NewPath("kind"), object.Kind, []string{"Pod"})
	}
	if err := json.Unmarshal(manifest, pod, json.RejectUnknownMembers(true)); err != nil {
		return nil, err
	}
	if pod.Name == "" {
		return nil, field.Required(field.NewPath("metadata", "name"), "")
	}
	return pod, nil
}
