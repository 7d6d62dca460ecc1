package config

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kubeletconfig "k8s.io/kubelet/config/v1beta1"
	kjson "sigs.k8s.io/json"

	"github.com/kubegrace/kubegrace/examples/internal/document"
	"github.com/kubegrace/kubegrace/shutdown/plan"
)

// Config is the part of a KubeletConfiguration that the examples use. The zero value is
// the kubelet's default: no graceful shutdown.
type Config struct {
	// Shutdown has the three shutdown fields of the file.
	Shutdown plan.Config
	// FeatureGates are all gates that the file sets, including gates of other components.
	FeatureGates map[string]bool
	// StaticPodPath is the folder or the file of the static pods; "": there is none.
	StaticPodPath string
	// ReadOnlyPort is the port at which the kubelet lists its pods without authentication; 0: none.
	ReadOnlyPort int32
}

// Load reads a file with one KubeletConfiguration, as YAML or JSON. Errors name the file.
func Load(file string) (Config, error) {
	text, err := document.ReadFile(file)
	if err != nil {
		return Config{}, err
	}
	doc, err := Only(file, text)
	if err != nil {
		return Config{}, err
	}
	if err := CheckKind(doc); err != nil {
		return Config{}, err
	}
	return Decode(doc)
}

// Only returns the document of a text that has one.
func Only(source string, text []byte) (document.Document, error) {
	docs, err := document.Parse(source, text)
	if err == nil && len(docs) != 1 {
		err = fmt.Errorf("%s: has %d documents, wanted is one KubeletConfiguration", source, len(docs))
	}
	if err != nil {
		return document.Document{}, err
	}
	return docs[0], nil
}

// CheckKind returns an error if a document is not a KubeletConfiguration of version v1beta1.
func CheckKind(doc document.Document) error {
	var object metav1.TypeMeta
	if err := kjson.UnmarshalCaseSensitivePreserveInts(doc.JSON, &object); err != nil {
		return fmt.Errorf("%s: wanted is a KubeletConfiguration, a mapping of fields: %w", doc.Source, err)
	}
	wanted := metav1.TypeMeta{APIVersion: kubeletconfig.SchemeGroupVersion.String(), Kind: "KubeletConfiguration"}
	switch {
	case object == wanted:
		return nil
	case object.Kind == "ConfigMap":
		return fmt.Errorf("%s: is a ConfigMap; wanted is the KubeletConfiguration in it, as kubectl get -n kube-system configmap kubelet-config -o jsonpath='{.data.kubelet}' prints it", doc.Source)
	default:
		return fmt.Errorf("%s: is apiVersion %q, kind %q; wanted is %q, kind %q, as in /var/lib/kubelet/config.yaml", doc.Source, object.APIVersion, object.Kind, wanted.APIVersion, wanted.Kind)
	}
}

// Decode decodes the fields that a Config has, and ignores all others. A misspelled shutdown field is an
// error, because ignoring it would switch the graceful node shutdown off silently.
func Decode(doc document.Document) (Config, error) {
	used := []string{"featureGates", "staticPodPath", "readOnlyPort"}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(doc.JSON, &fields); err != nil {
		return Config{}, fmt.Errorf("%s: wanted is a KubeletConfiguration, a mapping of fields: %w", doc.Source, err)
	}
	maps.DeleteFunc(fields, func(name string, _ json.RawMessage) bool {
		return !slices.Contains(used, name) && !strings.HasPrefix(strings.ToLower(name), "shutdowngraceperiod")
	})
	text, err := json.Marshal(fields)
	if err != nil {
		return Config{}, fmt.Errorf("%s: failed to select fields: %w", doc.Source, err)
	}
	kubelet, err := document.Decode[kubeletconfig.KubeletConfiguration](document.Document{Source: doc.Source, JSON: text})
	if err != nil {
		return Config{}, err
	}
	c := Config{
		Shutdown:     plan.Config{ShutdownGracePeriod: kubelet.ShutdownGracePeriod, ShutdownGracePeriodCriticalPods: kubelet.ShutdownGracePeriodCriticalPods},
		FeatureGates: kubelet.FeatureGates, StaticPodPath: kubelet.StaticPodPath, ReadOnlyPort: kubelet.ReadOnlyPort,
	}
	for _, bucket := range kubelet.ShutdownGracePeriodByPodPriority {
		c.Shutdown.ShutdownGracePeriodByPodPriority = append(c.Shutdown.ShutdownGracePeriodByPodPriority, plan.PodPriorityGracePeriod(bucket))
	}
	return c, nil
}

// Describe returns the shutdown fields that are set, as JSON for an error message.
func Describe(c plan.Config) string {
	text, err := json.Marshal(c)
	if err != nil {
		return fmt.Sprintf("%+v", c)
	}
	return string(text)
}
