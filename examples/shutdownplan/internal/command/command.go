package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kubegrace/kubegrace/examples/shutdownplan/internal/nodeplan"
	"github.com/kubegrace/kubegrace/examples/shutdownplan/internal/output"
	"github.com/kubegrace/kubegrace/examples/shutdownplan/internal/podlist"
)

// ExitStatus is returned after all has been written: the program exits with it, and says no more.
type ExitStatus int

// ErrCutShort is returned after the plan was written if a pod would be cut short.
const ErrCutShort = ExitStatus(2)

// Error says that it is an exit status.
func (s ExitStatus) Error() string { return fmt.Sprintf("exit status %d", int(s)) }

// maxFullNodes is the largest number of nodes that are all shown in full without --all.
const maxFullNodes = 3

const long = `Shows what the shutdown of a node would do to its pods: when each is told to
stop, how long it has, which are cut short and why, and what to change.

The pods come from files as kubectl gives them (-o json or -o yaml), from
folders of manifests, or from standard input. The times come from the
configuration of the kubelet, and from how long the host waits.

The exit status is 2 if a pod would be cut short, and 1 if something is wrong.`

const example = `  kubectl get pods -A -o json | shutdownplan --shutdown-grace-period 60s \
    --shutdown-grace-period-critical-pods 20s
  shutdownplan --config /var/lib/kubelet/config.yaml --limit logind \
    /etc/kubernetes/manifests
  shutdownplan --config kubelet.yaml --limit 30s -o html pods.json > plan.html`

// Streams are the standard streams of the command, and its environment.
type Streams struct {
	In       io.Reader
	Out, Err io.Writer
	Getenv   func(string) string
	// Root is the folder with the files of this machine; "" means /.
	Root string
}

// New makes the command. It panics if a flag is named that does not exist, which every test would
// show.
func New(streams Streams) *cobra.Command {
	var f flags
	c := &cobra.Command{
		Use:           "shutdownplan [flags] [FILE | FOLDER | -]...",
		Short:         "Shows what the shutdown of a node would do to its pods",
		Long:          long,
		Example:       example,
		Version:       version(),
		Args:          cobra.ArbitraryArgs,
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE: func(c *cobra.Command, args []string) error {
			return run(c.Context(), streams, &f, args)
		},
	}
	c.SetIn(streams.In)
	c.SetOut(streams.Out)
	c.SetErr(streams.Err)
	c.Flags().SortFlags = false
	f.add(c.Flags())
	node := newNode(streams)
	c.AddCommand(node)
	if err := errors.Join(addCompletion(c), addCompletion(node)); err != nil {
		panic(err)
	}
	c.InitDefaultCompletionCmd()
	for _, command := range c.Commands() {
		if command.Name() == "completion" { // without this it prints its help, and the status is 0
			command.Args = cobra.ArbitraryArgs
			command.RunE = func(*cobra.Command, []string) error {
				return errors.New("completion: wanted is one of bash, zsh, fish, powershell")
			}
		}
	}
	c.SetUsageTemplate(strings.ReplaceAll(c.UsageTemplate(), ".FlagUsages", fmt.Sprintf(".FlagUsagesWrapped %d", defaultWidth)))
	return c
}

// version returns what the go command has stored about the source of the program.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "not known"
	}
	parts := []string{cmp.Or(info.Main.Version, "(devel)"), info.GoVersion}
	for _, setting := range info.Settings {
		if setting.Key == "vcs.revision" || setting.Key == "GOARCH" {
			parts = append(parts, setting.Value)
		}
	}
	return strings.Join(parts, ", ")
}

