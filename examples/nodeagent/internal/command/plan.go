package command

import (
	"context"
	"io"

	"github.com/spf13/cobra"
	"k8s.io/klog/v2"

	"github.com/kubegrace/kubegrace/examples/nodeagent/internal/agent"
	"github.com/kubegrace/kubegrace/examples/nodeagent/internal/api"
	"github.com/kubegrace/kubegrace/examples/nodeagent/internal/embedded"
	"github.com/kubegrace/kubegrace/examples/nodeagent/internal/view"
)

func newPlan(t *tool) *cobra.Command {
	var f flags
	c := &cobra.Command{
		Use:   "plan",
		Short: "Says what a shutdown would do to these pods, and does nothing",
		Long: `plan reads the configuration and the manifests as the agent would, and prints
what it would do when the machine shuts down: when each pod is told to stop at
the latest, what it asks for and what it is granted. No pod is started.`,
		Example: `  nodeagent plan --config /var/lib/kubelet/config.yaml --manifests /etc/kubegrace/pods
  nodeagent plan --config nodeagent/demo/kubelet.yaml --manifests nodeagent/demo/pods --limit 10s -o json`,
		Args: cobra.NoArgs,
	}
	c.Flags().SortFlags = false
	f.addPlanFlags(c.Flags())
	addGates(t.gate, c.Flags())
	t.addFormat(c.Flags())
	c.RunE = t.interruptible(func(ctx context.Context, _ []string) error { return t.plan(ctx, f) })
	return c
}

// plan prints the plan of an agent that is not run. It reads the same files as an agent.
func (t *tool) plan(ctx context.Context, f flags) error {
	f.source, f.logFormat = sourceManual, logText
	if f.runtime == runtimeCRI {
		f.endpoint = "unix:///unused" // passes validation; a plan connects to no runtime
	}
	s := &setup{flags: f, gate: t.gate, view: view.New(io.Discard, nil), logger: klog.Logger{}}
	opts, err := s.planOptions()
	if err != nil {
		return err
	}
	if opts.APIServer, opts.Pods, err = s.apiServer(ctx, opts.Pods); err != nil {
		return err
	}
	opts.Runtime = embedded.New()
	defer func() { _ = closeAll(&opts) }() // an embedded runtime closes without an error
	a, err := agent.New(opts)
	if err != nil {
		return err
	}
	plan := api.PlanOf(a.Plan())
	plan.Warnings = append(s.warnings, plan.Warnings...)
	return t.show(plan, func(width int) string { return view.Plan(plan, width) })
}
