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

// Config is the part of a KubeletConfiguration that the agent obeys. The zero
// value is the kubelet's default: no graceful shutdown.
type Config struct {
	Shutdown plan.Config
	// FeatureGates are those of the file, of other components too.
	FeatureGates map[string]bool
}

// Load reads a KubeletConfiguration, YAML or JSON.
func Load(file string) (Config, error) {
	docs, err := document.Read(file)
	if err != nil {
		return Config{}, err
	}
	if len(docs) != 1 {
		return Config{}, fmt.Errorf("%s: has %d documents, wanted is one KubeletConfiguration", file, len(docs))
	}
	doc, err := obeyed(docs[0])
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
	return Config{Shutdown: shutdownOf(kubelet), FeatureGates: kubelet.FeatureGates}, nil
}

// Describe gives the shutdown fields that are set, for the end of a complaint
// about them.
func Describe(c plan.Config) string {
	text, err := json.Marshal(c)
	if err != nil {
		return fmt.Sprintf("%+v", c)
	}
	return string(text)
}

// obeyed is the document without the fields that are let pass. One that only
// looks like a shutdown field stays, and is refused as unknown.
func obeyed(doc document.Document) (document.Document, error) {
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

// checkKind refuses what is something else than a kubelet's configuration.
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

// shutdownOf carries the three fields over to the library's own type.
func shutdownOf(kubelet *kubeletconfig.KubeletConfiguration) plan.Config {
	c := plan.Config{
		ShutdownGracePeriod:             kubelet.ShutdownGracePeriod,
		ShutdownGracePeriodCriticalPods: kubelet.ShutdownGracePeriodCriticalPods,
	}
	for _, bucket := range kubelet.ShutdownGracePeriodByPodPriority {
		c.ShutdownGracePeriodByPodPriority = append(c.ShutdownGracePeriodByPodPriority, plan.PodPriorityGracePeriod(bucket))
	}
	return c
}
