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

// The priority classes that every cluster has, known without an API server
// (k8s.io/kubernetes, pkg/apis/scheduling).
const (
	nodeCriticalClass    = "system-node-critical"
	clusterCriticalClass = "system-cluster-critical"
)

// Check returns the problems that one agent has with a pod, besides those that Load
// finds.
type Check func(*v1.Pod) field.ErrorList

// Load reads all pods of a folder. It drops fields whose feature opts turns off. Each
// warning is one line of text for people.
func Load(dir string, opts validation.Options, checks ...Check) (pods []*v1.Pod, warnings []string, err error) {
	files, warnings, err := listManifests(dir)
	if err != nil {
		return nil, nil, err
	}
	var errs []error
	decode := decoder(opts, checks)
	sources := map[string]string{} // from namespace/name to where the pod was read
	for _, file := range files {
		docs, err := document.Read(file)
		errs = append(errs, err)
		for _, doc := range docs {
			pod, err := decode(doc, file)
			if err == nil {
				err = checkUnique(sources, pod, doc.Source)
			}
			if err != nil {
				errs = append(errs, err)
				continue
			}
			pods = append(pods, pod)
			warnings = append(warnings, warningsOf(pod, doc.Source)...)
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

// listManifests returns the manifests in a folder, in the order of their names, and a
// warning for each entry that is left out. Hidden files are left out without a warning,
// as by the kubelet.
func listManifests(dir string) (files, warnings []string, err error) {
	info, err := os.Stat(dir) // ReadDir of a pipe would wait for a writer
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

// decoder returns a function that decodes a document to a pod, sets defaults, drops
// fields whose feature is off, as the API server does, and validates the pod.
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
		if err := setStaticPodMetadata(pod, file); err != nil {
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

// checkKind refuses a document of another kind, before it is decoded as a pod and all its
// fields are unknown. Validation refuses a document without a kind.
func checkKind(doc document.Document) error {
	var object metav1.TypeMeta
	if err := json.Unmarshal(doc.JSON, &object); err != nil || object.Kind == "" || object.Kind == "Pod" {
		return nil //nolint:nilerr // the error of Decode says more
	}
	err := field.NotSupported(field.NewPath("kind"), object.Kind, []string{"Pod"})
	if object.Kind == "List" || object.Kind == "PodList" {
		return fmt.Errorf("%w: give each pod a document of its own", err)
	}
	return err
}

// checkUnique refuses a pod if sources has its name from another document, and else adds
// it.
func checkUnique(sources map[string]string, pod *v1.Pod, source string) error {
	name := pod.Namespace + "/" + pod.Name
	if other, taken := sources[name]; taken {
		err := field.Duplicate(field.NewPath("metadata", "name"), name)
		return fmt.Errorf("%s: %w, it is also in %s", source, err, other)
	}
	sources[name] = source
	return nil
}

// warningsOf returns a warning for each field of a pod that has another effect than its
// author may expect, or none.
func warningsOf(pod *v1.Pod, source string) []string {
	warnings := validation.WarnPodTermination(&pod.Spec, field.NewPath("spec"))
	if class := pod.Spec.PriorityClassName; pod.Spec.Priority == nil && !slices.Contains([]string{"", nodeCriticalClass, clusterCriticalClass}, class) {
		warnings = append(warnings, fmt.Sprintf("spec.priorityClassName: %q is not known without an API server; its priority counts as 0", class))
	}
	warnings = append(warnings, ignoredFields(pod)...)
	for i := range warnings {
		warnings[i] = source + ": " + warnings[i]
	}
	return warnings
}
