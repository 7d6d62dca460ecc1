package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kubegrace/kubegrace/examples/shutdownplan/internal/nodeplan"
	"github.com/kubegrace/kubegrace/examples/shutdownplan/internal/output"
	"github.com/kubegrace/kubegrace/examples/shutdownplan/internal/podlist"
)

// ErrCutShort says that a pod would be cut short.
var ErrCutShort = errors.New("pods would be cut short")

// fullNodes is how many nodes are shown in full where nothing else is asked for.
const fullNodes = 3

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

// Streams is what a program has open, and the environment of its terminal.
type Streams struct {
	In       io.Reader
	Out, Err io.Writer
	Getenv   func(string) string
}

// New makes the command.
func New(streams Streams) *cobra.Command {
	var f flags
	c := &cobra.Command{
		Use:           "shutdownplan [flags] [FILE | FOLDER | -]...",
		Short:         "Shows what the shutdown of a node would do to its pods",
		Long:          long,
		Example:       example,
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
	c.SetUsageTemplate(strings.ReplaceAll(c.UsageTemplate(), ".FlagUsages", fmt.Sprintf(".FlagUsagesWrapped %d", usualWidth)))
	return c
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
	settings, err := f.settings(ctx, cluster.PriorityOf)
	if err != nil {
		return err
	}
	if err := read(ctx, streams, cluster, args); err != nil {
		return err
	}
	if err := found(cluster, args); err != nil {
		return err
	}
	leftOut(streams.Err, cluster)
	return show(w, settings, f, cluster.Nodes())
}

// found says what is wrong with an input without pods; an empty list is not wrong.
func found(cluster *podlist.Cluster, args []string) error {
	from := strings.Join(args, ", ")
	if from == "-" {
		from = "standard input"
	}
	switch {
	case cluster.Pods > 0 || cluster.Ended > 0 || cluster.Unscheduled > 0:
		return nil
	case len(cluster.Others) > 0:
		return fmt.Errorf("%s: no pods, but %s", from, kinds(cluster.Others))
	case cluster.Objects == 0:
		return fmt.Errorf("%s: is empty, wanted are pods as kubectl get pods -o json gives them", from)
	}
	return nil
}

// leftOut says which objects do not count.
func leftOut(w io.Writer, cluster *podlist.Cluster) {
	if cluster.Ended > 0 {
		fmt.Fprintf(w, "shutdownplan: left out are pods that have ended: %d\n", cluster.Ended)
	}
	if cluster.Unscheduled > 0 {
		fmt.Fprintf(w, "shutdownplan: left out are pods that no node has: %d\n", cluster.Unscheduled)
	}
	if len(cluster.Others) > 0 {
		fmt.Fprintf(w, "shutdownplan: left out is what is no pod: %s\n", kinds(cluster.Others))
	}
}

// kinds counts objects by kind.
func kinds(counts map[string]int) string {
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

// show plans all nodes, and shows those that are asked for.
func show(w output.Writer, settings nodeplan.Settings, f *flags, nodes []*podlist.Node) error {
	totals := settings.Totals()
	for _, node := range nodes {
		totals.Add(settings.Plan(node), node)
	}
	summary := totals.Summary()
	shown, err := f.choose(nodes, summary)
	if err != nil {
		return err
	}
	if err := w.Begin(settings.Header()); err != nil {
		return err
	}
	for _, node := range shown {
		if err := w.Node(settings.Plan(node)); err != nil {
			return err
		}
	}
	if err := w.End(summary); err != nil {
		return err
	}
	if summary.CutShort > 0 {
		return ErrCutShort
	}
	return nil
}

// OpenStreams are those of this process.
func OpenStreams() Streams {
	return Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Getenv: os.Getenv}
}
