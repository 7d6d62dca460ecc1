package kubeletconfig

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-base/featuregate"

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
}

// Enabled reports whether a feature gate is on. A gate that is not set counts as on, because both gates of the
// node's shutdown are on by default.
func (c Config) Enabled(gate string) bool {
	on, set := c.FeatureGates[gate]
	return on || !set
}

// Schedule returns the buckets of the node's shutdown; nil: the graceful node shutdown is off.
func (c Config) Schedule() plan.Schedule {
	if !c.Enabled("GracefulNodeShutdown") {
		return nil
	}
	return c.Shutdown.Schedule(c.Enabled("GracefulNodeShutdownBasedOnPodPriority"))
}

// Load reads a kubelet's configuration as the kubelet does: a file, into which the drop-ins of a folder are
// merged. The drop-ins are all files below the folder that end in .conf, in the order of their paths, and the
// last one overrides the others. Either argument may be "". The file may also have the answer of a kubelet's /configz.
func Load(file, folder string) (c Config, err error) {
	if file != "" {
		if err := c.mergeFile(file); err != nil {
			return Config{}, err
		}
	}
	if folder == "" {
		return c, nil
	}
	hasConfiguration := file != ""
	err = filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Ext(path) != ".conf" {
			return err
		}
		hasConfiguration = true
		return c.mergeFile(path)
	})
	if err == nil && !hasConfiguration {
		err = fmt.Errorf("%s: has no file that ends in .conf, and a kubelet reads no others", folder)
	}
	if err != nil {
		return Config{}, err
	}
	return c, nil
}

// mergeFile sets the fields of a file in c. The file has a KubeletConfiguration or an answer of /configz.
func (c *Config) mergeFile(file string) error {
	docs, err := document.Read(file)
	if err != nil {
		return err
	}
	if len(docs) != 1 {
		return fmt.Errorf("%s: has %d documents, wanted is one KubeletConfiguration", file, len(docs))
	}
	var object struct {
		metav1.TypeMeta

		KubeletConfig jsontext.Value            `json:"kubeletconfig"` // in an answer of /configz
		Fields        map[string]jsontext.Value `json:",inline"`
	}
	if err := json.Unmarshal(docs[0].JSON, &object); err != nil {
		return fmt.Errorf("%s: wanted is a KubeletConfiguration: %w", file, err)
	}
	const version, kind = "kubelet.config.k8s.io/v1beta1", "KubeletConfiguration"
	if object.KubeletConfig != nil {
		err = json.Unmarshal(object.KubeletConfig, &object.Fields)
	} else if object.APIVersion != version || object.Kind != kind {
		err = fmt.Errorf("is apiVersion %q, kind %q; wanted is %q, kind %q, as in /var/lib/kubelet/config.yaml, or what kubectl get --raw /api/v1/nodes/NODE/proxy/configz prints", object.APIVersion, object.Kind, version, kind)
	}
	if err == nil {
		err = c.merge(object.Fields)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	return nil
}

// merge sets the fields of a KubeletConfiguration in c; maps are merged key by key. Fields that a [Config] does not have are
// ignored. But an unknown field whose name begins with shutdownGracePeriod is an error: it is misspelled, and ignoring it
// would silently switch the graceful node shutdown off.
func (c *Config) merge(fields map[string]jsontext.Value) error {
	maps.DeleteFunc(fields, func(name string, _ jsontext.Value) bool {
		isOfConfig := slices.Contains([]string{"featureGates", "staticPodPath"}, name)
		isAboutShutdown := strings.HasPrefix(strings.ToLower(name), "shutdowngraceperiod")
		return !isOfConfig && !isAboutShutdown
	})
	text, err := json.Marshal(fields)
	if err != nil {
		return err
	}
	return json.Unmarshal(text, c, json.RejectUnknownMembers(true))
}

// SetFeatureGates sets the feature gates of a configuration file. A kubelet's file may set features that gate does not
// know. They are skipped, and their names are returned in alphabetical order.
func SetFeatureGates(gate featuregate.MutableVersionedFeatureGate, values map[string]bool) (unknown []string, err error) {
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if _, known := gate.GetAll()[featuregate.Feature(name)]; !known {
			unknown = append(unknown, name)
		} else {
			err = errors.Join(err, gate.SetFromMap(map[string]bool{name: values[name]}))
		}
	}
	return unknown, err
}
