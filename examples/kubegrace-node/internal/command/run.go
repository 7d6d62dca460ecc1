package command

import (
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"strings"

	"github.com/coreos/go-systemd/v22/daemon"
	"github.com/spf13/cobra"
	v1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"github.com/kubegrace/kubegrace/examples/kubegrace-node/internal/agent"
	"github.com/kubegrace/kubegrace/examples/kubegrace-node/internal/apiserver"
	"github.com/kubegrace/kubegrace/examples/kubegrace-node/internal/kubeletconfig"
	"github.com/kubegrace/kubegrace/examples/kubegrace-node/internal/output"
	"github.com/kubegrace/kubegrace/examples/kubegrace-node/internal/podinfo"
	"github.com/kubegrace/kubegrace/examples/kubegrace-node/internal/socket"
	"github.com/kubegrace/kubegrace/examples/kubegrace-node/internal/units"
	"github.com/kubegrace/kubegrace/lifecycle/criruntime"
	"github.com/kubegrace/kubegrace/shutdown"
	"github.com/kubegrace/kubegrace/shutdown/logind"
	"github.com/kubegrace/kubegrace/shutdown/notice"
	"github.com/kubegrace/kubegrace/shutdown/source"
	"github.com/kubegrace/kubegrace/shutdown/unixsocket"
)

const longRun = `run delays the shutdown of this machine until its pods have ended. It finds
them in the container runtime, where a kubelet has left their names, grace periods
and preStop hooks. Priorities and sidecars come from the API server (--kubeconfig) or
from the kubelet (--kubelet-pods), and are kept while neither answers. Without either
the priority is that of --priority; pods of kube-system and in the network of the host
end last.

--stop-unit names a unit that would start the pods again. It is stopped before the
first pod, and started again if the shutdown is called off.

The agent waits for what is missing, such as the runtime or the API server, and says
so in the log, on /healthz and in systemctl status. SIGTERM and SIGINT (Ctrl-C) end
the agent; the pods run on. While pods are being stopped, a first signal changes
nothing and a second one ends the waiting.`

// clouds returns the values of --notice, with the metadata service of each cloud.
func clouds() map[string]func() notice.Provider {
	return map[string]func() notice.Provider{"ec2": notice.EC2, "gce": notice.GCE, "azure": notice.Azure}
}

// newRun makes kubegrace-node run.
func (c commands) newRun() *cobra.Command {
	f := &flags{}
	command := &cobra.Command{
		Use: "run", Short: "Delays the shutdown of this machine until its pods have ended", Long: longRun,
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error { return c.run(command, f) },
	}
	command.Flags().SortFlags = false
	f.addAll(command.Flags())
	return command
}

// run makes the agent and runs it. Only invalid input keeps the agent from running. If the state folder or a stored file
// cannot be used, run logs that, and the agent runs without it.
func (c commands) run(command *cobra.Command, f *flags) error {
	opts, warnings, err := c.agentOptions(f)
	if err != nil {
		return err
	}
	screen := newScreen(command, f.verbosity)
	defer screen.close()
	klog.SetLogger(screen.logger) // for libraries that log with klog
	ctx := klog.NewContext(command.Context(), screen.logger)
	for _, warning := range warnings {
		screen.view.Say("Warning: " + warning)
	}
	if err := makeStateDir(f.stateDir); err != nil {
		screen.logger.Error(err, "Continues without a state folder")
		f.stateDir = ""
	}
	opts.StateDir, opts.Signals, opts.View, opts.Logger, opts.Notify = f.stateDir, c.signals(), screen.view, screen.logger, notify
	runDir := filepath.Join("/", f.hostRoot, "run")
	if opts.Units, err = units.New(runDir, f.stopUnits); err != nil {
		screen.logger.Error(err, "Continues without what a previous agent has stored")
	}
	if err := c.addPodSources(ctx, f, &opts); err != nil {
		return err
	}
	if f.listen != "" {
		opts.Listen = func() (net.Listener, error) { return net.Listen("tcp", f.listen) }
	}
	if f.socket != "" {
		opts.Control = func() (net.Listener, error) { return socket.Listen(f.socket) }
	}
	a, err := agent.New(opts)
	if err != nil {
		return errors.Join(err, opts.Runtime.Close())
	}
	return a.Run(ctx)
}

