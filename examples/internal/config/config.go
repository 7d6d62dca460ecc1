package config

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
	kubeletconfig "k8s.io/kubelet/config/v1beta1"

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
}

// Load reads a file with one KubeletConfiguration, as YAML or JSON. Errors name the file.
func Load(file string) (Config, error) {
	docs, err := document.Read(file)
	if err != nil {
		return Config{}, err
	}
	if len(docs) != 1 {
		return Config{}, fmt.Errorf("%s: has %d documents, wanted is one KubeletConfiguration", file, len(docs))
	}
	doc, err := usedFields(docs[0])
	if err != nil {
		return Config{}, err
	}
	kubelet, err := document.Decode[kubeletconfig.KubeletConfiguration](doc)
	if err != nil {
		return Config{}, err
	}
	if err := checkKind(kubelet); err != nil {
		return Config{}, fmt.Errorf("%s: %w", doc.Source, err)
	}
	return Config{Shutdown: shutdownConfig(kubelet), FeatureGates: kubelet.FeatureGates}, nil
}

// Describe returns the shutdown fields that are set, as JSON for an error message.
func Describe(c plan.Config) string {
	text, err := json.Marshal(c)
	if err != nil {
		return fmt.Sprintf("%+v", c)
	}
	return string(text)
}

// usedFields returns the document with only the fields that Load reads. A misspelled
// shutdown field is kept as well, so that the decoder refuses it as an unknown field.
func usedFields(doc document.Document) (document.Document, error) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(doc.JSON, &fields); err != nil {
		return doc, fmt.Errorf("%s: wanted is a KubeletConfiguration, a mapping of fields: %w", doc.Source, err)
	}
	maps.DeleteFunc(fields, func(name string, _ json.RawMessage) bool {
		return !slices.Contains([]string{"apiVersion", "kind", "featureGates"}, name) &&
			!strings.HasPrefix(strings.ToLower(name), "shutdowngraceperiod")
	})
	text, err := json.Marshal(fields)
	if err != nil {
		return doc, fmt.Errorf("%s: failed to select fields: %w", doc.Source, err)
	}
	return document.Document{Source: doc.Source, JSON: text}, nil
}

// checkKind returns an error if an object is not a KubeletConfiguration of version v1beta1.
func checkKind(kubelet *kubeletconfig.KubeletConfiguration) error {
	version := kubeletconfig.SchemeGroupVersion.String()
	if kubelet.APIVersion != version {
		return field.NotSupported(field.NewPath("apiVersion"), kubelet.APIVersion, []string{version})
	}
	if kubelet.Kind != "KubeletConfiguration" {
		return field.NotSupported(field.NewPath("kind"), kubelet.Kind, []string{"KubeletConfiguration"})
	}
	return nil
}

// shutdownConfig converts the three shutdown fields to the library's type.
func shutdownConfig(kubelet *kubeletconfig.KubeletConfiguration) plan.Config {
	c := plan.Config{
		ShutdownGracePeriod:             kubelet.ShutdownGracePeriod,
		ShutdownGracePeriodCriticalPods: kubelet.ShutdownGracePeriodCriticalPods,
	}
	for _, bucket := range kubelet.ShutdownGracePeriodByPodPriority {
		c.ShutdownGracePeriodByPodPriority = append(c.ShutdownGracePeriodByPodPriority, plan.PodPriorityGracePeriod(bucket))
	}
	return c
}
