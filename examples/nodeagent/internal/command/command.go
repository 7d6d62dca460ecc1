package command

import (
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/component-base/featuregate"
	"k8s.io/klog/v2"

	"github.com/kubegrace/kubegrace/examples/nodeagent/internal/output"
	"github.com/kubegrace/kubegrace/examples/nodeagent/internal/view"
	"github.com/kubegrace/kubegrace/lifecycle"
	"github.com/kubegrace/kubegrace/shutdown"
)

const long = `nodeagent runs the pods of a folder and, when its machine shuts down, stops
them as a kubelet would: in buckets of priority, the lowest first, each pod with
its preStop hook and the time it was granted. It shows what it does, and at the
end what became of each pod.

The folder is watched. A new manifest is started, a removed one terminated, a
changed one terminated and then started as it is now; a folder with a mistake in
it changes nothing. Containers that exit are started again as restartPolicy says,
after 10 s, 20 s and so on up to 5 minutes.

It is a node agent in small. With --runtime=cri, pods are refused that have volume
mounts, a security context, or variables from elsewhere: something would be
missing in their containers. Probes, resources, ports and postStart hooks have no
effect; a warning names each of them. All pods are in the network of the host.

With --kubeconfig it tells an API server: the node is not ready and shuts down,
each pod is not ready before it is stopped, and has a final status afterwards. The
pods are shown as mirror pods, as those of a kubelet's manifests are. An API server
that does not answer costs no pod its time, and no shutdown more than it may take.

While idle, SIGTERM and SIGINT (Ctrl-C) let go of the machine and leave the pods
as they are; with --source=manual, SIGTERM starts the shutdown instead. While
pods are being stopped, a first signal changes nothing and a second one ends the
waiting. SIGHUP, a closed terminal and the end of whoever reads the output end
nothing.

The status is 0 when all has gone well, and 1 after bad input, for a pod that could
not be stopped, and for a shutdown of which something else has failed, as when its
state cannot be stored.`

const example = `  # Nine pods without containers, on any machine, shut down after 2 s
  nodeagent --config demo/kubelet.yaml --manifests demo/pods --source=manual --shutdown-after=2s

  # What a shutdown would do to them
  nodeagent plan --config demo/kubelet.yaml --manifests demo/pods

  # The real thing: containers of containerd, and the shutdown of this machine
  nodeagent --config /var/lib/kubelet/config.yaml --manifests /etc/kubegrace/pods \
    --runtime=cri --container-runtime-endpoint=unix:///run/containerd/containerd.sock --source=logind \
    --state-dir /var/lib/nodeagent --socket /run/nodeagent/control.sock

  # What it is told while it runs, and asked afterwards
  nodeagent stop shop/web
  nodeagent drain
  nodeagent report

  # The same, for a node of a cluster: its pods come back after a reboot
  nodeagent --config /var/lib/kubelet/config.yaml --manifests /etc/kubegrace/pods \
    --runtime=cri --container-runtime-endpoint=unix:///run/containerd/containerd.sock --source=logind \
    --kubeconfig /etc/kubernetes/kubelet.conf --pod-policy reboot=LeaveAsIs,default=SetTerminal`

// New makes the command. It obeys SIGTERM and SIGINT from signals; what it shows
// goes to out, its log to log.
func New(signals <-chan os.Signal, out, log io.Writer) (*cobra.Command, error) {
	// A feature gate that is set speaks to klog before there is a log to speak to.
	klog.SetLogger(klog.Logger{})
	gate := featuregate.NewFeatureGate()
	if err := errors.Join(lifecycle.AddFeatureGates(gate), shutdown.AddFeatureGates(gate)); err != nil {
		return nil, err
	}
	var f flags
	c := &cobra.Command{
		Use:           "nodeagent",
		Short:         "Runs pods and stops them in order when the machine shuts down",
		Long:          long,
		Example:       example,
		Version:       version(),
		Args:          cobra.NoArgs,
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE: func(c *cobra.Command, _ []string) error {
			shown, logged := output.New(out), output.New(log)
			defer shown.Close()
			defer logged.Close()
			v := view.New(shown, liveTerminal(out))
			var lines io.Writer = logged
			if liveTerminal(log) != nil {
				lines = v // which may be drawing on the same terminal
			}
			return run(c.Context(), &setup{flags: f, gate: gate, view: v, logger: newLogger(lines, f.logFormat, f.verbosity), signals: signals})
		},
	}
	c.SetVersionTemplate("{{.Name}} {{.Version}}\n")
	c.Flags().SortFlags = false
	f.add(c.Flags())
	addGates(gate, c.Flags())
	for _, tool := range []func(*tools) *cobra.Command{newPlan, newReport, newDrain, newStop} {
		c.AddCommand(tool(&tools{signals: signals, out: out, gate: gate}))
	}
	c.AddCommand(newUninstall(out))
	return c, nil
}

// addGates adds the flag that switches features.
func addGates(gate featuregate.MutableVersionedFeatureGate, fs *pflag.FlagSet) {
	gate.AddFlag(fs)
	fs.Lookup("feature-gates").Usage = "`gates` to switch, as NAME=true,NAME=false; they win over those of --config: " + strings.Join(ownGates(), ", ")
}

// version is that of the module that the program was built from, and of Go.
func version() string {
	module := "(unknown)"
	if info, ok := debug.ReadBuildInfo(); ok {
		module = info.Main.Version
	}
	return fmt.Sprintf("%s (%s, %s/%s)", module, runtime.Version(), runtime.GOOS, runtime.GOARCH)
}

// ownGates are the names of the gates that the agent knows.
func ownGates() []string {
	return []string{
		string(lifecycle.PodLifecycleSleepAction),
		"PodLifecycleSleepActionAllowZero",
		string(lifecycle.ContainerStopSignals),
		string(shutdown.GracefulNodeShutdown),
		string(shutdown.GracefulNodeShutdownBasedOnPodPriority),
	}
}

// OneLine is an error on one line, whatever it is made of.
func OneLine(err error) string {
	var parts []string
	for part := range strings.SplitSeq(err.Error(), "\n") {
		if part = strings.TrimSpace(part); part != "" {
			parts = append(parts, part)
		}
	}
	return strings.Join(parts, "; ")
}
