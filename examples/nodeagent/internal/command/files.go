package command

import (
	"fmt"
	"os"
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/kubegrace/kubegrace/examples/internal/config"
	"github.com/kubegrace/kubegrace/examples/nodeagent/internal/apiserver"
	"github.com/kubegrace/kubegrace/examples/nodeagent/internal/cri"
	"github.com/kubegrace/kubegrace/examples/nodeagent/internal/embedded"
	"github.com/kubegrace/kubegrace/examples/nodeagent/internal/manifest"
	"github.com/kubegrace/kubegrace/shutdown/plan"
	"github.com/kubegrace/kubegrace/validation"
	"github.com/kubegrace/kubegrace/validation/featuregates"
)

// shutdownConfig reads and checks the file of --config, and sets the feature gates that it
// has.
func (s *setup) shutdownConfig() (plan.Config, error) {
	if s.config == "" {
		s.warn("no --config is given: without shutdownGracePeriod a kubelet stops no pods in order, and nor does this agent unless it is told to by hand")
		return plan.Config{}, nil
	}
	cfg, err := config.Load(s.config)
	if err != nil {
		return plan.Config{}, fmt.Errorf("--config: %w", err)
	}
	unknown, err := config.SetFeatureGates(s.gate, cfg.FeatureGates)
	if err != nil {
		return plan.Config{}, fmt.Errorf("%s: %w", s.config, err)
	}
	if len(unknown) > 0 {
		s.warn(fmt.Sprintf("%s: featureGates: not known here, and without effect: %v", s.config, unknown))
	}
	if err := validation.ValidateNodeShutdown(cfg.Shutdown, featuregates.Options(s.gate)); err != nil {
		return plan.Config{}, fmt.Errorf("%s: %w; it has %s", s.config, err, config.Describe(cfg.Shutdown))
	}
	return cfg.Shutdown, nil
}

// pods reads the manifests, and checks whether the runtime of --runtime can run them.
func (s *setup) pods() ([]*v1.Pod, error) {
	check := cri.ValidatePod
	if s.runtime == runtimeEmbedded {
		check = embedded.ValidateScripts
	}
	pods, warnings, err := manifest.Load(s.manifests, featuregates.Options(s.gate), check)
	s.warnings = append(s.warnings, warnings...)
	return pods, err
}

// reloadPods reads the manifests again, and shows the warnings that are new.
func (s *setup) reloadPods() ([]*v1.Pod, error) {
	oldWarnings := s.warnings
	s.warnings = nil
	pods, err := s.pods()
	for _, warning := range s.warnings {
		if !slices.Contains(oldWarnings, warning) {
			s.view.Say("Warning: " + warning)
		}
	}
	if err != nil || s.kubeconfig == "" {
		return pods, err
	}
	node, err := s.node()
	if err != nil {
		return nil, err
	}
	return apiserver.StaticPods(pods, node, s.firstRead)
}

// makeStateDir makes the folder of --state-dir if it does not exist.
func (s *setup) makeStateDir() error {
	if s.stateDir == "" {
		return nil
	}
	if err := os.MkdirAll(s.stateDir, 0o755); err != nil {
		return field.Invalid(field.NewPath("--state-dir"), s.stateDir, err.Error())
	}
	return nil
}
