package command

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/term"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/component-base/featuregate"
	"k8s.io/klog/v2"

	"github.com/kubegrace/kubegrace/examples/nodeagent/internal/agent"
	"github.com/kubegrace/kubegrace/examples/nodeagent/internal/api"
	"github.com/kubegrace/kubegrace/examples/nodeagent/internal/embedded"
	"github.com/kubegrace/kubegrace/examples/nodeagent/internal/socket"
	"github.com/kubegrace/kubegrace/examples/nodeagent/internal/view"
	"github.com/kubegrace/kubegrace/shutdown"
)

// The values of -o.
const (
	formatTable = "table"
	formatJSON  = "json"
	formatHTML  = "html"
)

// tools are the commands beside the agent: they look at it, or tell it what to do.
type tools struct {
	signals <-chan os.Signal
	out     io.Writer
	gate    featuregate.MutableVersionedFeatureGate

	socket, stateDir, format string
	formats                  []string // that the command has
}

// addFormat adds -o, with what a command has beside the two forms that all have.
func (t *tools) addFormat(fs *pflag.FlagSet, more ...string) {
	t.formats = append([]string{formatTable, formatJSON}, more...)
	fs.StringVarP(&t.format, "output", "o", formatTable, "`form` of what is shown: "+strings.Join(t.formats, ", "))
}

func (t *tools) addSocket(fs *pflag.FlagSet) {
	fs.StringVar(&t.socket, "socket", socket.Default, "`path` of the socket of the agent")
}

// interruptible runs a command until it ends, or a signal comes.
func (t *tools) interruptible(run func(context.Context, []string) error) func(*cobra.Command, []string) error {
	return func(c *cobra.Command, args []string) error {
		if t.format != "" && !slices.Contains(t.formats, t.format) {
			return field.NotSupported(field.NewPath("--output"), t.format, t.formats)
		}
		ctx, cancel := context.WithCancelCause(c.Context())
		defer cancel(nil)
		ended := make(chan error, 1)
		go func() { ended <- run(ctx, args) }()
		select {
		case err := <-ended:
			return err
		case sig := <-t.signals:
			return fmt.Errorf("%s: interrupted", agent.SignalName(sig))
		}
	}
}

func newPlan(t *tools) *cobra.Command {
	var f flags
	c := &cobra.Command{
		Use:   "plan",
		Short: "Says what a shutdown would do to these pods, and does nothing",
		Long: `plan reads the configuration and the manifests as the agent would, and prints
what it would do when the machine shuts down: when each pod is told to stop at
the latest, what it asks for and what it is granted. No pod is started.`,
		Example: `  nodeagent plan --config /var/lib/kubelet/config.yaml --manifests /etc/kubegrace/pods
  nodeagent plan --config demo/kubelet.yaml --manifests demo/pods --limit 10s -o json`,
		Args: cobra.NoArgs,
	}
	c.Flags().SortFlags = false
	f.addPlanned(c.Flags())
	addGates(t.gate, c.Flags())
	t.addFormat(c.Flags())
	c.RunE = t.interruptible(func(ctx context.Context, _ []string) error { return t.plan(ctx, f) })
	return c
}

// plan asks an agent that is never run.
func (t *tools) plan(ctx context.Context, f flags) error {
	f.source, f.logFormat = sourceManual, logText
	if f.runtime == runtimeCRI {
		f.endpoint = "unix:///not/asked" // a plan needs no container runtime
	}
	s := &setup{flags: f, gate: t.gate, view: view.New(io.Discard, nil), logger: klog.Logger{}}
	opts, err := s.planned()
	if err != nil {
		return err
	}
	if opts.APIServer, opts.Pods, err = s.apiServer(ctx, opts.Pods); err != nil {
		return err
	}
	opts.Runtime = embedded.New()
	defer func() { _ = closeAll(&opts) }() // nothing was made that could fail to go away
	a, err := agent.New(opts)
	if err != nil {
		return err
	}
	plan := api.PlanOf(a.Plan())
	plan.Warnings = append(s.warnings, plan.Warnings...)
	return t.show(plan, func(width int) string { return view.Plan(plan, width) })
}

func newReport(t *tools) *cobra.Command {
	c := &cobra.Command{
		Use:   "report",
		Short: "Says what became of the pods in the last shutdown, or what becomes of them in this one",
		Long: `report shows the shutdown that is under way, if the agent that does it can be asked
on its socket, or else the last one, as it was stored in the state folder: also
after a reboot, and without an agent. -o html is a page with what was planned and
what has happened, one beside the other.`,
		Args: cobra.NoArgs,
	}
	t.addSocket(c.Flags())
	c.Flags().StringVar(&t.stateDir, "state-dir", "/var/lib/nodeagent", "`folder` that keeps the state of a shutdown, as the agent was given it")
	t.addFormat(c.Flags(), formatHTML)
	c.RunE = t.interruptible(func(ctx context.Context, _ []string) error {
		report, err := t.report(ctx)
		if err != nil {
			return err
		}
		if t.format != formatHTML {
			return t.showReport(report)
		}
		if planned, ok := api.StoredPlan(t.stateDir, report.Started); ok {
			return view.Page(t.out, report, &planned)
		}
		return view.Page(t.out, report, nil)
	})
	return c
}

