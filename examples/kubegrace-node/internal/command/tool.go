package command

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/sys/unix"
	"golang.org/x/term"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/kubegrace/kubegrace/examples/kubegrace-node/internal/api"
	"github.com/kubegrace/kubegrace/examples/kubegrace-node/internal/socket"
)

// The values of -o.
const (
	formatTable = "table"
	formatJSON  = "json"
	formatHTML  = "html"
)

// tool is a command that does not run an agent: plan, report, drain or undrain.
type tool struct {
	commands
	socket, format string
	formats        []string // the allowed values of -o
}

// addFormat adds -o. Every tool has the formats table and json; more are further ones.
func (t *tool) addFormat(fs *pflag.FlagSet, more ...string) {
	t.formats = append([]string{formatTable, formatJSON}, more...)
	fs.StringVarP(&t.format, "output", "o", formatTable, "`form` of what is shown: "+strings.Join(t.formats, ", "))
}

func (t *tool) addSocket(fs *pflag.FlagSet) {
	fs.StringVar(&t.socket, "socket", socket.Default, "`path` of the socket of the agent")
}

// interruptible returns a function for RunE that ends when run has ended or a signal
// arrives. It does not wait for run after a signal: the program is about to end.
func (t *tool) interruptible(run func(context.Context) error) func(*cobra.Command, []string) error {
	return func(c *cobra.Command, _ []string) error {
		if t.format != "" && !slices.Contains(t.formats, t.format) {
			return field.NotSupported(field.NewPath("--output"), t.format, t.formats)
		}
		ctx, cancel := context.WithCancelCause(c.Context())
		defer cancel(nil)
		result := make(chan error, 1)
		go func() { result <- run(ctx) }()
		select {
		case err := <-result:
			return err
		case sig := <-t.signals:
			return fmt.Errorf("%s: interrupted", unix.SignalName(sig.(syscall.Signal)))
		}
	}
}

// request sends a request to the agent on its socket, and decodes the answer.
func (t *tool) request(ctx context.Context, method, resource string, answer any) error {
	return api.Request(ctx, t.socket, method, resource, answer)
}

// show prints a value as JSON or as a table, as -o says. The table fits the terminal that
// it is printed on.
func (t *tool) show(value any, table func(width int) string) error {
	if t.format == formatJSON {
		encoder := json.NewEncoder(t.out)
		encoder.SetIndent("", "  ")
		return encoder.Encode(value)
	}
	width := 0
	if file, ok := t.out.(*os.File); ok {
		width, _, _ = term.GetSize(int(file.Fd())) // 0 unless it is a terminal
	}
	_, err := io.WriteString(t.out, table(width))
	return err
}