func run(ctx context.Context, streams Streams, f *flags, args []string) error {
	if len(args) == 0 {
		if isTerminal(streams.In) {
			return errors.New("nothing to read: give a file, a folder or a pipe, as in\n  kubectl get pods -A -o json | shutdownplan --shutdown-grace-period 60s\n--help says more")
		}
		args = []string{"-"}
	}
	w, err := output.New(f.output, streams.Out, screenOf(streams))
	if err != nil {
		return fmt.Errorf("--output: %w", err)
	}
	cluster := podlist.New()
	cluster.SetPoolLabel(f.poolLabel)
	settings, err := f.settings(ctx, streams.Root, cluster.PriorityOf)
	if err != nil {
		return err
	}
	if err := readInputs(streams, cluster, args); err != nil {
		return err
	}
	cluster.Merge()
	if err := checkPods(cluster, args); err != nil {
		return err
	}
	writeLeftOut(streams.Err, cluster)
	if f.config == "" && f.configDir == "" && f.total == 0 && f.critical == 0 {
		fmt.Fprintln(streams.Err, "shutdownplan: no configuration is given (--config, --shutdown-grace-period): this is the plan of a kubelet's defaults")
	}
	return writePlan(w, settings, f, cluster.Nodes())
}

// checkPods returns an error if the input has no pods. An empty list is no error.
func checkPods(cluster *podlist.Cluster, args []string) error {
	source := strings.Join(args, ", ")
	if source == "-" {
		source = standardInput
	}
	switch {
	case cluster.Pods > 0 || cluster.Ended > 0 || cluster.Unscheduled > 0:
		return nil
	case len(cluster.Others) > 0:
		return fmt.Errorf("%s: no pods, but %s", source, kindCounts(cluster.Others))
	case cluster.Beside > 0:
		return fmt.Errorf("%s: no pods, but %d nodes or priority classes: kubectl get nodes,pods -A -o json has both", source, cluster.Beside)
	case cluster.Objects == 0:
		return fmt.Errorf("%s: is empty, wanted are pods as kubectl get pods -o json gives them", source)
	}
	return nil
}

// writeLeftOut writes how many objects of the input are left out of the plan.
func writeLeftOut(w io.Writer, cluster *podlist.Cluster) {
	if cluster.Ended > 0 {
		fmt.Fprintf(w, "shutdownplan: left out are pods that have ended: %d\n", cluster.Ended)
	}
	if cluster.Unscheduled > 0 {
		fmt.Fprintf(w, "shutdownplan: left out are pods that no node has: %d\n", cluster.Unscheduled)
	}
	if cluster.Repeated > 0 {
		fmt.Fprintf(w, "shutdownplan: given more than once, and counted once, are pods: %d\n", cluster.Repeated)
	}
	if cluster.Mirrors > 0 {
		fmt.Fprintf(w, "shutdownplan: counted as their static pods are mirror pods: %d\n", cluster.Mirrors)
	}
	if len(cluster.Others) > 0 {
		fmt.Fprintf(w, "shutdownplan: left out is what is no pod: %s\n", kindCounts(cluster.Others))
	}
}

// kindCounts returns the numbers of objects by kind, for a message.
func kindCounts(counts map[string]int) string {
	parts := make([]string, 0, len(counts))
	for kind, n := range counts {
		if kind == "" {
			kind = "without a kind"
		}
		parts = append(parts, fmt.Sprintf("%d %q", n, kind))
	}
	slices.Sort(parts)
	return strings.Join(parts, ", ")
}

// writePlan plans all nodes, and writes those that the flags choose.
func writePlan(w output.Writer, settings nodeplan.Settings, f *flags, nodes []*podlist.Node) error {
	summary := settings.Summarize(nodes)
	chosen, err := f.choose(nodes, summary)
	if err != nil {
		return err
	}
	if err := w.Begin(settings.Header()); err != nil {
		return err
	}
	for _, node := range chosen {
		if err := w.Node(settings.Plan(node)); err != nil {
			return err
		}
	}
	if err := w.End(summary); err != nil {
		return err
	}
	if f.failOn.isMet(settings.Header(), summary) {
		return ErrCutShort
	}
	return nil
}

// OpenStreams returns the standard streams and the environment of this process.
func OpenStreams() Streams {
	return Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Getenv: os.Getenv}
}
