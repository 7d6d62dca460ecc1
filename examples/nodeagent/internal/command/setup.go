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

// setup makes an agent of the command line.
type setup struct {
	flags
	gate     featuregate.MutableVersionedFeatureGate
	view     *view.View
	logger   klog.Logger
	signals  <-chan os.Signal
	seen     time.Time // when the manifests were first read
	warnings []string  // shown once everything has been checked
}

// agent checks all that was given, the cheap things first, and puts the agent
// together. Nothing has been started when it fails.
func (s *setup) agent(ctx context.Context) (*agent.Agent, error) {
	opts, err := s.planned()
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
	opts.Manifests.Load = s.again
	opts.ShutdownAfter, opts.Policy, opts.StateDir = s.shutdownAfter, s.policy, s.stateDir
	opts.Signals, opts.Notify = s.signals, notify
	return s.connect(ctx, opts)
}

// planned reads all that decides on what a shutdown does.
func (s *setup) planned() (agent.Options, error) {
	if err := s.validate(); err != nil {
		return agent.Options{}, err
	}
	cfg, err := s.shutdownConfig()
	if err != nil {
		return agent.Options{}, err
	}
	s.seen = time.Now()
	pods, err := s.pods()
	return agent.Options{Config: cfg, Pods: pods, Limit: s.limit, Gates: s.gate, View: s.view, Logger: s.logger}, err
}

// hostSource is what announces the shutdown of the machine, nil if nothing does. Played
// containers are no reason to hold back a machine, unless that is asked for.
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
		return nil, notWithLogind(s.shutdownAfter)
	}
	return source, nil
}

// introduce says what has been found, before anything happens.
func (s *setup) introduce(listener net.Listener) {
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

// warn keeps what does not hinder the agent.
func (s *setup) warn(text string) { s.warnings = append(s.warnings, text) }

// notify tells systemd, if it has started the agent.
func notify(state string) error {
	if _, err := daemon.SdNotify(false, state); err != nil {
		return fmt.Errorf("failed to tell systemd %q: %w", state, err)
	}
	return nil
}
