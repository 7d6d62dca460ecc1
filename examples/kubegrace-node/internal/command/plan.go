package command

import (
	"context"
	"net/http"
	"slices"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/kubegrace/kubegrace/examples/kubegrace-node/internal/api"
	"github.com/kubegrace/kubegrace/examples/kubegrace-node/internal/inspect"
	"github.com/kubegrace/kubegrace/examples/kubegrace-node/internal/view"
)

func (c commands) newPlan() *cobra.Command {
	t := &tool{commands: c}
	command := inspect.NewPlan(c.streams, func(command *cobra.Command, format string) error {
		if formats := []string{formatTable, formatJSON}; !slices.Contains(formats, format) {
			return field.NotSupported(field.NewPath("--output"), format, formats) // without a FILE
		}
		t.format = format
		return t.plan(command.Context())
	})
	t.addSocket(command.Flags())
	run := command.RunE
	command.RunE = func(command *cobra.Command, args []string) error {
		return t.interruptible(func(ctx context.Context) error {
			command.SetContext(ctx)
			return run(command, args)
		})(command, args)
	}
	return command
}

// plan shows the plan of the running agent.
func (t *tool) plan(ctx context.Context) error {
	var planned api.Plan
	if err := t.request(ctx, http.MethodGet, "/plan", &planned); err != nil {
		return err
	}
	if err := t.show(planned, func(width int) string { return view.Plan(planned, width) }); err != nil {
		return err
	}
	for _, bucket := range planned.Buckets {
		for _, pod := range bucket.Pods {
			if pod.CutShort {
				return inspect.ErrCutShort
			}
		}
	}
	return nil
}
