package command

import (
	"context"
	"io"
	"net/http"
	"slices"

	"github.com/spf13/cobra"
	"k8s.io/klog/v2"

	"github.com/kubegrace/kubegrace/examples/nodeagent/internal/agent"
	"github.com/kubegrace/kubegrace/examples/nodeagent/internal/api"
	"github.com/kubegrace/kubegrace/examples/nodeagent/internal/view"
)

func (c commands) newPlan() *cobra.Command {
	t, f := &tool{commands: c}, &flags{source: sourceNone}
	var manifests string
	command := &cobra.Command{
		Use:   "plan",
		Short: "Says what a shutdown would do to the pods, and does nothing",
		Long: `plan asks the running agent what it would do if the machine shut down now: when each
pod is told to stop at the latest, what it asks for and what it is granted.

With --config it asks no agent: it plans for the pods that the container runtime has,
or for those of a folder with --manifests.`,
		Example: `  nodeagent plan
  nodeagent plan --config /etc/nodeagent/config.yaml
  nodeagent plan --config nodeagent/demo/kubelet.yaml --manifests nodeagent/demo/pods --limit 10s -o json`,
		Args: cobra.NoArgs,
	}
	command.Flags().SortFlags = false
	t.addSocket(command.Flags())
	f.addPods(command.Flags())
	command.Flags().StringVar(&manifests, "manifests", "", "`folder` of pod manifests to plan for, in place of the pods that run")
	c.addGates(command.Flags())
	t.addFormat(command.Flags())
	command.RunE = t.interruptible(func(ctx context.Context) error {
		planned, err := t.plan(ctx, f, manifests)
		if err != nil {
			return err
		}
		return t.show(planned, func(width int) string { return view.Plan(planned, width) })
	})
	return command
}

// plan returns the plan of the running agent, or of one that is not run.
func (t *tool) plan(ctx context.Context, f *flags, manifests string) (planned api.Plan, err error) {
	if f.config == "" && manifests == "" {
		err := t.request(ctx, http.MethodGet, "/plan", &planned)
		return planned, err
	}
	var opts agent.Options
	var warnings []string
	if manifests != "" {
		opts, warnings, err = t.played(f.config, manifests)
	} else if opts, warnings, err = t.agentOptions(f); err == nil {
		err = t.connect(ctx, f, &opts)
	}
	if err != nil {
		return planned, err
	}
	opts.Limit, opts.View, opts.Logger = f.limit, view.New(io.Discard), klog.Logger{}
	defer func() { _ = opts.Runtime.Close() }() // nothing was changed
	a, err := agent.New(opts)
	if err != nil {
		return planned, err
	}
	if _, err := opts.Runtime.Pods(ctx); err != nil {
		return planned, err
	}
	planned = api.PlanOf(a.Plan())
	planned.Warnings = slices.Concat(warnings, planned.Warnings)
	return planned, nil
}
