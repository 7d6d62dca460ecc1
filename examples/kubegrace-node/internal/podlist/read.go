package podlist

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"

	"github.com/kubegrace/kubegrace/examples/internal/document"
	"github.com/kubegrace/kubegrace/internal/staticpod"
)

// object is a pod, a list or a priority class. Of containers and statuses only what decides on a shutdown is
// read: decoding all of them takes twice as long.
type object struct {
	Kind     string            `json:"kind"`
	Metadata metav1.ObjectMeta `json:"metadata"`
	Spec     struct {
		v1.PodSpec

		Containers     []container `json:"containers"`
		InitContainers []container `json:"initContainers"`
	} `json:"spec"`
	Status struct {
		Phase v1.PodPhase `json:"phase"`
	} `json:"status"`
	Items []*object `json:"items"` // of a list; nil: null, which is no object
	Value int32     `json:"value"` // of a priority class
}

// container has what is read of a container.
type container struct {
	Name          string                     `json:"name"`
	RestartPolicy *v1.ContainerRestartPolicy `json:"restartPolicy"`
	Lifecycle     *v1.Lifecycle              `json:"lifecycle"`
}

// pod returns the pod that was read.
func (o *object) pod() *v1.Pod {
	pod := &v1.Pod{ObjectMeta: o.Metadata, Spec: o.Spec.PodSpec, Status: v1.PodStatus{Phase: o.Status.Phase}}
	pod.Spec.Containers = asPodContainers(o.Spec.Containers)
	pod.Spec.InitContainers = asPodContainers(o.Spec.InitContainers)
	return pod
}

// asPodContainers returns the containers as those of a pod.
func asPodContainers(containers []container) (converted []v1.Container) {
	for _, c := range containers {
		converted = append(converted, v1.Container{Name: c.Name, RestartPolicy: c.RestartPolicy, Lifecycle: c.Lifecycle})
	}
	return converted
}

// Read reads JSON or YAML to its end and adds the objects to the cluster. Errors begin with source. JSON is
// decoded while it is read, because the list of a large cluster has 100 MB and more.
func (c *Cluster) Read(source string, r io.Reader) error {
	buffered := bufio.NewReader(r)
	head, _ := buffered.Peek(buffered.Size()) // an error occurs again when the rest is read
	if utilyaml.IsJSONBuffer(head) {
		return c.readJSON(source, buffered)
	}
	text, err := io.ReadAll(buffered)
	if err != nil {
		return fmt.Errorf("%s: failed to read: %w", source, err)
	}
	docs, err := document.Parse(source, text)
	const markAsStatic = false // kubectl prints static pods with their mark
	return errors.Join(err, c.addDocuments(docs, markAsStatic))
}

// readJSON reads JSON values to the end and adds the objects to the cluster.
func (c *Cluster) readJSON(source string, r io.Reader) error {
	decoder := jsontext.NewDecoder(r)
	const endOrInvalid = jsontext.Kind(0)
	for decoder.PeekKind() != endOrInvalid {
		var o object
		if err := json.UnmarshalDecode(decoder, &o); err != nil {
			return fmt.Errorf("%s: %w", source, err)
		}
		const markAsStatic = false // the kubelet and the API server send static pods with their mark
		c.addObject(&o, markAsStatic)
	}
	if _, err := decoder.ReadToken(); !errors.Is(err, io.EOF) { // what follows is no JSON
		return fmt.Errorf("%s: %w", source, err)
	}
	return nil
}

// ReadFolder reads the manifests of static pods in a folder, with [document.ReadFolder].
func (c *Cluster) ReadFolder(folder string) error {
	docs, err := document.ReadFolder(folder)
	const markAsStatic = true
	return errors.Join(err, c.addDocuments(docs, markAsStatic))
}

// addDocuments decodes documents and adds their objects. With markAsStatic it marks the pods as static pods, as
// the kubelet marks those of manifests.
func (c *Cluster) addDocuments(docs []document.Document, markAsStatic bool) error {
	for _, doc := range docs {
		if !strings.HasPrefix(string(doc.JSON), "{") { // a table of kubectl, which is a text, among others
			return fmt.Errorf("%s: wanted are objects as JSON or YAML, as kubectl prints them with -o json", doc.Source)
		}
		var o object
		if err := json.Unmarshal(doc.JSON, &o); err != nil {
			return fmt.Errorf("%s: %w", doc.Source, err)
		}
		c.addObject(&o, markAsStatic)
	}
	return nil
}

// addObject adds an object, or all objects of a list. Pods and priority classes are kept. Of all other objects only the kind
// is kept. With markAsStatic pods are marked as static pods.
func (c *Cluster) addObject(o *object, markAsStatic bool) {
	c.Objects++
	switch {
	case len(o.Items) > 0 || o.Kind == "List" || o.Kind == "PodList":
		kindOfItems := cmp.Or(strings.TrimSuffix(o.Kind, "List"), "Pod") // of those without a kind, as in a PodList
		for _, item := range o.Items {
			if item != nil {
				item.Kind = cmp.Or(item.Kind, kindOfItems)
				c.addObject(item, markAsStatic)
			}
		}
	case o.Kind == "PriorityClass":
		c.Classes[o.Metadata.Name] = o.Value
	case o.Kind == "Pod":
		if markAsStatic {
			metav1.SetMetaDataAnnotation(&o.Metadata, staticpod.SourceAnnotation, "file") // as the kubelet marks it
		}
		c.Add(o.pod())
	default:
		c.Others[cmp.Or(o.Kind, "an object without a kind")] = true
	}
}
