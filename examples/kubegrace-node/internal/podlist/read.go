package podlist

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"

	"github.com/kubegrace/kubegrace/examples/internal/document"
	"github.com/kubegrace/kubegrace/internal/staticpod"
)

// Read reads JSON or YAML to its end and adds the objects to the cluster. Errors begin with source.
func (c *Cluster) Read(source string, r io.Reader) error { return c.read(source, r, false) }

// ReadFolder reads the manifests of static pods in a folder: the files that end in .yaml,
// .yml or .json, in the order of their names.
func (c *Cluster) ReadFolder(folder string) error {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		file := filepath.Join(folder, entry.Name())
		if entry.IsDir() || !slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(file)) {
			continue
		}
		text, err := document.ReadFile(file)
		if err == nil {
			err = c.read(file, bytes.NewReader(text), true)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// read reads objects one after the other and adds them. With static the pods are those of manifests: they are
// marked as static pods. JSON is decoded while it is read, because the list of a large cluster has 100 MB and
// more.
func (c *Cluster) read(source string, r io.Reader, static bool) error {
	buffered := bufio.NewReader(r)
	if head, _ := buffered.Peek(buffered.Size()); !utilyaml.IsJSONBuffer(head) { // an error of Peek comes again when the rest is read
		return c.readYAML(source, buffered, static)
	}
	decoder := jsontext.NewDecoder(buffered)
	for decoder.PeekKind() != 0 { // 0: the end of the input, or something that is no JSON
		var o object
		if err := json.UnmarshalDecode(decoder, &o); err != nil {
			return fmt.Errorf("%s: %w", source, err)
		}
		c.add(&o, "", static)
	}
	if _, err := decoder.ReadToken(); !errors.Is(err, io.EOF) {
		return fmt.Errorf("%s: %w", source, err)
	}
	return nil
}

// readYAML is [Cluster.read] for YAML.
func (c *Cluster) readYAML(source string, r io.Reader, static bool) error {
	text, err := io.ReadAll(r)
	if err != nil {
		return fmt.Errorf("%s: failed to read: %w", source, err)
	}
	docs, err := document.Parse(source, text)
	if err != nil {
		return err
	}
	for _, doc := range docs {
		if strings.HasPrefix(string(doc.JSON), `"`) { // a table of kubectl, among others
			return fmt.Errorf("%s: is a text, wanted are objects as JSON or YAML: kubectl prints them with -o json", doc.Source)
		}
		var o object
		if err := json.Unmarshal(doc.JSON, &o); err != nil {
			return fmt.Errorf("%s: %w", doc.Source, err)
		}
		c.add(&o, "", static)
	}
	return nil
}

// add adds an object, or all objects of a list. kind is the kind of an object that does not have one itself,
// such as an item of a PodList. Pods and priority classes are kept. Of all other objects only the kind is
// kept.
func (c *Cluster) add(o *object, kind string, static bool) {
	c.Objects++
	switch kind = cmp.Or(o.Kind, kind); {
	case len(o.Items) > 0 || kind == "List" || kind == "PodList":
		itemKind := cmp.Or(strings.TrimSuffix(kind, "List"), "Pod")
		for i := range o.Items {
			c.add(&o.Items[i], itemKind, static)
		}
	case kind == "PriorityClass":
		c.Classes[o.Metadata.Name] = o.Value
	case kind == "Pod":
		pod := o.pod()
		if static {
			metav1.SetMetaDataAnnotation(&pod.ObjectMeta, staticpod.SourceAnnotation, "file") // as the kubelet marks it
		}
		c.addPod(o.Spec.NodeName, o.Status.Phase, pod)
	default:
		c.Others[cmp.Or(kind, "an object without a kind")] = true
	}
}
