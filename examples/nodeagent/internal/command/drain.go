package command

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/spf13/cobra"

	"github.com/kubegrace/kubegrace/examples/nodeagent/internal/api"
)

func newDrain(t *tool) *cobra.Command {
	c := &cobra.Command{
		Use:   "drain",
		Short: "Has the running agent stop all pods, as for a shutdown of the machine",
		Long: `drain tells the agent to stop its pods in order, waits until they have stopped, and
shows what became of them. The agent starts no pod until it is started again
itself. Ctrl-C ends the waiting; the pods are stopped all the same.`,
		Args: cobra.NoArgs,
	}
	t.addSocket(c.Flags())
	t.addFormat(c.Flags())
	c.RunE = t.interruptible(func(ctx context.Context, _ []string) error {
		var report api.Report
		if err := t.request(ctx, http.MethodPost, "/drain", &report); err != nil {
			return err
		}
		return errors.Join(t.showReport(report), notStoppedError(report))
	})
	return c
}

// notStoppedError returns an error that names the pods that were not stopped, or nil if
// there are none.
func notStoppedError(report api.Report) error {
	var errs []error
	for _, p := range report.Pods {
		if p.Error != "" {
			errs = append(errs, fmt.Errorf("pod %s/%s was not stopped: %s", p.Namespace, p.Name, p.Error))
		}
	}
	return errors.Join(errs...)
}
