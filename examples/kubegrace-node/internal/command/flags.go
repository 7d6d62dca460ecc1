package command

import (
	"cmp"
	"errors"
	"maps"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/kubegrace/kubegrace/examples/kubegrace-node/internal/inspect"
	"github.com/kubegrace/kubegrace/examples/kubegrace-node/internal/podinfo"
	"github.com/kubegrace/kubegrace/examples/kubegrace-node/internal/socket"
	"github.com/kubegrace/kubegrace/shutdown"
)

const (
	sourceLogind, sourceNone, unixPrefix = "logind", "none", "unix://"
	// defaultStateDir is the StateDirectory of kubegrace-node.service.
	defaultStateDir = "/var/lib/kubegrace-node"
	defaultEndpoint = "unix:///run/containerd/containerd.sock"
)

// flags has the flags of kubegrace-node run.
type flags struct {
	config, endpoint                string
	priorities                      []podinfo.Rule
	source, notice, hostRoot        string
	stopUnits                       []string
	kubeletConfig                   string
	kubeconfig, nodeName            string
	kubeletPods, kubeletCredentials string
	podPolicy                       string
	limit                           time.Duration
	stateDir, listen, socket        string
	verbosity                       int
}

// addAll adds the flags of kubegrace-node run.
func (f *flags) addAll(fs *pflag.FlagSet) {
	fs.StringVar(&f.config, "config", "", configUsage)
	fs.StringVar(&f.endpoint, "container-runtime-endpoint", defaultEndpoint, "`address` of the container runtime, as for the kubelet")
	fs.Func("priority", "`rule` for pods whose priority no source knows: NAMESPACE=PRIORITY or NAMESPACE/NAME=PRIORITY, where * stands for any text; may be repeated, the first that matches counts. "+
		"If none matches, pods of kube-system and in the network of the host end last, and all others first", func(text string) error {
		rule, err := podinfo.ParseRule(text)
		f.priorities = append(f.priorities, rule)
		return err
	})
	fs.DurationVar(&f.limit, "limit", 0, "longest `time` that this platform allows for a shutdown, for example 30s on a spot machine; 0 means no limit")
	fs.StringVar(&f.stateDir, "state-dir", defaultStateDir, "`folder` that keeps the state of a shutdown, so that a restarted agent continues it; empty means that it is not kept")
	fs.StringVar(&f.source, "source", sourceLogind, "who announces the shutdown: `logind`, unix:///path/to/socket (a program of the host), or none")
	inspect.OneOf(fs, &f.notice, "notice", "", "`cloud` whose termination notices begin a shutdown too", slices.Sorted(maps.Keys(clouds()))...)
	f.notice = "" // the default is no cloud; OneOf has set the first
	fs.StringArrayVar(&f.stopUnits, "stop-unit", nil, "`unit` of systemd that would start pods again, such as kubelet.service: it is stopped before the pods, and started again if the shutdown is called off; may be repeated")
	fs.StringVar(&f.kubeletConfig, "kubelet-config", "/var/lib/kubelet/config.yaml", "with --stop-unit, configuration `file` of the kubelet, which must have no shutdownGracePeriod of its own")
	fs.StringVar(&f.kubeconfig, "kubeconfig", "", "kubeconfig `file` of an API server that knows the pods, and receives their final statuses; the kubelet's own will do")
	fs.StringVar(&f.nodeName, "node-name", "", "with --kubeconfig, `name` of the node's object; empty means this machine's host name in lower case")
	inspect.OneOf(fs, &f.podPolicy, "pod-policy", "", "with --kubeconfig, `what` happens to the status of pods", string(shutdown.PolicySetTerminal), string(shutdown.PolicyLeaveAsIs), string(shutdown.PolicyDelete))
	fs.StringVar(&f.kubeletPods, "kubelet-pods", "", "`URL` of the kubelet's own list of pods, which tells priorities and sidecars without an API server: https://127.0.0.1:10250/pods, with --kubelet-credentials")
	fs.StringVar(&f.kubeletCredentials, "kubelet-credentials", "", "with --kubelet-pods, kubeconfig `file` whose user and certificate authority are for the kubelet")
	fs.StringVar(&f.hostRoot, "host-root", "", "`folder` that has the /etc and /run of the host, for an agent in a container; empty means /")
	fs.StringVar(&f.listen, "listen", "127.0.0.1:10290", "`address` that serves /metrics and /healthz; empty means none")
	fs.StringVar(&f.socket, "socket", socket.Default, "`path` of the socket on which the other commands speak to the agent, for root and its own user; empty means none")
	fs.IntVarP(&f.verbosity, "v", "v", 0, "`level` of detail of the log, 0 to 5")
}

// validate checks all flags, without reading files. The error names every invalid flag.
func (f *flags) validate() error {
	var errs field.ErrorList
	flag := field.NewPath // the path of a field is here the name of a flag
	if f.config == "" {
		errs = append(errs, field.Required(flag("--config"), "a file with shutdownGracePeriod"))
	}
	isSource := f.source == sourceLogind || f.source == sourceNone || strings.HasPrefix(f.source, unixPrefix+"/")
	if !isSource {
		errs = append(errs, field.NotSupported(flag("--source"), f.source, []string{sourceLogind, unixPrefix + "/path/to/socket", sourceNone}))
	}
	if f.limit < 0 {
		errs = append(errs, field.Invalid(flag("--limit"), f.limit.String(), "must not be negative"))
	}
	for _, unit := range f.stopUnits {
		isUnitName := strings.Contains(unit, ".") && !strings.ContainsAny(unit, "/ ")
		if !isUnitName {
			errs = append(errs, field.Invalid(flag("--stop-unit"), unit, "must be the whole name of a unit, such as kubelet.service"))
		}
		unitContains := func(name string) bool { return strings.Contains(unit, name) }
		if slices.ContainsFunc([]string{"k3s", "k0s", "rke2", "containerd", "crio", "docker"}, unitContains) {
			errs = append(errs, field.Forbidden(flag("--stop-unit"), unit+" has the container runtime in it, without which no pod can be ended"))
		}
		if slices.ContainsFunc([]string{"kubegrace-node.", "dbus", "systemd-logind."}, unitContains) {
			errs = append(errs, field.Forbidden(flag("--stop-unit"), unit+" is needed to end pods"))
		}
	}
	if f.nodeName != "" && f.kubeconfig == "" {
		errs = append(errs, field.Forbidden(flag("--node-name"), "is only for --kubeconfig"))
	}
	address, err := url.Parse(f.kubeletPods)
	isHTTPS := err == nil && address.Scheme == "https" // over http any process could answer in the kubelet's place, and give false priorities
	if f.kubeletPods != "" && !isHTTPS {
		errs = append(errs, field.Invalid(flag("--kubelet-pods"), f.kubeletPods, "must be a URL of https"))
	}
	if f.kubeletCredentials != "" && f.kubeletPods == "" {
		errs = append(errs, field.Forbidden(flag("--kubelet-credentials"), "is only for --kubelet-pods"))
	}
	return errs.ToAggregate()
}

// nodeObjectName returns the name of this machine's Node object: --node-name, or the host name in lower case.
func (f *flags) nodeObjectName() (string, error) {
	host, err := os.Hostname()
	name := cmp.Or(f.nodeName, strings.ToLower(host))
	if problems := validation.IsDNS1123Subdomain(name); len(problems) > 0 {
		return "", errors.Join(field.Invalid(field.NewPath("--node-name"), name, strings.Join(problems, ", ")), err)
	}
	return name, nil
}