// report asks the agent, and where there is none reads what it has stored.
func (t *tools) report(ctx context.Context) (api.Report, error) {
	var report api.Report
	asked := t.ask(ctx, http.MethodGet, "/report", &report)
	if asked == nil {
		return report, nil
	}
	stored, found, err := shutdown.StoredReport(t.stateDir)
	switch {
	case err != nil:
		return report, fmt.Errorf("--state-dir: %w", err)
	case !found:
		return report, fmt.Errorf("there is no report of a shutdown in %s, and no agent to ask: %w", t.stateDir, asked)
	}
	return api.ReportOf(stored), nil
}

func (t *tools) showReport(report api.Report) error {
	return t.show(report, func(width int) string { return view.Report(report, width) })
}

func newDrain(t *tools) *cobra.Command {
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
		if err := t.ask(ctx, http.MethodPost, "/drain", &report); err != nil {
			return err
		}
		return errors.Join(t.showReport(report), failed(report))
	})
	return c
}

// failed is an error if a pod was not stopped.
func failed(report api.Report) error {
	var errs []error
	for _, p := range report.Pods {
		if p.Error != "" {
			errs = append(errs, fmt.Errorf("pod %s/%s was not stopped: %s", p.Namespace, p.Name, p.Error))
		}
	}
	return errors.Join(errs...)
}

func newStop(t *tools) *cobra.Command {
	var seconds int32
	c := &cobra.Command{
		Use:   "stop [NAMESPACE/]POD",
		Short: "Has the running agent stop one pod, with its hooks and its grace period",
		Long: `stop tells the agent to stop one pod, and waits until it has stopped. It stays stopped
until its manifest changes, or the agent is started again. Ctrl-C ends the
waiting; the pod is stopped all the same.`,
		Args: cobra.ExactArgs(1),
	}
	t.addSocket(c.Flags())
	c.Flags().Int32Var(&seconds, "grace-period", -1, "`seconds` that the pod is given; less than 0 means its own terminationGracePeriodSeconds")
	c.RunE = t.interruptible(func(ctx context.Context, args []string) error {
		query := url.Values{"pod": args}
		if seconds >= 0 {
			query.Set("seconds", strconv.Itoa(int(seconds)))
		}
		var pod api.Pod
		if err := t.ask(ctx, http.MethodPost, "/stop?"+query.Encode(), &pod); err != nil {
			return err
		}
		_, err := fmt.Fprintf(t.out, "%s/%s %s\n", pod.Namespace, pod.Name, pod.Doing)
		return err
	})
	return c
}

// ask has the agent answer a request on its socket.
func (t *tools) ask(ctx context.Context, method, path string, answer any) (err error) {
	request, err := http.NewRequestWithContext(ctx, method, "http://nodeagent"+path, nil)
	if err != nil {
		return err
	}
	response, err := socket.Client(t.socket).Do(request)
	if err != nil {
		var failed *url.Error
		if errors.As(err, &failed) {
			err = failed.Err
		}
		if errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) { // it was reached
			return fmt.Errorf("the agent on %s has ended, or closed the connection, before it answered: %w", t.socket, err)
		}
		return fmt.Errorf("no agent answers on %s (see its --socket): %w", t.socket, err)
	}
	defer func() { err = errors.Join(err, response.Body.Close()) }()
	if response.StatusCode != http.StatusOK {
		var refused api.Error
		if err := json.NewDecoder(response.Body).Decode(&refused); err != nil {
			return fmt.Errorf("the agent has answered %s: %w", response.Status, err)
		}
		return errors.New(refused.Message)
	}
	return json.NewDecoder(response.Body).Decode(answer)
}

// show prints a value as JSON, or the table of it.
func (t *tools) show(value any, table func(width int) string) error {
	if t.format == formatJSON {
		encoder := json.NewEncoder(t.out)
		encoder.SetIndent("", "  ")
		return encoder.Encode(value)
	}
	width := 0
	if terminal := terminalOf(t.out); terminal != nil {
		if columns, _, err := term.GetSize(int(terminal.Fd())); err == nil {
			width = columns
		}
	}
	_, err := io.WriteString(t.out, table(width))
	return err
}
