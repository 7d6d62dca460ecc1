package command

import (
	"context"
	"fmt"
	"net"
	"os"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"
	"k8s.io/component-base/featuregate"
	"k8s.io/klog/v2"

	"github.com/kubegrace/kubegrace/examples/nodeagent/internal/agent"
	"github.com/kubegrace/kubegrace/examples/nodeagent/internal/manifest"
	"github.com/kubegrace/kubegrace/examples/nodeagent/internal/view"
	"github.com/kubegrace/kubegrace/shutdown"
	"github.com/kubegrace/kubegrace/shutdown/logind"
)

// setup makes an agent from the flags.
type setup struct {
	flags
	gate      featuregate.MutableVersionedFeatureGate
	view      *view.View
	logger    klog.Logger
	signals   <-chan os.Signal
	firstRead time.Time // when the manifests were first read, for kubernetes.io/config.seen
	warnings  []string  // shown when the agent is made
}

// agent makes the agent. It first checks what takes no time, and connects to other programs
// last.
func (s *setup) agent(ctx context.Context) (*agent.Agent, error) {
	opts, err := s.planOptions()
	if err != nil {
		return nil, err
	}
	if opts.Source, err = s.hostSource(ctx); err != nil {
		return nil, err
	}
	if err := s.makeStateDir(); err != nil {
		return nil, err
	}
	if opts.Manifests.Changed, err = manifest.Watch(klog.NewContext(ctx, s.logger), s.manifests); err != nil {
		return nil, err
	}
	opts.Manifests.Load = s.reloadPods
	opts.ShutdownAfter, opts.Policy, opts.StateDir = s.shutdownAfter, s.policy, s.stateDir
	opts.Signals, opts.Notify = s.signals, notify
	return s.connect(ctx, opts)
}

// planOptions returns the options that the plan of a shutdown depends on.
func (s *setup) planOptions() (agent.Options, error) {
	if err := s.validate(); err != nil {
		return agent.Options{}, err
	}
	cfg, err := s.shutdownConfig()
	if err != nil {
		return agent.Options{}, err
	}
	s.firstRead = time.Now()
	pods, err := s.pods()
	return agent.Options{Config: cfg, Pods: pods, Limit: s.limit, Gates: s.gate, View: s.view, Logger: s.logger}, err
}

// hostSource returns the source of --source, or nil if signals start the shutdown. With
// --source=auto that is so for the embedded runtime: a machine must not wait for
// containers that do not exist.
func (s *setup) hostSource(ctx context.Context) (shutdown.Source, error) {
	if s.source == sourceManual || s.source == sourceAuto && s.runtime == runtimeEmbedded {
		return nil, nil
	}
	source, err := logind.New(logind.Options{HostRoot: s.hostRoot})
	if err == nil {
		err = source.Available(ctx)
	}
	switch {
	case err != nil && s.source == sourceLogind:
		return nil, fmt.Errorf("--source=logind: %w", err)
	case err != nil:
		s.logger.V(1).Info("There is no logind, signals start the shutdown", "reason", err)
		return nil, nil
	case s.shutdownAfter > 0:
		return nil, shutdownAfterWithLogind(s.shutdownAfter)
	}
	return source, nil
}

// announceStart shows the runtime, the address of --listen and all warnings, before pods
// are started.
func (s *setup) announceStart(listener net.Listener) {
	if s.runtime == runtimeEmbedded {
		s.view.Say("No containers are run: they are played in this process, as annotations in their manifests say.")
	}
	if listener != nil {
		s.view.Say(fmt.Sprintf("Metrics are on http://%s/metrics, health on /healthz, and /pods, /plan and /report.", listener.Addr()))
	}
	for _, warning := range s.warnings {
		s.view.Say("Warning: " + warning)
	}
}

// warn records a warning, which announceStart shows.
func (s *setup) warn(text string) { s.warnings = append(s.warnings, text) }

// notify sends a state to systemd, if systemd has started the agent (sd_notify(3)).
func notify(state string) error {
	if _, err := daemon.SdNotify(false, state); err != nil {
		return fmt.Errorf("failed to tell systemd %q: %w", state, err)
	}
	return nil
}
