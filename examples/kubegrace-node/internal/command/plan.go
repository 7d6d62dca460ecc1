package command

import (
	"context"
	"net/http"

	"github.com/spf13/cobra"

	"github.com/kubegrace/kubegrace/examples/kubegrace-node/internal/inspect"
	"github.com/kubegrace/kubegrace/examples/kubegrace-node/internal/nodeplan"
)

// newPlan makes kubegrace-node plan, which is in package inspect. The function that it passes requests the
// plan of the running agent.
func newPlan() *cobra.Command {
	t := &tool{}
	command := inspect.NewPlan(func(ctx context.Context) (planned nodeplan.Document, err error) {
		err = t.request(ctx, http.MethodGet, "/plan", &planned)
		return planned, err
	})
	t.addSocket(command.Flags())
	return command
}
