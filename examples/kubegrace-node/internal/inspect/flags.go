package inspect

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubegrace/kubegrace/examples/kubegrace-node/internal/kubeletconfig"
	"github.com/kubegrace/kubegrace/examples/kubegrace-node/internal/machine"
	"github.com/kubegrace/kubegrace/examples/kubegrace-node/internal/nodeplan"
	"github.com/kubegrace/kubegrace/examples/kubegrace-node/internal/output"
	"github.com/kubegrace/kubegrace/examples/kubegrace-node/internal/podlist"
	"github.com/kubegrace/kubegrace/shutdown/plan"
)

// limitLogind is the value of --limit with which systemd-logind is asked for the limit.
const limitLogind = "logind"

// flags are the values of the command line flags.
type flags struct {
	agent           string
	config          string
	configDir       string
	total, critical time.Duration
	limit           string
	hooks           []string
	noRollOver      bool
	nodes           []string
	all             bool
	output          string
	failOn          threshold
	poolLabel       string
}

func (f *flags) add(fs *pflag.FlagSet) {
	fs.StringVar(&f.agent, "agent", string(nodeplan.Kubelet), "`who` drains the node: kubelet, the stock one, or kubegrace")
	fs.StringVar(&f.config, "config", "", "`file` with the kubelet's configuration: a KubeletConfiguration, or what\n/configz of the kubelet answers; YAML or JSON")
	fs.StringVar(&f.configDir, "config-dir", "", "`folder` with drop-ins of the configuration, as for the kubelet")
	fs.DurationVar(&f.total, "shutdown-grace-period", 0, "shutdownGracePeriod, in place of a file: the `time` of all pods")
	fs.DurationVar(&f.critical, "shutdown-grace-period-critical-pods", 0, "the part of this `time` that is kept for critical pods")
	fs.StringVar(&f.limit, "limit", "", "how long the host waits at most: a `time`, or logind for what systemd-logind of this host says, which a kubelet raises unless a file of logind beats its own; empty means that it is not known")
	fs.StringSliceVar(&f.hooks, "hooks", nil, "`what` the agent does beside the kills, which takes time too: publish, readiness, unmount, statuses (kubegrace's default is these but unmount), or none; for kubegrace only")
	fs.BoolVar(&f.noRollOver, "no-roll-over", false, "time that a bucket leaves is lost to the later ones, as it always is with a kubelet; for kubegrace only")
	fs.StringSliceVar(&f.nodes, "node", nil, "show this `node` in full; may be given several times")
	fs.BoolVar(&f.all, "all", false, fmt.Sprintf("show all nodes in full; of more than %d a table shows the sum", maxFullNodes))
	f.failOn = threshold{text: "any"}
	fs.Var(&f.failOn, "fail-on", "`when` the exit status is 2: any pod that is cut short, more than a\nnumber of them as 10, or than a share as 5%, no-lock, or never")
	fs.StringVar(&f.poolLabel, "pool-label", "", "`label` of nodes that names their pool, if the nodes are in the input, beside those of the large clouds")
	fs.StringVarP(&f.output, "output", "o", output.Table, "`form`: table, json, yaml, or html, which is one page with a timeline")
}

// settings returns the settings that the flags, and the file of --config, describe.
func (f *flags) settings(ctx context.Context, root string, priorityOf func(string) (int32, bool)) (nodeplan.Settings, error) {
	kubelet := kubeletconfig.Config{Shutdown: plan.Config{
		ShutdownGracePeriod:             metav1.Duration{Duration: f.total},
		ShutdownGracePeriodCriticalPods: metav1.Duration{Duration: f.critical},
	}}
	source := "--shutdown-grace-period"
	if f.config != "" || f.configDir != "" {
		if f.total != 0 || f.critical != 0 {
			return nodeplan.Settings{}, errors.New("--shutdown-grace-period: is only for a configuration without --config")
		}
		loaded, err := kubeletconfig.Load(f.config, f.configDir)
		if err != nil {
			return nodeplan.Settings{}, configError(err)
		}
		kubelet, source = loaded, "--config: "+strings.TrimSpace(f.config+" "+f.configDir)
	}
	agent, err := f.checkedAgent()
	if err != nil {
		return nodeplan.Settings{}, err
	}
	options := plan.Options{PriorityOf: priorityOf, NoRollOver: f.noRollOver}
	if options.Limit, err = f.hostLimit(ctx); err != nil {
		return nodeplan.Settings{}, fmt.Errorf("--limit: %w", err)
	}
	if options.Steps, err = f.planHooks(); err != nil {
		return nodeplan.Settings{}, fmt.Errorf("--hooks: %w", err)
	}
	settings, err := nodeplan.NewSettings(agent, kubelet.Shutdown, kubelet.FeatureGates, options)
	if err != nil {
		return settings, fmt.Errorf("%s: %w", source, err)
	}
	if needed := time.Duration(settings.Header().NeededSeconds * float64(time.Second)); agent == nodeplan.Kubelet && f.limit == limitLogind {
		limit, by := machine.KubeletLimit(cmp.Or(root, "/"), max(options.Limit, 0), needed)
		if settings = settings.OnMachine(cmp.Or(limit, -1), by); limit == machine.Unlimited {
			settings = settings.OnMachineWithoutLimit(by)
		}
	}
	return settings, nil
}

