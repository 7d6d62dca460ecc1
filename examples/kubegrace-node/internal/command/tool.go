package command

import (
	"context"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/kubegrace/kubegrace/examples/kubegrace-node/internal/api"
	"github.com/kubegrace/kubegrace/examples/kubegrace-node/internal/output"
	"github.com/kubegrace/kubegrace/examples/kubegrace-node/internal/socket"
)

// tool is a command that asks a running agent: plan, report, drain or undrain.
type tool struct {
	socket, format string
	formats        []string // the allowed values of -o
}

// addFormat adds the flag -o with these values.
func (t *tool) addFormat(fs *pflag.FlagSet, formats ...string) {
	t.formats = formats
	fs.StringVarP(&t.format, "output", "o", output.Table, "`form` of what is shown: "+strings.Join(formats, ", "))
}

// addSocket adds the flag --socket.
func (t *tool) addSocket(fs *pflag.FlagSet) {
	fs.StringVar(&t.socket, "socket", socket.Default, "`path` of the socket of the agent")
}

// checkFormat returns an error if the value of -o is not allowed.
func (t *tool) checkFormat() error {
	if !slices.Contains(t.formats, t.format) {
		return field.NotSupported(field.NewPath("--output"), t.format, t.formats)
	}
	return nil
}

// request sends a request to the agent on its socket, and decodes the answer.
func (t *tool) request(ctx context.Context, method, resource string, answer any) error {
	return api.Request(ctx, t.socket, method, resource, answer)
}
