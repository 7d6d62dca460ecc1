package command

import (
	"slices"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/klog/v2"

	"github.com/kubegrace/kubegrace/examples/kubegrace-node/internal/agent"
	"github.com/kubegrace/kubegrace/examples/kubegrace-node/internal/embedded"
	"github.com/kubegrace/kubegrace/validation/featuregates"
)

// demo has the flags of kubegrace-node demo.
type demo struct {
	config, manifests, stateDir string
	after, limit                time.Duration
}

// newDemo makes kubegrace-node demo.
func (c commands) newDemo() *cobra.Command {
	var d demo
	command := &cobra.Command{
		Use:   "demo",
		Short: "Plays the shutdown of a node in this terminal, without containers",
		Long: `demo reads the pods of a folder, plays their containers in this process, as
annotations of the manifests say, and drains them. It needs no rights.`,
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error { return c.demo(command, d) },
	}
	fs := command.Flags()
	fs.SortFlags = false
	fs.StringVar(&d.config, "config", "", configUsage)
	fs.StringVar(&d.manifests, "manifests", "", "`folder` of pod manifests (.yaml, .yml, .json, .manifest) to play; required")
	fs.DurationVar(&d.after, "shutdown-after", 2*time.Second, "shut down this `time` after the start")
	fs.DurationVar(&d.limit, "limit", 0, "longest `time` that the host grants; 0 means no limit")
	fs.StringVar(&d.stateDir, "state-dir", "", "`folder` that keeps the report, for kubegrace-node report; empty means that it is not kept")
	return command
}

// demo runs an agent that drains simulated pods once and then ends.
func (c commands) demo(command *cobra.Command, d demo) error {
	if d.after <= 0 {
		return field.Invalid(field.NewPath("--shutdown-after"), d.after.String(), "must be more than 0")
	}
	if d.manifests == "" {
		return field.Required(field.NewPath("--manifests"), "a folder of pod manifests")
	}
	opts := agent.Options{Gates: c.gate}
	var configWarnings []string
	if d.config != "" {
		var err error
		if opts.Config, configWarnings, err = shutdownConfig(d.config, c.gate); err != nil {
			return err
		}
	}
	pods, podWarnings, err := embedded.Load(d.manifests, featuregates.Options(c.gate))
	if err != nil {
		return err
	}
	if opts.Runtime, err = embedded.New(pods); err != nil {
		return err
	}
	if err := makeStateDir(d.stateDir); err != nil {
		return err
	}
	const onlyErrors = -1 // of the log: the view shows the rest
	screen := newScreen(command, onlyErrors)
	defer screen.close()
	klog.SetLogger(screen.logger)
	screen.view.Say("No containers are run: they are played in this process, as annotations in their manifests say.")
	for _, warning := range slices.Concat(configWarnings, podWarnings) {
		screen.view.Say("Warning: " + warning)
	}
	opts.Limit, opts.StateDir, opts.DrainAfter = d.limit, d.stateDir, d.after
	opts.Signals, opts.View, opts.Logger = c.signals(), screen.view, screen.logger
	a, err := agent.New(opts)
	if err != nil {
		return err
	}
	return a.Run(klog.NewContext(command.Context(), screen.logger))
}