// configError adds to an error of the kubelet's configuration what helps.
func configError(err error) error {
	isFolders := strings.HasPrefix(err.Error(), "--config-dir: ")
	if !isFolders {
		err = fmt.Errorf("--config: %w", err)
	}
	switch {
	case strings.HasSuffix(err.Error(), "is a folder, wanted is a file"):
		return fmt.Errorf("%w: a folder of drop-ins goes with --config-dir", err)
	case errors.Is(err, fs.ErrNotExist) && isFolders:
		return fmt.Errorf("%w: the command line of the kubelet names it, if there is one", err)
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%w: on a node it is most often /var/lib/kubelet/config.yaml", err)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("%w: run it as root", err)
	default:
		return err
	}
}

// checkedAgent returns the agent. What kubegrace alone can be told is an error for a kubelet.
func (f *flags) checkedAgent() (nodeplan.Agent, error) {
	if !slices.Contains(nodeplan.Agents(), f.agent) {
		return "", fmt.Errorf("--agent: %q is none of %s", f.agent, strings.Join(nodeplan.Agents(), ", "))
	}
	agent := nodeplan.Agent(f.agent)
	if agent == nodeplan.Kubelet && (f.noRollOver || len(f.hooks) > 0) {
		return "", errors.New("--hooks and --no-roll-over: a stock kubelet cannot be told so; they go with --agent kubegrace")
	}
	return agent, nil
}

// hostLimit returns the limit of the host for [plan.Options]: 0 if it is not known, and less than
// 0 if the host does not wait.
func (f *flags) hostLimit(ctx context.Context) (time.Duration, error) {
	switch f.limit {
	case "":
		return 0, nil
	case limitLogind:
		limit, err := machine.Limit(ctx, "")
		if err != nil {
			return 0, fmt.Errorf("%w: without a systemd-logind here give a time, as 30s", err)
		}
		return cmp.Or(limit, -1), nil
	}
	limit, err := time.ParseDuration(f.limit)
	if err != nil || limit < 0 {
		return 0, fmt.Errorf("%q is no time as 30s, and not %s", f.limit, limitLogind)
	}
	if limit == 0 {
		limit = -1
	}
	return limit, nil
}

// planHooks returns what the agent does beside the kills.
func (f *flags) planHooks() (hooks plan.Steps, err error) {
	names := f.hooks
	if len(names) == 0 {
		names = []string{"publish", "readiness", "statuses"}
	}
	for _, name := range names {
		switch name {
		case "publish":
			hooks.Publish = true
		case "readiness":
			hooks.Readiness = true
		case "unmount":
			hooks.Unmount = true
		case "statuses":
			hooks.Statuses = true
		case "none", "":
		default:
			return hooks, fmt.Errorf("%q is none of publish, readiness, unmount, statuses, none", name)
		}
	}
	return hooks, nil
}

// choose returns the nodes that are shown in full. With --node these are the named nodes.
// Without it they are all nodes if the format is for programs, with --all, or if there are only
// a few. Otherwise a page shows the worst nodes, and a terminal none.
func (f *flags) choose(nodes []*podlist.Node, s nodeplan.Summary) ([]*podlist.Node, error) {
	if len(f.nodes) > 0 {
		return nodesNamed(nodes, f.nodes)
	}
	if f.all || !output.ForPeople(f.output) || len(nodes) <= maxFullNodes {
		return nodes, nil
	}
	if f.output != output.HTML {
		return nil, nil
	}
	var worst []string
	for _, loss := range s.Losses {
		if loss.By == nodeplan.ByNode {
			worst = append(worst, loss.Name)
		}
	}
	return nodesNamed(nodes, worst)
}

// nodesNamed returns the nodes with these names, in the order of the names.
func nodesNamed(nodes []*podlist.Node, names []string) ([]*podlist.Node, error) {
	chosen := make([]*podlist.Node, 0, len(names))
	for _, name := range names {
		i := slices.IndexFunc(nodes, func(n *podlist.Node) bool { return n.Name == name })
		if i < 0 {
			return nil, fmt.Errorf("--node: %q has no pods here; there are %s", name, firstNames(nodes))
		}
		chosen = append(chosen, nodes[i])
	}
	return chosen, nil
}

// firstNames returns the names of the first five nodes, for an error message.
func firstNames(nodes []*podlist.Node) string {
	var names []string
	for i, n := range nodes {
		if i == 5 {
			names = append(names, fmt.Sprintf("and %d more", len(nodes)-i))
			break
		}
		names = append(names, n.Name)
	}
	return strings.Join(names, ", ")
}