// agentOptions returns the options that depend only on flags and on files that must be valid. It waits for
// nothing.
func (c commands) agentOptions(f *flags) (opts agent.Options, warnings []string, err error) {
	if err := f.validate(); err != nil {
		return opts, nil, err
	}
	opts = agent.Options{Gates: c.gate, Limit: f.limit, Policy: func(source.Kind) shutdown.PodPolicy { return shutdown.PodPolicy(f.podPolicy) }}
	if opts.Config, warnings, err = shutdownConfig(f.config, c.gate); err != nil {
		return opts, nil, err
	}
	if len(opts.Config.Schedule(true)) == 0 {
		return opts, nil, fmt.Errorf("%s: has no shutdownGracePeriod, so nothing would be drained", f.config)
	}
	if len(f.stopUnits) > 0 {
		if err := checkKubeletConfig(f.kubeletConfig); err != nil {
			return opts, nil, err
		}
	}
	if path, isPath := strings.CutPrefix(f.source, unixPrefix); isPath {
		opts.Source, err = unixsocket.New(unixsocket.Options{Path: path})
	} else if f.source == sourceLogind {
		opts.UsesLogind = true
		opts.Source, err = logind.New(logind.Options{HostRoot: f.hostRoot, Who: "kubegrace-node"})
	}
	if err != nil {
		return opts, nil, fmt.Errorf("--source: %w", err)
	}
	if provider := clouds()[f.notice]; provider != nil {
		cloud := provider()
		opts.Notice = &cloud
	}
	if f.kubeconfig != "" {
		if opts.NodeName, err = f.nodeObjectName(); err != nil {
			return opts, nil, err
		}
		opts.APIServer = apiserver.New(f.kubeconfig, opts.NodeName, opts.Gates)
	}
	return opts, warnings, nil
}

// checkKubeletConfig returns an error if a kubelet's configuration file makes the kubelet drain the machine
// itself. A file that is missing or cannot be read is no error.
func checkKubeletConfig(file string) error {
	kubelet, err := kubeletconfig.Load(file, "")
	drainsItself := err == nil && len(kubelet.Schedule()) > 0 // if the file cannot be read, the agent detects such a kubelet by its lock
	if !drainsItself {
		return nil
	}
	return fmt.Errorf("the kubelet has a shutdownGracePeriod of its own (%s has %s): both would act on the same signal, and stop the same pods; "+
		"set it to 0 there and start the kubelet again, the seconds stand in the agent's --config", file, output.ConfigText(kubelet.Shutdown))
}

// addPodSources adds to opts what the agent gets its pods from: the container runtime, the stored information and
// the kubelet. It does not wait until these answer.
func (c commands) addPodSources(ctx context.Context, f *flags, opts *agent.Options) (err error) {
	if opts.Info, err = podinfo.New(f.stateDir, f.priorities); err != nil {
		klog.FromContext(ctx).Error(err, "Continues without what a previous agent has stored")
	}
	runtime, err := criruntime.Dial(ctx, f.endpoint, criruntime.Options{HostIP: hostIP()})
	if err != nil {
		return fmt.Errorf("--container-runtime-endpoint: %w", err)
	}
	opts.Runtime = runtimeWithInfo{runtime, opts.Info}
	if f.kubeletPods != "" {
		opts.Kubelet = f.requestKubeletPods
	}
	return nil
}

// runtimeWithInfo is a container runtime that adds to its pods what it does not know itself and info has: their priorities and
// sidecars.
type runtimeWithInfo struct {
	*criruntime.Runtime
	info *podinfo.Info
}

// Pods returns the pods of the runtime, enriched with info.
func (r runtimeWithInfo) Pods(ctx context.Context) ([]*v1.Pod, error) {
	pods, err := r.Runtime.Pods(ctx)
	for i, pod := range pods {
		pods[i] = r.info.Enrich(pod)
	}
	return pods, err
}

// requestKubeletPods requests the kubelet's pods. It reads the credentials for every request, because they rotate.
func (f *flags) requestKubeletPods(ctx context.Context) ([]v1.Pod, error) {
	credentials := &rest.Config{}
	if f.kubeletCredentials != "" {
		var err error
		if credentials, err = apiserver.Config(f.kubeletCredentials); err != nil {
			return nil, err
		}
	}
	return podinfo.KubeletPods(ctx, f.kubeletPods, credentials)
}

// hostIP returns this machine's first address that other machines can reach; "" if there is none yet. The httpGet hooks of
// pods in the host's network send their requests to it, unless they name another host.
func hostIP() string {
	addresses, _ := net.InterfaceAddrs() // if it fails there is no address, and such hooks must name their host
	for _, address := range addresses {
		if network, ok := address.(*net.IPNet); ok && network.IP.IsGlobalUnicast() {
			return network.IP.String()
		}
	}
	return ""
}

// notify sends a state to systemd (sd_notify(3)). It does nothing if systemd has not started the agent.
func notify(state string) error {
	_, err := daemon.SdNotify(false, state)
	return err
}
