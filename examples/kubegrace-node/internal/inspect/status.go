package inspect

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/kubegrace/kubegrace/examples/kubegrace-node/internal/machine"
	"github.com/kubegrace/kubegrace/examples/kubegrace-node/internal/nodeplan"
	"github.com/kubegrace/kubegrace/examples/kubegrace-node/internal/output"
	"github.com/kubegrace/kubegrace/examples/kubegrace-node/internal/podlist"
	"github.com/kubegrace/kubegrace/shutdown/plan"
)

const statusLong = `Looks at this machine and says what would happen to its pods at the next
systemctl poweroff, and why: who holds which locks, logind's limit and the file
that sets it, the kubelet's configuration, and its pods. It changes nothing.

The exit status is
  0  an agent holds the inhibitor lock, and no pod loses time; or the machine is drained
  1  a flag or a file is wrong
  2  an agent holds the inhibitor lock, and pods lose time all the same
  3  nothing waits for the pods
  4  not enough could be seen to tell`

const statusExample = `  kubegrace-node status
  kubegrace-node status --kubeconfig /etc/kubernetes/admin.conf
  kubegrace-node status --pods none -o json        (in a container: --root /host)`

// podsNone is the value of --pods that leaves the pods out.
const podsNone = "none"

// statusFlags has the values of the flags of kubegrace-node status.
type statusFlags struct {
	machine machine.Options
	files   []string // of --pods
	output  string

	every    time.Duration // 0: look once
	textfile string        // "": write no metrics
}

// NewStatus makes the command status.
func NewStatus() *cobra.Command {
	var f statusFlags
	c := &cobra.Command{
		Use:   "status",
		Short: "Says what would happen on this machine at its next shutdown, and why",
		Long:  statusLong, Example: statusExample,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return f.run(c) },
	}
	c.Flags().SortFlags = false
	f.add(c.Flags())
	return c
}

// add adds the flags of kubegrace-node status to fs.
func (f *statusFlags) add(fs *pflag.FlagSet) {
	fs.StringVar(&f.machine.Root, "root", "", "`folder` with the machine's file system, for a container: its /etc, /run, /usr, /proc, and the socket of the bus")
	fs.StringVar(&f.machine.ConfigFile, "config", "", "`file` with the configuration of the agent that drains, or what /configz of the kubelet answers; by default the file that the kubelet's command line names")
	fs.StringVar(&f.machine.Kubeconfig, "kubeconfig", "", "`file` by which the API server is asked for the pods, or in-cluster for the service account of a pod; by default the kubeconfig of the kubelet's command line")
	fs.StringVar(&f.machine.NodeName, "node", "", "`name` of this node; by default the name in the kubelet's command line, or the host's")
	fs.StringSliceVar(&f.files, "pods", nil, "`file` with the pods, in place of asking for them; --pods "+podsNone+" shows no pods")
	fs.DurationVar(&f.every, "every", 0, "look again after this `time`, until the program is stopped")
	fs.StringVar(&f.textfile, "textfile", "", "`file` that gets the metrics too, for the textfile collector of Prometheus' node exporter")
	AddFormat(fs, &f.output, output.Table, output.JSON, output.YAML)
}

// run looks at the machine once, or with --every at intervals until ctx ends. With --every an error is only
// printed, so that a passing failure does not end the program.
func (f *statusFlags) run(c *cobra.Command) error {
	ctx := c.Context()
	if f.every < 0 || f.every > 0 && f.every < time.Second {
		return fmt.Errorf("--every: %v is too short, a second is the least", f.every)
	}
	// Without --root the folder is /, and without --textfile it is "."; both exist.
	for _, option := range []struct{ name, folder string }{{"--root", f.machine.Root}, {"--textfile", filepath.Dir(f.textfile)}} {
		if info, err := os.Stat(cmp.Or(option.folder, "/")); err != nil || !info.IsDir() {
			return fmt.Errorf("%s: there is no folder %s", option.name, option.folder)
		}
	}
	for {
		err := f.look(c)
		if f.every == 0 || ctx.Err() != nil {
			return err
		}
		var status ExitStatus
		if err != nil && !errors.As(err, &status) {
			fmt.Fprintln(c.ErrOrStderr(), "kubegrace-node status:", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(f.every):
		}
	}
}

// look looks at the machine once and writes what it found. It returns an [ExitStatus] unless all is well.
func (f *statusFlags) look(c *cobra.Command) error {
	hasConfig := f.machine.ConfigFile != ""
	state := machine.Look(c.Context(), f.machine)
	if hasConfig && state.ConfigSource == "" { // the configuration that the user named cannot be used
		return fmt.Errorf("--config: %w", state.ConfigError)
	}
	report := output.NodeReport{APIVersion: nodeplan.APIVersion, Kind: "NodeReport", State: state, Verdict: state.Judge(hasConfig)}
	if !slices.Equal(f.files, []string{podsNone}) {
		if err := f.addPods(c, &report); err != nil {
			return err
		}
	}
	report.Verdict.AddUnseen(state.NotSeen)
	if f.textfile != "" {
		if err := prometheus.WriteToTextfile(f.textfile, output.Metrics(report)); err != nil {
			return fmt.Errorf("--textfile: %w", err)
		}
	}
	if err := output.WriteMachine(f.output, c.OutOrStdout(), report); err != nil {
		return err
	}
	if report.Verdict.Status != machine.Held {
		return ExitStatus(report.Verdict.Status)
	}
	return nil
}

// addPods adds to a report what the next shutdown would do to the pods. It adds nothing if no agent would
// drain them, or if nobody could be asked for the pods.
func (f *statusFlags) addPods(c *cobra.Command, r *output.NodeReport) error {
	if r.Verdict.Drains == "" {
		return nil
	}
	cluster := podlist.New()
	if err := f.readPods(c, cluster, r); err != nil {
		return fmt.Errorf("--pods: %w", err)
	}
	if len(r.PodSources) == 0 {
		return nil
	}
	cluster.Merge()
	nodes, name := cluster.Nodes(), r.NodeName()
	if len(nodes) > 1 { // a single node is this one, whatever its name is
		nodes = slices.DeleteFunc(nodes, func(n *podlist.Node) bool { return n.Name != name })
	}
	if len(nodes) == 0 && cluster.Pods > 0 {
		return fmt.Errorf("--pods: has the pods of several nodes, and none of %q; --node says which is this one", name)
	}
	options := plan.Options{PriorityOf: cluster.PriorityOf, Steps: agentSteps()}
	settings, err := nodeplan.NewSettings(r.Verdict.Drains, r.Config, options)
	if err != nil {
		return fmt.Errorf("%s: %w", r.ConfigSource, err)
	}
	limit := r.Logind.Limit() // Logind is not nil and the limit is not 0, because an agent drains
	document := settings.OnMachine(limit, r.OverridingFile(r.Verdict.Drains)).Document(nodes)
	r.Plan = &document
	r.Verdict.AddPods(document.Summary.PodCount, document.Summary.CutShort, document.Summary.LostSeconds)
	return nil
}

// readPods reads the pods into cluster, and sets r.PodSources: the files of --pods, or without --pods whoever has listed the
// pods. Files without pods are an error.
func (f *statusFlags) readPods(c *cobra.Command, cluster *podlist.Cluster, r *output.NodeReport) error {
	if len(f.files) == 0 {
		r.PodSources = r.ReadPods(c.Context(), cluster)
		return nil
	}
	r.PodSources = f.files
	if err := readInputs(c, cluster, f.files); err != nil {
		return err
	}
	return checkPods(cluster, f.files)
}
