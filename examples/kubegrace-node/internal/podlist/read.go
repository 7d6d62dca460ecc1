package podlist

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/transform"
	v1 "k8s.io/api/core/v1"
	kjson "sigs.k8s.io/json"

	"github.com/kubegrace/kubegrace/examples/internal/document"
)

// The kinds of the objects that are kept.
const (
	kindPod           = "Pod"
	kindPriorityClass = "PriorityClass"
	kindNode          = "Node"
)

// object is a pod, or a list, a node or a priority class: all that is read of these are their names
// and labels, which they have in common with a pod.
type object struct {
	v1.Pod
	Status struct { // all that is read of a pod's; the rest is a third of a list
		Phase v1.PodPhase `json:"phase"`
	} `json:"status"`
	Items []object `json:"items"` // of a list
	Value int32    `json:"value"` // of a priority class
}

// Read reads JSON or YAML to its end. Errors begin with source.
func (c *Cluster) Read(source string, r io.Reader) error {
	return c.read(source, r, false)
}

// ReadFolder reads the manifests of static pods in a folder: the files that end in .yaml,
// .yml or .json, in the order of their names. It opens each file with open.
func (c *Cluster) ReadFolder(folder string, open func(file string) (io.ReadCloser, error)) error {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if entry.IsDir() || !slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(entry.Name())) {
			continue
		}
		if err := c.readManifest(filepath.Join(folder, entry.Name()), open); err != nil {
			return err
		}
	}
	return nil
}

// readManifest reads a regular file of a folder, or the regular file that a link leads to. A
// pipe or a device in a folder is an error, because reading it might never end.
func (c *Cluster) readManifest(file string, open func(file string) (io.ReadCloser, error)) (err error) {
	info, err := os.Stat(file)
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("%s: is not a regular file, as a manifest is", file)
	}
	r, err := open(file)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	return c.read(file, r, true)
}

// read reads a text, which may be compressed with gzip, and may have a byte order mark or be UTF-16 with
// one, as PowerShell writes it.
func (c *Cluster) read(source string, r io.Reader, static bool) error {
	text, err := io.ReadAll(r)
	if err != nil {
		return fmt.Errorf("%s: failed to read: %w", source, err)
	}
	if bytes.HasPrefix(text, []byte{0x1f, 0x8b}) {
		if text, err = unzip(text); err != nil {
			return fmt.Errorf("%s: begins as gzip does, but is damaged: %w", source, err)
		}
	}
	if len(text) > 0 && text[0] >= utf8.RuneSelf { // no text without a mark is copied
		if text, _, err = transform.Bytes(unicode.BOMOverride(transform.Nop), text); err != nil {
			return fmt.Errorf("%s: begins with a byte order mark, but is damaged: %w", source, err)
		}
	}
	if bytes.IndexByte(text, 0) >= 0 {
		return fmt.Errorf("%s: is no text, wanted is JSON or YAML, also with gzip", source)
	}
	var single object // as most input is
	if kjson.UnmarshalCaseSensitivePreserveInts(text, &single) == nil {
		c.add(&single, "", static)
		return nil
	}
	docs, err := document.Parse(source, text)
	if err != nil {
		return err
	}
	for _, doc := range docs {
		if err := c.decode(doc, "", static); err != nil {
			return err
		}
	}
	return nil
}

func unzip(text []byte) ([]byte, error) {
	r, err := gzip.NewReader(bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(r)
}

// decode decodes an object and adds it. kind is the kind of an object that does not say it.
func (c *Cluster) decode(doc document.Document, kind string, static bool) error {
	var o object
	err := kjson.UnmarshalCaseSensitivePreserveInts(doc.JSON, &o)
	if err == nil {
		c.add(&o, kind, static)
		return nil
	}
	// An object of another kind may have fields of other types, and then the list with it is no list of
	// pods. So each object of a list is decoded alone.
	var other struct {
		Kind  string            `json:"kind"`
		Items []json.RawMessage `json:"items"`
	}
	isObject := kjson.UnmarshalCaseSensitivePreserveInts(doc.JSON, &other) == nil
	kind = cmp.Or(other.Kind, kind)
	switch {
	case len(other.Items) > 0:
		c.Objects++
		for i, item := range other.Items {
			if err := c.decode(document.Document{Source: fmt.Sprintf("%s: items[%d]", doc.Source, i), JSON: item}, kindOfItems(kind), static); err != nil {
				return err
			}
		}
		return nil
	case isObject && !slices.Contains([]string{"", kindPod, kindNode, kindPriorityClass}, kind):
		c.Objects++
		c.Others[kind]++
		return nil
	case bytes.HasPrefix(doc.JSON, []byte(`"`)): // a table of kubectl, among others
		return fmt.Errorf("%s: is a text, wanted are objects as JSON or YAML: kubectl prints them with -o json", doc.Source)
	}
	return document.Explain[object](doc, err)
}

// kindOfItems returns the kind of the objects of a list that do not say it, as the items of an API
// server's PodList do not.
func kindOfItems(list string) string { return cmp.Or(strings.TrimSuffix(list, "List"), kindPod) }

// add adds the objects of a list, or an object. It keeps priority classes, the pools of nodes, and pods,
// and counts all others.
func (c *Cluster) add(o *object, kind string, static bool) {
	c.Objects++
	kind = cmp.Or(o.Kind, kind)
	switch {
	case o.Items != nil || kind == "List" || kind == "PodList":
		for i := range o.Items {
			c.add(&o.Items[i], kindOfItems(kind), static)
		}
	case kind == kindPriorityClass:
		c.Beside++
		c.Classes[o.Name] = o.Value
	case kind == kindNode:
		c.Beside++
		for _, label := range c.poolLabels {
			c.pools[o.Name] = cmp.Or(o.Labels[label], c.pools[o.Name])
		}
	case kind == kindPod:
		c.addPod(o, static)
	default:
		c.Others[kind]++
	}
}
