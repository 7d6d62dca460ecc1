package inspect

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/kubegrace/kubegrace/examples/kubegrace-node/internal/api"
	"github.com/kubegrace/kubegrace/examples/kubegrace-node/internal/nodeplan"
	"github.com/kubegrace/kubegrace/examples/kubegrace-node/internal/output"
	"github.com/kubegrace/kubegrace/examples/kubegrace-node/internal/podlist"
)

// ExitStatus is returned as an error after everything has been written. The program exits with it and prints
// no message.
type ExitStatus int

// ErrCutShort is returned after a plan has been written in which a pod is cut short.
const ErrCutShort = ExitStatus(2)

// Error returns "exit status" and the number.
func (s ExitStatus) Error() string { return fmt.Sprintf("exit status %d", int(s)) }

// maxFullNodes is the number of nodes up to which people are shown each node in full. If there are more, they are shown the
// sums.
const maxFullNodes = 3

const planLong = `plan says what the shutdown of a node would do to its pods: when each is told
to stop, how long it has, which are cut short and why, and what to change.

Without an argument it asks the agent that runs on this machine. Otherwise the
pods come from files as kubectl gives them (-o json or -o yaml), from folders of
manifests, or with - from standard input: of one node or of a whole cluster. The
times come from the kubelet's configuration, and from how long the host waits.
--agent says whose rules apply.

The exit status is 2 if a pod would be cut short, and 1 if something is wrong.`

const planExample = `  kubegrace-node plan
  kubectl get pods -A -o json | kubegrace-node plan - \
    --shutdown-grace-period 60s --shutdown-grace-period-critical-pods 20s
  kubegrace-node plan --config /var/lib/kubelet/config.yaml --limit 30s \
    /etc/kubernetes/manifests
  kubegrace-node plan --config kubelet.yaml -o html pods.json > plan.html`

// NewPlan makes the command plan.
func NewPlan() *cobra.Command {
	var f flags
	c := &cobra.Command{
		Use:   "plan [flags] [FILE | FOLDER | -]...",
		Short: "Says what a shutdown would do to the pods, and does nothing",
		Long:  planLong, Example: planExample,
		Args: cobra.ArbitraryArgs,
		RunE: func(c *cobra.Command, args []string) error {
			makePlan := requestPlan
			if len(args) > 0 {
				makePlan = planFiles
			}
			document, err := makePlan(c, &f, args)
			if err != nil {
				return err
			}
			return writePlan(c, &f, document)
		},
	}
	c.Flags().SortFlags = false
	f.add(c.Flags())
	return c
}

// requestPlan requests the plan of the agent that runs on this machine. Flags that the agent would ignore are an error.
func requestPlan(c *cobra.Command, f *flags, _ []string) (document nodeplan.Document, err error) {
	var ignored []string
	c.Flags().Visit(func(flag *pflag.Flag) {
		if flag.Name != "output" && flag.Name != "socket" {
			ignored = append(ignored, "--"+flag.Name)
		}
	})
	if len(ignored) > 0 {
		return document, fmt.Errorf("%s: the agent of this machine plans by its own settings; for other pods give a FILE, a FOLDER, or - for standard input", strings.Join(ignored, ", "))
	}
	err = api.Request(c.Context(), f.socket, http.MethodGet, "/plan", &document)
	return document, err
}

// planFiles plans the pods that the arguments name: files, folders or the standard input.
func planFiles(c *cobra.Command, f *flags, args []string) (document nodeplan.Document, err error) {
	cluster := podlist.New()
	settings, err := f.settings(cluster.PriorityOf)
	if err != nil {
		return document, err
	}
	if err := readInputs(c, cluster, args); err != nil {
		return document, err
	}
	cluster.Merge()
	if err := checkPods(cluster, args); err != nil {
		return document, err
	}
	writeLeftOut(c.ErrOrStderr(), cluster)
	if f.config == "" && f.total == 0 && f.critical == 0 {
		fmt.Fprintln(c.ErrOrStderr(), "kubegrace-node plan: no configuration is given (--config, --shutdown-grace-period): this is the plan of a kubelet's defaults")
	}
	return settings.Document(cluster.Nodes()), nil
}

// checkPods returns an error if the input has no pods: it is probably the wrong file. A list without items is
// no error, because a cluster may have no pods.
func checkPods(cluster *podlist.Cluster, args []string) error {
	hasPods := cluster.Pods+cluster.Ended+cluster.Unscheduled > 0
	isClusterWithoutPods := cluster.Objects > 0 && len(cluster.Others) == 0 // only empty lists and priority classes
	if hasPods || isClusterWithoutPods {
		return nil
	}
	source := strings.Join(args, ", ")
	if source == "-" {
		source = standardInput
	}
	return fmt.Errorf("%s: has no pods, as kubectl get pods -o json gives them; it has: %s", source, cmp.Or(kindsOf(cluster), "nothing"))
}

// writeLeftOut writes which objects of the input are not in the plan, so that nobody misses a pod without
// knowing why.
func writeLeftOut(w io.Writer, cluster *podlist.Cluster) {
	for _, omission := range []struct {
		text  string
		count int
	}{
		{"left out are pods that have ended", cluster.Ended},
		{"left out are pods that no node has", cluster.Unscheduled},
		{"given more than once, and counted once, are pods", cluster.Repeated},
	} {
		if omission.count > 0 {
			fmt.Fprintf(w, "kubegrace-node plan: %s: %d\n", omission.text, omission.count)
		}
	}
	if kinds := kindsOf(cluster); kinds != "" {
		fmt.Fprintf(w, "kubegrace-node plan: left out is what is no pod: %s\n", kinds)
	}
}

// kindsOf returns the kinds of the objects that are neither pods nor priority classes, for a message. It
// returns "" if there are none.
func kindsOf(cluster *podlist.Cluster) string {
	return strings.Join(slices.Sorted(maps.Keys(cluster.Others)), ", ")
}

// writePlan writes a plan. It then returns [ErrCutShort] if a pod is cut short.
func writePlan(c *cobra.Command, f *flags, d nodeplan.Document) error {
	if err := f.keepShownNodes(&d); err != nil {
		return err
	}
	if err := output.Write(f.output, c.OutOrStdout(), d); err != nil {
		return err
	}
	if d.Summary.CutShort > 0 {
		return ErrCutShort
	}
	return nil
}

// standardInput is the name of the standard input in messages.
const standardInput = "standard input"

// readInputs reads into cluster what the arguments name: files, folders of manifests, and with "-" the
// standard input.
func readInputs(c *cobra.Command, cluster *podlist.Cluster, args []string) error {
	for _, arg := range args {
		var err error
		if arg == "-" {
			err = cluster.Read(standardInput, c.InOrStdin())
		} else {
			err = readPath(cluster, arg)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// readPath reads a file of objects, or a folder of manifests, into cluster.
func readPath(cluster *podlist.Cluster, path string) error {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return err
	case info.IsDir():
		return cluster.ReadFolder(path)
	default:
		return readFile(cluster, path)
	}
}

// readFile reads the objects of one file into cluster.
func readFile(cluster *podlist.Cluster, name string) (err error) {
	file, err := os.Open(name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	return cluster.Read(name, file)
}
