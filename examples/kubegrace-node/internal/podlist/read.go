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

	"github.com/kubegrace/kubegrace/examples/internal/document"
	"github.com/kubegrace/kubegrace/internal/staticpod"
)

// item is an object, or what is wrong with it if it is a pod: one of another kind may have fields of other types.
type item struct {
	object
	err error
}

// UnmarshalJSONFrom decodes an object of a list.
func (i *item) UnmarshalJSONFrom(decoder *jsontext.Decoder) error {
	text, err := decoder.ReadValue()
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, &i.object); err != nil {
		other := metav1.TypeMeta{}
		_ = json.Unmarshal(text, &other) // i.err says it
		i.Kind, i.err = other.Kind, err
	}
	return nil
}

// Read reads JSON or YAML to its end. Errors begin with source.
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

func (c *Cluster) read(source string, r io.Reader, static bool) error {
	text := bufio.NewReaderSize(r, 1<<16)
	for {
		first, err := text.ReadByte()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("%s: failed to read: %w", source, err)
		case strings.ContainsRune(" \t\r\n", rune(first)):
			continue
		}
		if err := text.UnreadByte(); err != nil {
			return err
		}
		if first == '{' {
			return c.readJSON(source, text, static)
		}
		return c.readYAML(source, text, static)
	}
}

// readJSON reads objects that follow each other.
func (c *Cluster) readJSON(source string, r *bufio.Reader, static bool) error {
	decoder := jsontext.NewDecoder(r)
	for {
		if decoder.PeekKind() == 0 {
			if _, err := decoder.ReadToken(); errors.Is(err, io.EOF) {
				return nil
			}
		}
		var i item
		if err := json.UnmarshalDecode(decoder, &i.object); err != nil { // one item after the other
			return fmt.Errorf("%s: %w", source, err)
		}
		if err := c.add(source, &i, "", static); err != nil {
			return err
		}
	}
}

func (c *Cluster) readYAML(source string, r io.Reader, static bool) error {
	text, err := io.ReadAll(r)
	if err != nil {
		return fmt.Errorf("%s: failed to read: %w", source, err)
	}
	if bytes.IndexByte(text, 0) >= 0 {
		return fmt.Errorf("%s: is no text, wanted is JSON or YAML", source)
	}
	docs, err := document.Parse(source, text)
	if err != nil {
		return err
	}
	for _, doc := range docs {
		if bytes.HasPrefix(doc.JSON, []byte(`"`)) { // a table of kubectl, among others
			return fmt.Errorf("%s: is a text, wanted are objects as JSON or YAML: kubectl prints them with -o json", doc.Source)
		}
		var i item
		if err := json.Unmarshal(doc.JSON, &i); err != nil {
			return fmt.Errorf("%s: %w", doc.Source, err)
		}
		if err := c.add(doc.Source, &i, "", static); err != nil {
			return err
		}
	}
	return nil
}

// add adds the objects of a list, or an object. kind is that of an object that does not say it. Pods and priority classes
// are kept, and all others are counted.
func (c *Cluster) add(source string, i *item, kind string, static bool) error {
	c.Objects++
	kind = cmp.Or(i.Kind, kind)
	switch {
	case i.err != nil && slices.Contains([]string{"", "Pod", "PriorityClass", "List", "PodList"}, kind):
		return fmt.Errorf("%s: %w", source, i.err)
	case len(i.Items) > 0 || kind == "List" || kind == "PodList":
		of := cmp.Or(strings.TrimSuffix(kind, "List"), "Pod") // the items of an API server's list do not say it
		for n := range i.Items {
			if err := c.add(fmt.Sprintf("%s: items[%d]", source, n), &i.Items[n], of, static); err != nil {
				return err
			}
		}
	case kind == "PriorityClass":
		c.Classes[i.Metadata.Name] = i.Value
	case kind == "Pod":
		pod := i.pod()
		if static {
			metav1.SetMetaDataAnnotation(&pod.ObjectMeta, staticpod.SourceAnnotation, "file") // as the kubelet marks it
		}
		c.addPod(i.Spec.NodeName, i.Status.Phase, pod)
	default:
		c.Others[cmp.Or(kind, "an object without a kind")] = true
	}
	return nil
}
