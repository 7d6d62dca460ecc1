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

const longHelp = `nodeagent runs the pods of a folder and, when its machine shuts down, stops
them as a kubelet would: in buckets of priority, the lowest first, each pod with
its preStop hook and the time it was granted. It shows what it does, and at the
end what became of each pod.

The folder is watched. The pod of a new manifest is started, that of a removed one
is terminated, and that of a changed one is terminated and started again. An
invalid manifest in the folder changes nothing. Containers that exit are restarted
as restartPolicy says, after 10 s, 20 s and so on up to 5 minutes.

nodeagent is a small node agent. With --runtime=cri it refuses pods with volume
mounts, a security context, or variables from elsewhere, because their containers
would lack something. Probes, resources, ports and postStart hooks have no effect;
a warning names each of them. All pods use the network of the host.

With --kubeconfig it reports to an API server: the node is not ready while it shuts
down, each pod is not ready before it is stopped, and has a final status afterwards.
The API server shows the pods as mirror pods, like those of a kubelet's manifests.
An API server that does not answer does not shorten the time of a pod, and does not
make a shutdown longer than it may be.

While no shutdown is under way, SIGTERM and SIGINT (Ctrl-C) end the agent. The pods
run on, and the machine's shutdown no longer waits for them. With --source=manual,
SIGTERM starts the shutdown instead. While pods are being stopped, a first signal
changes nothing and a second one ends the waiting. SIGHUP, a closed terminal and a
closed pipe behind the output do not end the agent.

The status is 0 if nothing has failed. It is 1 after invalid input, if a pod could
not be stopped, and if something else of a shutdown has failed, for example because
its state could not be stored.`

const exampleHelp = `  # In the folder examples, on any machine: nine pods without containers, shut down after 2 s
  nodeagent --config nodeagent/demo/kubelet.yaml --manifests nodeagent/demo/pods --source=manual --shutdown-after=2s

  # What a shutdown would do to them
  nodeagent plan --config nodeagent/demo/kubelet.yaml --manifests nodeagent/demo/pods

  # Containers of containerd, and the shutdown of this machine
  nodeagent --config /var/lib/kubelet/config.yaml --manifests /etc/kubegrace/pods \
    --runtime=cri --container-runtime-endpoint=unix:///run/containerd/containerd.sock --source=logind \
    --state-dir /var/lib/nodeagent --socket /run/nodeagent/control.sock

  # Control the running agent, and show afterwards what a shutdown has done
  nodeagent stop shop/web
  nodeagent drain
  nodeagent report

  # The same, for a node of a cluster: its pods come back after a reboot
  nodeagent --config /var/lib/kubelet/config.yaml --manifests /etc/kubegrace/pods \
    --runtime=cri --container-runtime-endpoint=unix:///run/containerd/containerd.sock --source=logind \
    --kubeconfig /etc/kubernetes/kubelet.conf --pod-policy reboot=LeaveAsIs,default=SetTerminal`

// New makes the command nodeagent. SIGTERM and SIGINT come from signals. Output is written
// to out, the log to log.
func New(signals <-chan os.Signal, out, log io.Writer) (*cobra.Command, error) {
	// Setting a feature gate logs with klog, which must not write to stderr before
	// --log-format is known.
	klog.SetLogger(klog.Logger{})
	gate := featuregate.NewFeatureGate()
	if err := errors.Join(lifecycle.AddFeatureGates(gate), shutdown.AddFeatureGates(gate)); err != nil {
		return nil, err
	}
	var f flags
	c := &cobra.Command{
		Use:           "nodeagent",
		Short:         "Runs pods and stops them in order when the machine shuts down",
		Long:          longHelp,
		Example:       exampleHelp,
		Version:       version(),
		Args:          cobra.NoArgs,
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE: func(c *cobra.Command, _ []string) error {
			outWriter, logWriter := output.New(out), output.New(log)
			defer outWriter.Close()
			defer logWriter.Close()
			v := view.New(outWriter, redrawableTerminal(out))
			var logLines io.Writer = logWriter
			if redrawableTerminal(log) != nil {
				logLines = v // which may draw on the same terminal
			}
			return run(c.Context(), &setup{flags: f, gate: gate, view: v, logger: newLogger(logLines, f.logFormat, f.verbosity), signals: signals})
		},
	}
	c.SetVersionTemplate("{{.Name}} {{.Version}}\n")
	c.Flags().SortFlags = false
	f.addAll(c.Flags())
	addGates(gate, c.Flags())
	for _, newTool := range []func(*tool) *cobra.Command{newPlan, newReport, newDrain, newStop} {
		c.AddCommand(newTool(&tool{signals: signals, out: out, gate: gate}))
	}
	c.AddCommand(newUninstall(out))
	return c, nil
}

// addGates adds --feature-gates.
func addGates(gate featuregate.MutableVersionedFeatureGate, fs *pflag.FlagSet) {
	gate.AddFlag(fs)
	fs.Lookup("feature-gates").Usage = "`gates` to switch, as NAME=true,NAME=false; they win over those of --config: " + strings.Join(gateNames(), ", ")
}

// version returns the versions of this module and of Go, and the platform.
func version() string {
	module := "(unknown)"
	if info, ok := debug.ReadBuildInfo(); ok {
		module = info.Main.Version
	}
	return fmt.Sprintf("%s (%s, %s/%s)", module, runtime.Version(), runtime.GOOS, runtime.GOARCH)
}

// gateNames returns the names of all feature gates of the agent.
func gateNames() []string {
	return []string{
		string(lifecycle.PodLifecycleSleepAction),
		"PodLifecycleSleepActionAllowZero",
		string(lifecycle.ContainerStopSignals),
		string(shutdown.GracefulNodeShutdown),
		string(shutdown.GracefulNodeShutdownBasedOnPodPriority),
	}
}

// OneLine returns the text of an error on one line. Lines of a joined error are separated
// by "; ".
func OneLine(err error) string {
	var parts []string
	for part := range strings.SplitSeq(err.Error(), "\n") {
		if part = strings.TrimSpace(part); part != "" {
			parts = append(parts, part)
		}
	}
	return strings.Join(parts, "; ")
}
