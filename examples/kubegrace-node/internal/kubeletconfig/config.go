package kubeletconfig

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubegrace/kubegrace/examples/internal/document"
	"github.com/kubegrace/kubegrace/shutdown/plan"
)

// Config has the fields of a kubelet's configuration that decide on the node's shutdown, or say where to find
// the node's pods. The zero value is the kubelet's default: no graceful node shutdown.
type Config struct {
	// Shutdown has the three shutdown fields of the file.
	Shutdown plan.Config `json:",inline"`
	// FeatureGates are all gates that the file sets, including gates of other components.
	FeatureGates map[string]bool `json:"featureGates"`
	// StaticPodPath is the folder or the file with the manifests of the static pods. "" means that there is
	// none.
	StaticPodPath string `json:"staticPodPath"`
	// ReadOnlyPort is the port at which the kubelet lists its pods without authentication. 0 means that there
	// is none.
	ReadOnlyPort int32 `json:"readOnlyPort"`
}

// Load reads a kubelet's configuration as the kubelet does: a file, into which the drop-ins of a folder are
// merged. The drop-ins are all files below the folder that end in .conf, in the order of their paths, and the
// last one wins. Either argument may be "". The file may also have the answer of a kubelet's /configz.
func Load(file, folder string) (Config, error) {
	merged := document.Document{Source: file, JSON: []byte("{}")}
	if file != "" {
		var err error
		if merged, err = read(file); err != nil {
			return Config{}, err
		}
	}
	if folder == "" {
		return decode(merged)
	}
	info, err := os.Stat(folder)
	switch {
	case err != nil:
		return Config{}, fmt.Errorf("--config-dir: %s: failed to read: %w", folder, errors.Unwrap(err))
	case !info.IsDir():
		return Config{}, fmt.Errorf("--config-dir: %s: is a file, wanted is a folder of drop-ins: a single file goes with --config", folder)
	}
	found := file != ""
	err = filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Ext(path) != ".conf" {
			return err
		}
		found = true
		dropIn, err := read(path)
		if err == nil {
			_, err = decode(dropIn) // so that an error names the drop-in, and not the merged configuration
		}
		if err == nil {
			merged.JSON, err = jsonpatch.MergePatch(merged.JSON, dropIn.JSON)
		}
		return err
	})
	if err != nil {
		return Config{}, fmt.Errorf("--config-dir: %w", err)
	}
	if !found {
		return Config{}, fmt.Errorf("--config-dir: %s: has no file that ends in .conf, and a kubelet reads no others", folder)
	}
	merged.Source = strings.TrimPrefix(file+" and "+folder, " and ")
	return decode(merged)
}

// read returns the KubeletConfiguration that a file has, either as such or within an answer of /configz.
func read(file string) (document.Document, error) {
	docs, err := document.Read(file)
	if err != nil {
		return document.Document{}, err
	}
	if len(docs) != 1 {
		return document.Document{}, fmt.Errorf("%s: has %d documents, wanted is one KubeletConfiguration", file, len(docs))
	}
	doc := docs[0]
	var object struct {
		metav1.TypeMeta
		KubeletConfig json.RawMessage `json:"kubeletconfig"` // in an answer of /configz
	}
	if err := json.Unmarshal(doc.JSON, &object); err != nil {
		return doc, fmt.Errorf("%s: wanted is a KubeletConfiguration: %w", file, err)
	}
	const version, kind = "kubelet.config.k8s.io/v1beta1", "KubeletConfiguration"
	switch {
	case object.KubeletConfig != nil:
		doc.JSON = object.KubeletConfig
	case object.APIVersion != version || object.Kind != kind:
		return doc, fmt.Errorf("%s: is apiVersion %q, kind %q; wanted is %q, kind %q, as in /var/lib/kubelet/config.yaml, or what kubectl get --raw /api/v1/nodes/NODE/proxy/configz prints", file, object.APIVersion, object.Kind, version, kind)
	}
	return doc, nil
}

// decode decodes the fields that a [Config] has, and ignores all others. A field that only begins like a
// shutdown field is an error: it is misspelled, and ignoring it would silently switch the graceful node
// shutdown off.
func decode(doc document.Document) (Config, error) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(doc.JSON, &fields); err != nil {
		return Config{}, fmt.Errorf("%s: %w", doc.Source, err)
	}
	maps.DeleteFunc(fields, func(name string, _ json.RawMessage) bool {
		return !slices.Contains([]string{"featureGates", "staticPodPath", "readOnlyPort"}, name) && !strings.HasPrefix(strings.ToLower(name), "shutdowngraceperiod")
	})
	text, err := json.Marshal(fields)
	if err != nil {
		return Config{}, fmt.Errorf("%s: %w", doc.Source, err)
	}
	config, err := document.Decode[Config](document.Document{Source: doc.Source, JSON: text})
	if err != nil {
		return Config{}, err
	}
	return *config, nil
}

// Describe returns the shutdown fields that are set, as JSON for an error message.
func Describe(c plan.Config) string {
	text, err := json.Marshal(c)
	if err != nil {
		return fmt.Sprintf("%+v", c)
	}
	return string(text)
}
