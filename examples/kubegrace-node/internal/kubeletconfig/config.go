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

// Config is what decides on a node's shutdown, or says where its pods are. The zero value is the kubelet's default: no
// graceful shutdown.
type Config struct {
	// Shutdown has the three shutdown fields of the file.
	Shutdown plan.Config `json:",inline"`
	// FeatureGates are all gates that the file sets, including gates of other components.
	FeatureGates map[string]bool `json:"featureGates"`
	// StaticPodPath is the folder or the file of the static pods; "": there is none.
	StaticPodPath string `json:"staticPodPath"`
	// ReadOnlyPort is the port at which the kubelet lists its pods without authentication; 0: none.
	ReadOnlyPort int32 `json:"readOnlyPort"`
}

// Load reads the file, unless it is "", and merges the drop-ins of the folder into it, unless that is
// "", as a kubelet does: all files that end in .conf, in the order of their paths, the last one wins.
// The file may have the answer of /configz.
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
			_, err = decode(dropIn) // names the file of a bad value
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

// read returns the KubeletConfiguration of a file, or of an answer of /configz.
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
		KubeletConfig json.RawMessage `json:"kubeletconfig"` // of an answer
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

// decode decodes the fields that a Config has, and ignores all others. A misspelled shutdown field is an
// error, because ignoring it would switch the graceful node shutdown off silently.
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
