package manifest

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/kubegrace/kubegrace/examples/internal/document"
	"github.com/kubegrace/kubegrace/validation"
)

// The two priority classes that are known without an API server
// (k8s.io/kubernetes, pkg/apis/scheduling).
const (
	nodeCritical    = "system-node-critical"
	clusterCritical = "system-cluster-critical"
)

// Check finds what is wrong with a pod beyond what every agent needs.
type Check func(*v1.Pod) field.ErrorList

// Load reads all pods of a folder, with the features that opts leaves on. warnings are
// for people, a line each.
func Load(dir string, opts validation.Options, checks ...Check) (pods []*v1.Pod, warnings []string, err error) {
	files, warnings, err := filesOf(dir)
	if err != nil {
		return nil, nil, err
	}
	var errs []error
	decode := decoder(opts, checks)
	sources := map[string]string{} // namespace/name to where it was read
	for _, file := range files {
		docs, err := document.Read(file)
		errs = append(errs, err)
		for _, doc := range docs {
			pod, err := decode(doc, file)
			if err == nil {
				err = claim(sources, pod, doc.Source)
			}
			if err != nil {
				errs = append(errs, err)
				continue
			}
			pods = append(pods, pod)
			warnings = append(warnings, warn(pod, doc.Source)...)
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, nil, err
	}
	if len(pods) == 0 {
		warnings = append(warnings, dir+": has no pod manifests (files that end in .yaml, .yml or .json)")
	}
	return pods, warnings, nil
}

// filesOf lists the manifests of a folder by name, and warns of what it leaves
// out. Hidden files are left out without a word, as by the kubelet.
func filesOf(dir string) (files, warnings []string, err error) {
	info, err := os.Stat(dir) // to list a pipe would wait for its other end
	if err == nil && !info.IsDir() {
		err = fmt.Errorf("%s: is not a folder", dir)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("failed to list the pod manifests: %w", err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, nil, fmt.Errorf("failed to list the pod manifests: %w", err)
	}
	for _, entry := range entries {
		file := filepath.Join(dir, entry.Name())
		switch {
		case strings.HasPrefix(entry.Name(), "."):
		case entry.IsDir():
			warnings = append(warnings, file+": is a folder, its files are not read")
		case slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(file)):
			files = append(files, file)
		default:
			warnings = append(warnings, file+": is not read, it does not end in .yaml, .yml or .json")
		}
	}
	return files, warnings, nil
}

// decoder makes a pod of a document, fills in what is missing, drops fields whose
// feature is off, as the API server does, and checks the rest.
func decoder(opts validation.Options, checks []Check) func(document.Document, string) (*v1.Pod, error) {
	termination := func(pod *v1.Pod) field.ErrorList {
		return validation.ValidatePodTermination(&pod.Spec, opts, field.NewPath("spec"))
	}
	checks = append([]Check{validate, termination}, checks...)
	return func(doc document.Document, file string) (*v1.Pod, error) {
		if err := checkKind(doc); err != nil {
			return nil, fmt.Errorf("%s: %w", doc.Source, err)
		}
		pod, err := document.Decode[v1.Pod](doc)
		if err != nil {
			return nil, err
		}
		setDefaults(pod)
		validation.DropDisabledFields(&pod.Spec, nil, opts)
		if err := setIdentity(pod, file); err != nil {
			return nil, fmt.Errorf("%s: %w", doc.Source, err)
		}
		var errs []error
		for _, check := range checks {
			for _, err := range check(pod) {
				errs = append(errs, fmt.Errorf("%s: %w", doc.Source, err))
			}
		}
		return pod, errors.Join(errs...)
	}
}

// checkKind refuses what is another object, whose fields are not those of a pod. What has
// no kind is not known to be one.
func checkKind(doc document.Document) error {
	var object metav1.TypeMeta
	if err := json.Unmarshal(doc.JSON, &object); err != nil || object.Kind == "" || object.Kind == "Pod" {
		return nil //nolint:nilerr // decoding it as a pod will say it better
	}
	err := field.NotSupported(field.NewPath("kind"), object.Kind, []string{"Pod"})
	if object.Kind == "List" || object.Kind == "PodList" {
		return fmt.Errorf("%w: give each pod a document of its own", err)
	}
	return err
}

// claim refuses a pod whose name another document has.
func claim(sources map[string]string, pod *v1.Pod, source string) error {
	name := pod.Namespace + "/" + pod.Name
	if other, taken := sources[name]; taken {
		err := field.Duplicate(field.NewPath("metadata", "name"), name)
		return fmt.Errorf("%s: %w, it is also in %s", source, err, other)
	}
	sources[name] = source
	return nil
}

// warn says what of a pod will not be as its author may think.
func warn(pod *v1.Pod, source string) []string {
	warnings := validation.WarnPodTermination(&pod.Spec, field.NewPath("spec"))
	if class := pod.Spec.PriorityClassName; pod.Spec.Priority == nil && !slices.Contains([]string{"", nodeCritical, clusterCritical}, class) {
		warnings = append(warnings, fmt.Sprintf("spec.priorityClassName: %q is not known without an API server; the pod counts as node-critical, as static pods without spec.priority do", class))
	}
	warnings = append(warnings, ignored(pod)...)
	for i := range warnings {
		warnings[i] = source + ": " + warnings[i]
	}
	return warnings
}
