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
	kubelet "k8s.io/kubelet/config/v1beta1"

	"github.com/kubegrace/kubegrace/examples/internal/document"
	"github.com/kubegrace/kubegrace/shutdown/plan"
)

// Config is the part of a KubeletConfiguration that decides on a node's shutdown, or says where its
// pods are. The zero value is the kubelet's default: no graceful shutdown.
type Config struct {
	// Shutdown has the three shutdown fields.
	Shutdown plan.Config
	// FeatureGates are all gates that are set, including those of other components.
	FeatureGates map[string]bool
	// StaticPodPath is the folder or the file of the static pods; "": there is none.
	StaticPodPath string
	// RuntimeEndpoint is the address of the container runtime; "": a kubelet's flag has it.
	RuntimeEndpoint string
	// ReadOnlyPort is the port at which the kubelet lists its pods without authentication; 0: none.
	ReadOnlyPort int32
}

// Parse reads one KubeletConfiguration, or the answer of /configz, as YAML or JSON. Errors begin
// with source.
func Parse(source string, text []byte) (Config, error) {
	fields, err := fieldsOf(source, text)
	if err != nil {
		return Config{}, err
	}
	return decode(source, fields)
}

// Load reads the file, unless it is "", and merges the drop-ins of the folder into it, unless that is
// "", as a kubelet does: all files that end in .conf, in the order of their paths, the last one wins.
func Load(file, folder string) (Config, error) {
	merged := []byte("{}")
	if file != "" {
		text, err := document.ReadFile(file)
		if err != nil {
			return Config{}, err
		}
		if merged, err = fieldsOf(file, text); err != nil {
			return Config{}, err
		}
	}
	if folder == "" {
		return decode(file, merged)
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
		text, err := document.ReadFile(path)
		if err != nil {
			return err
		}
		patch, err := fieldsOf(path, text)
		if err != nil {
			return err
		}
		if _, err := decode(path, patch); err != nil { // names the file of a bad value
			return err
		}
		merged, err = jsonpatch.MergePatch(merged, patch)
		return err
	})
	if err != nil {
		return Config{}, fmt.Errorf("--config-dir: %w", err)
	}
	if !found {
		return Config{}, fmt.Errorf("--config-dir: %s: has no file that ends in .conf, and a kubelet reads no others", folder)
	}
	return decode(strings.TrimPrefix(file+" and "+folder, " and "), merged)
}

// usedFields are the fields that are read, beside those that begin with shutdownGracePeriod.
func usedFields() []string {
	return []string{"featureGates", "staticPodPath", "containerRuntimeEndpoint", "readOnlyPort"}
}

// fieldsOf returns the fields that are read, as JSON. A misspelled shutdown field is kept as well, so
// that decode refuses it as an unknown field.
func fieldsOf(source string, text []byte) ([]byte, error) {
	docs, err := document.Parse(source, text)
	if err != nil {
		return nil, err
	}
	if len(docs) != 1 {
		return nil, fmt.Errorf("%s: has %d documents, wanted is one KubeletConfiguration, or what /configz of a kubelet answers", source, len(docs))
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(docs[0].JSON, &fields); err != nil {
		return nil, fmt.Errorf("%s: is no mapping of fields, wanted is a KubeletConfiguration, or what kubectl get --raw /api/v1/nodes/NODE/proxy/configz prints", source)
	}
	if answer, ok := fields["kubeletconfig"]; ok && len(fields) == 1 {
		fields = nil
		if err := json.Unmarshal(answer, &fields); err != nil || fields == nil {
			return nil, fmt.Errorf("%s: kubeletconfig: is no mapping of fields, as a kubelet answers", source)
		}
	} else if err := checkKind(fields); err != nil {
		return nil, fmt.Errorf("%s: %w", source, err)
	}
	maps.DeleteFunc(fields, func(name string, _ json.RawMessage) bool {
		return !slices.Contains(usedFields(), name) && !strings.HasPrefix(strings.ToLower(name), "shutdowngraceperiod")
	})
	return json.Marshal(fields)
}

// checkKind returns an error if an object is not a KubeletConfiguration of version v1beta1.
func checkKind(fields map[string]json.RawMessage) error {
	version, kind := text(fields["apiVersion"]), text(fields["kind"])
	if version == kubelet.SchemeGroupVersion.String() && kind == "KubeletConfiguration" {
		return nil
	}
	err := fmt.Errorf("is apiVersion %q, kind %q; wanted is %q, kind %q, as in /var/lib/kubelet/config.yaml, or what kubectl get --raw /api/v1/nodes/NODE/proxy/configz prints",
		version, kind, kubelet.SchemeGroupVersion.String(), "KubeletConfiguration")
	if kind == "ConfigMap" {
		err = errors.New("is a ConfigMap; wanted is the KubeletConfiguration in it, as kubectl get -n kube-system configmap kubelet-config -o jsonpath='{.data.kubelet}' prints it")
	}
	return err
}

// text returns a JSON string, or "" for anything else.
func text(value json.RawMessage) (s string) {
	if json.Unmarshal(value, &s) != nil {
		return ""
	}
	return s
}

// decode decodes the fields of fieldsOf.
func decode(source string, fields []byte) (Config, error) {
	c, err := document.Decode[kubelet.KubeletConfiguration](document.Document{Source: source, JSON: fields})
	if err != nil {
		return Config{}, err
	}
	config := Config{
		Shutdown:     plan.Config{ShutdownGracePeriod: c.ShutdownGracePeriod, ShutdownGracePeriodCriticalPods: c.ShutdownGracePeriodCriticalPods},
		FeatureGates: c.FeatureGates, StaticPodPath: c.StaticPodPath, RuntimeEndpoint: c.ContainerRuntimeEndpoint, ReadOnlyPort: c.ReadOnlyPort,
	}
	for _, bucket := range c.ShutdownGracePeriodByPodPriority {
		config.Shutdown.ShutdownGracePeriodByPodPriority = append(config.Shutdown.ShutdownGracePeriodByPodPriority, plan.PodPriorityGracePeriod(bucket))
	}
	return config, nil
}
