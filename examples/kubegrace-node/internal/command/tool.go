package command

import (
	"context"
	"net/http"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/kubegrace/kubegrace/examples/kubegrace-node/internal/api"
	"github.com/kubegrace/kubegrace/examples/kubegrace-node/internal/inspect"
	"github.com/kubegrace/kubegrace/examples/kubegrace-node/internal/nodeplan"
	"github.com/kubegrace/kubegrace/examples/kubegrace-node/internal/socket"
)

// tool is a command that asks a running agent: plan, report, drain or undrain.
type tool struct{ socket, format string }

// addFormat adds the flag -o with these values.
func (t *tool) addFormat(fs *pflag.FlagSet, formats ...string) {
	inspect.OneOf(fs, &t.format, "output", "o", "`form` of what is shown", formats...)
}

// addSocket adds the flag --socket.
func (t *tool) addSocket(fs *pflag.FlagSet) {
	fs.StringVar(&t.socket, "socket", socket.Default, "`path` of the socket of the agent")
}

// request sends a request to the agent on its socket, and decodes the answer.
func (t *tool) request(ctx context.Context, method, resource string, answer any) error {
	return api.Request(ctx, t.socket, method, resource, answer)
}

// newPlan makes kubegrace-node plan (package inspect), which asks the running agent for its plan if it has no
// argument.
func newPlan() *cobra.Command {
	t := &tool{}
	command := inspect.NewPlan(func(ctx context.Context) (planned nodeplan.Document, err error) {
		err = t.request(ctx, http.MethodGet, "/plan", &planned)
		return planned, err
	})
	t.addSocket(command.Flags())
	return command
}
