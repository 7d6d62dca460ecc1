package inspect

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubegrace/kubegrace/examples/kubegrace-node/internal/kubeletconfig"
	"github.com/kubegrace/kubegrace/examples/kubegrace-node/internal/nodeplan"
	"github.com/kubegrace/kubegrace/examples/kubegrace-node/internal/output"
	"github.com/kubegrace/kubegrace/examples/kubegrace-node/internal/socket"
	"github.com/kubegrace/kubegrace/shutdown/plan"
)

// flags has the values of the flags of kubegrace-node plan.
type flags struct {
	agent, config          string
	total, critical, limit time.Duration
	nodes                  []string
	output, socket         string
}

// add adds the flags to fs.
func (f *flags) add(fs *pflag.FlagSet) {
	OneOf(fs, &f.agent, "agent", "", "`who` drains the node", nodeplan.Agents()...)
	fs.StringVar(&f.config, "config", "", "`file` with the kubelet's configuration: a KubeletConfiguration, or what\n/configz of the kubelet answers; YAML or JSON")
	fs.DurationVar(&f.total, "shutdown-grace-period", 0, "shutdownGracePeriod, in place of a file: the `time` of all pods")
	fs.DurationVar(&f.critical, "shutdown-grace-period-critical-pods", 0, "the part of this `time` that is kept for critical pods")
	fs.DurationVar(&f.limit, "limit", 0, "how long the host waits at most, a `time` such as 30s: InhibitDelayMaxSec of systemd-logind; 0 means that it is not known")
	fs.StringSliceVar(&f.nodes, "node", nil, fmt.Sprintf("show this `node` in full; may be given several times; of more than %d nodes a table shows the sum", maxFullNodes))
	AddFormat(fs, &f.output, output.Table, output.JSON, output.YAML, output.HTML)
	AddSocket(fs, &f.socket)
}

// AddFormat adds the flag -o of a command that shows something in one of these formats, and stores the format in target.
func AddFormat(fs *pflag.FlagSet, target *string, formats ...string) {
	OneOf(fs, target, "output", "o", "`form` of what is shown", formats...)
}

// AddSocket adds the flag --socket of a command that asks the running agent, and stores the path in target.
func AddSocket(fs *pflag.FlagSet, target *string) {
	fs.StringVar(target, "socket", socket.Default, "`path` of the socket of the agent")
}

// OneOf adds a flag that must have one of the values, and stores it in target. The first value is the default.
func OneOf(fs *pflag.FlagSet, target *string, name, shorthand, usage string, values ...string) {
	*target = values[0]
	fs.FuncP(name, shorthand, usage+": "+strings.Join(values, ", "), func(text string) error {
		if !slices.Contains(values, text) {
			return fmt.Errorf("wanted is one of %s", strings.Join(values, ", "))
		}
		*target = text
		return nil
	})
}

// settings returns the settings of the plan, from the flags and from the configuration that --config names.
// priorityOf returns the value of a priority class, and false if it is not known.
func (f *flags) settings(priorityOf func(string) (int32, bool)) (nodeplan.Settings, error) {
	kubelet := kubeletconfig.Config{Shutdown: plan.Config{
		ShutdownGracePeriod:             metav1.Duration{Duration: f.total},
		ShutdownGracePeriodCriticalPods: metav1.Duration{Duration: f.critical},
	}}
	source := "--shutdown-grace-period" // the flag that an error names
	if f.config != "" {
		if f.total != 0 || f.critical != 0 {
			return nodeplan.Settings{}, errors.New("--shutdown-grace-period: is only for a configuration without --config")
		}
		loaded, err := kubeletconfig.Load(f.config, "")
		if err != nil {
			return nodeplan.Settings{}, fmt.Errorf("--config: %w", err)
		}
		kubelet, source = loaded, "--config: "+f.config
	}
	if f.limit < 0 {
		return nodeplan.Settings{}, fmt.Errorf("--limit: %s is less than 0", f.limit)
	}
	settings, err := nodeplan.NewSettings(nodeplan.Agent(f.agent), kubelet, plan.Options{PriorityOf: priorityOf, Limit: f.limit, Steps: agentSteps()})
	if err != nil {
		return settings, fmt.Errorf("%s: %w", source, err)
	}
	return settings, nil
}

// agentSteps returns the steps that kubegrace-node does in a drain besides the kills.
func agentSteps() plan.Steps { return plan.Steps{Publish: true, Readiness: true, Statuses: true} }

// keepShownNodes removes from a document the nodes that are not shown in full. With --node it keeps the named
// nodes. Without --node it keeps all nodes if the format is for programs, or if there are at most maxFullNodes.
// Otherwise it keeps the nodes that lose most for an HTML page, and none for a terminal.
func (f *flags) keepShownNodes(d *nodeplan.Document) error {
	names := f.nodes
	if len(names) == 0 {
		isForPrograms := f.output == output.JSON || f.output == output.YAML
		if isForPrograms || len(d.Nodes) <= maxFullNodes {
			return nil
		}
		for _, loss := range d.Summary.Losses { // workloads and nodes, the worst first
			if f.output == output.HTML && loss.By == nodeplan.ByNode {
				names = append(names, loss.Name)
			}
		}
	}
	all := d.Nodes
	d.Nodes = make([]nodeplan.Node, 0, len(names))
	for _, name := range names {
		i := slices.IndexFunc(all, func(n nodeplan.Node) bool { return n.Name == name })
		if i < 0 && len(all) == 0 {
			return fmt.Errorf("--node: %q has no pods here: there are no pods at all", name)
		}
		if i < 0 {
			return fmt.Errorf("--node: %q has no pods here; the first node is %s", name, all[0].Name)
		}
		d.Nodes = append(d.Nodes, all[i])
	}
	return nil
}
