package command

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// The values of --runtime, --source and --log-format.
const (
	runtimeEmbedded = "embedded"
	runtimeCRI      = "cri"

	sourceAuto   = "auto"
	sourceLogind = "logind"
	sourceManual = "manual"

	logText = "text"
	logJSON = "json"
)

// maxVerbosity is the maximum of -v.
const maxVerbosity = 5

// flags are the flags of the agent. nodeagent plan has those of addPlanFlags.
type flags struct {
	config, manifests string
	runtime, endpoint string
	source, hostRoot  string
	shutdownAfter     time.Duration
	stateDir, listen  string
	socket            string
	limit             time.Duration
	logFormat         string
	verbosity         int

	kubeconfig, nodeName string
	podPolicy            map[string]string
}

// addPlanFlags adds the flags that the plan of a shutdown depends on.
func (f *flags) addPlanFlags(fs *pflag.FlagSet) {
	fs.StringVar(&f.config, "config", "", "kubelet configuration `file` (KubeletConfiguration, YAML or JSON), of which shutdownGracePeriod, shutdownGracePeriodCriticalPods, shutdownGracePeriodByPodPriority and featureGates are obeyed")
	fs.StringVar(&f.manifests, "manifests", "", "`folder` of pod manifests (.yaml, .yml, .json) to run; required")
	fs.StringVar(&f.runtime, "runtime", runtimeEmbedded, "what runs the containers: `embedded` (none are run: they are played in this process, as annotations of the pods say) or cri (a container runtime)")
	fs.StringVar(&f.kubeconfig, "kubeconfig", "", "kubeconfig `file` of an API server to which the node's shutdown and its pods, as mirror pods, are reported; empty means no API server")
	fs.StringVar(&f.nodeName, "node-name", "", "with --kubeconfig, `name` of the node's object, which must exist; empty means this machine's host name in lower case")
	fs.DurationVar(&f.limit, "limit", 0, "longest `time` that this platform allows for a shutdown, for example 30s on a spot machine; 0 means no limit")
}

// addAll adds all flags of the agent.
func (f *flags) addAll(fs *pflag.FlagSet) {
	f.addPlanFlags(fs)
	fs.StringVar(&f.endpoint, "container-runtime-endpoint", "", "`address` of the container runtime, with --runtime=cri; for example unix:///run/containerd/containerd.sock")
	fs.StringVar(&f.source, "source", sourceAuto, "who announces the shutdown: `auto` (logind if this machine has it and containers are run; else manual), logind, or manual (SIGTERM to this process, or --shutdown-after)")
	fs.StringVar(&f.hostRoot, "host-root", "", "`folder` that has the /etc and /run of the host, for an agent in a container; the agent raises logind's limit there; empty means /")
	fs.DurationVar(&f.shutdownAfter, "shutdown-after", 0, "with --source=manual, shut down by itself this `time` after the pods have started; 0 means never")
	fs.StringVar(&f.stateDir, "state-dir", "", "`folder` that keeps the state of a shutdown, so that a restarted agent goes on with it; empty means that it is not kept")
	fs.StringVar(&f.listen, "listen", "127.0.0.1:0", "`address` that serves /metrics, /healthz, /pods, /plan and /report; port 0 means any free port, which the agent prints, and empty means none")
	fs.StringVar(&f.socket, "socket", "", "`path` of the socket on which drain, stop and report speak to the agent, for root and its own user; the unit has /run/nodeagent/control.sock; empty means none")
	fs.StringToStringVar(&f.podPolicy, "pod-policy", nil, podPolicyUsage())
	fs.Lookup("pod-policy").DefValue = "" // for --help, which would say []
	fs.StringVar(&f.logFormat, "log-format", logText, "form of the log: `text` or json")
	fs.IntVarP(&f.verbosity, "v", "v", 0, "`level` of detail of the log, 0 to 5")
}

// validate returns the errors of all flags, without reading files.
func (f *flags) validate() error {
	var errs field.ErrorList
	flag := field.NewPath
	if f.manifests == "" {
		errs = append(errs, field.Required(flag("--manifests"), "a folder of pod manifests"))
	}
	if f.runtime != runtimeEmbedded && f.runtime != runtimeCRI {
		errs = append(errs, field.NotSupported(flag("--runtime"), f.runtime, []string{runtimeEmbedded, runtimeCRI}))
	}
	if f.runtime == runtimeCRI && f.endpoint == "" {
		errs = append(errs, field.Required(flag("--container-runtime-endpoint"), "with --runtime=cri; for example unix:///run/containerd/containerd.sock"))
	}
	if f.runtime == runtimeEmbedded && f.endpoint != "" {
		errs = append(errs, field.Invalid(flag("--container-runtime-endpoint"), f.endpoint, "is only for --runtime=cri"))
	}
	if f.source != sourceAuto && f.source != sourceLogind && f.source != sourceManual {
		errs = append(errs, field.NotSupported(flag("--source"), f.source, []string{sourceAuto, sourceLogind, sourceManual}))
	}
	if f.logFormat != logText && f.logFormat != logJSON {
		errs = append(errs, field.NotSupported(flag("--log-format"), f.logFormat, []string{logText, logJSON}))
	}
	if f.limit < 0 {
		errs = append(errs, field.Invalid(flag("--limit"), f.limit.String(), "must not be negative"))
	}
	if f.verbosity < 0 || f.verbosity > maxVerbosity {
		errs = append(errs, field.Invalid(flag("-v"), f.verbosity, fmt.Sprintf("must be from 0 to %d", maxVerbosity)))
	}
	if f.shutdownAfter < 0 {
		errs = append(errs, field.Invalid(flag("--shutdown-after"), f.shutdownAfter.String(), "must not be negative"))
	}
	if f.shutdownAfter > 0 && f.source == sourceLogind {
		errs = append(errs, shutdownAfterWithLogind(f.shutdownAfter))
	}
	return joinErrors(append(errs, f.validateAPIServer()...))
}

// shutdownAfterWithLogind returns the error of --shutdown-after on a machine with logind:
// that shutdown would stop the pods, but not the machine.
func shutdownAfterWithLogind(after time.Duration) *field.Error {
	return field.Invalid(field.NewPath("--shutdown-after"), after.String(), "is only for --source=manual; here logind announces the shutdown")
}

// joinErrors returns a list of errors as one error, or nil if the list is empty.
func joinErrors(list field.ErrorList) error {
	errs := make([]error, len(list))
	for i, err := range list {
		errs[i] = err
	}
	return errors.Join(errs...)
}
