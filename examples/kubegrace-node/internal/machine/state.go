package machine

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/kubegrace/kubegrace/examples/kubegrace-node/internal/api"
	"github.com/kubegrace/kubegrace/examples/kubegrace-node/internal/kubeletconfig"
	"github.com/kubegrace/kubegrace/examples/kubegrace-node/internal/login1"
	"github.com/kubegrace/kubegrace/examples/kubegrace-node/internal/nodeplan"
	"github.com/kubegrace/kubegrace/examples/kubegrace-node/internal/socket"
)

// lookTimeout is how long logind and the agent together have to answer.
const lookTimeout = 10 * time.Second

// Options says where the machine is. The zero value is the machine on which the program runs.
type Options struct {
	// Root is the folder with the machine's file system, as a container sees it, and with the socket of its system bus.
	// "" means /, and the bus of DBUS_SYSTEM_BUS_ADDRESS if it is set.
	Root string
	// ConfigFile replaces the configuration file and folder that the kubelet's command line names; "" means
	// these. The path is used as it is: it is not looked up below Root. The file may also contain the response of
	// the kubelet's /configz endpoint.
	ConfigFile string
	// Kubeconfig is the kubeconfig file for the API server, or [InCluster]. It is not looked up below Root. ""
	// means the file that the kubelet's command line names, below Root.
	Kubeconfig string
	// NodeName is the name of the node; "" means that of the kubelet's command line, or the host's.
	NodeName string
}

// Unseen is something that could not be seen.
type Unseen struct {
	// What names the thing, Why says why it could not be seen, and WayOut says what the user can do; "":
	// nothing known.
	What   string `json:"what"`
	Why    string `json:"why"`
	WayOut string `json:"wayOut,omitempty"`
}

// State is what could be seen of a machine.
type State struct {
	// Logind is nil if systemd-logind could not be asked.
	Logind *login1.State `json:"logind,omitempty"`
	// Mask is the file that masks systemd-logind.service; "": none does.
	Mask string `json:"mask,omitempty"`
	// LimitFiles are the files that set logind's limit, in the order in which it reads them: the last
	// one overrides the others.
	LimitFiles []LimitFile `json:"limitFiles,omitempty"`
	// Agent is the status that kubegrace-node has sent; nil: it does not answer.
	Agent *api.Status `json:"agent,omitempty"`
	// Kubelets are the kubelets that run.
	Kubelets []Kubelet `json:"kubelets,omitempty"`
	// ConfigSource names where the kubelet's configuration was read; "": it was not.
	ConfigSource string `json:"configSource,omitempty"`
	// ConfigError is the error of reading the kubelet's configuration files; nil if they were read, or if none
	// are known.
	ConfigError error `json:"-"`
	// Config is the kubelet's configuration; the zero value if it is not known.
	Config kubeletconfig.Config `json:"-"`
	// NotSeen names what could not be seen.
	NotSeen []Unseen `json:"notSeen,omitempty"`

	options        Options // Root is never ""
	hasUnreadFiles bool    // some of logind's files could not be read
}

// Look inspects a machine, all but its pods ([State.ReadPods]). logind and the agent together have 10 s to
// answer. What cannot be seen is added to NotSeen.
func Look(ctx context.Context, o Options) *State {
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	o.Root = cmp.Or(o.Root, "/")
	s := &State{options: o}
	s.lookAtMask()
	s.lookAtLogind(ctx)
	s.lookAtLimitFiles()
	s.lookAtAgent(ctx)
	var err error
	if s.Kubelets, err = kubelets(s.pathBelowRoot("proc")); err != nil {
		s.addUnseen("the processes", err, "run it as root, in a container with the host's PID namespace (hostPID)")
	}
	s.lookAtConfig()
	return s
}

// pathBelowRoot returns where this program finds a file of the machine: below Root. "" stays "".
func (s *State) pathBelowRoot(onMachine string) string {
	if onMachine == "" {
		return ""
	}
	return filepath.Join(s.options.Root, onMachine)
}

// addUnseen adds to NotSeen what could not be seen, why, and what the user can do about it (wayOut). If wayOut is "" and
// permission was denied, it is to run as root. The error is shown without the name of the file.
func (s *State) addUnseen(what string, err error, wayOut string) {
	if wayOut == "" && errors.Is(err, fs.ErrPermission) {
		wayOut = "run it as root"
	}
	var pathError *fs.PathError
	if errors.As(err, &pathError) {
		err = pathError.Err
	}
	why := err.Error()
	if _, rest, namesFile := strings.Cut(why, what+": "); namesFile { // What is the file's name, which need not be shown twice
		why = rest
	}
	s.NotSeen = append(s.NotSeen, Unseen{What: what, Why: why, WayOut: wayOut})
}

// lookAtMask looks for a file that masks logind's unit: a link to /dev/null, or an empty file.
func (s *State) lookAtMask() {
	for _, folder := range []string{"/etc/systemd/system", "/run/systemd/system"} {
		unit := folder + "/systemd-logind.service"
		info, err := os.Stat(s.pathBelowRoot(unit))
		if err == nil && (!info.Mode().IsRegular() || info.Size() == 0) {
			s.Mask = unit
			return
		}
	}
}

// lookAtLogind asks logind for its limit and locks, on the system bus of the machine, whose socket is below Root. NotSeen
// does not have a logind that is masked: it cannot run, and the verdict says so.
func (s *State) lookAtLogind(ctx context.Context) {
	address := ""
	if s.options.Root != "/" {
		address = "unix:path=" + s.pathBelowRoot("run/dbus/system_bus_socket")
	}
	logind, err := login1.Look(ctx, address)
	switch {
	case err == nil:
		s.Logind = &logind
	case s.Mask != "": // logind cannot run
	default:
		wayOut := "in a container: mount the host's /run/dbus, and give --root"
		if errors.Is(err, login1.ErrNotRunning) {
			wayOut = "systemctl status systemd-logind"
		}
		s.addUnseen("who holds which locks, and logind's limit", err, wayOut)
	}
}

// lookAtConfig reads the kubelet's configuration from the file that the user gave, or else from the files that the command
// line of the first kubelet names. A kubelet without such files uses its defaults. If the configuration cannot be read,
// NotSeen says why.
func (s *State) lookAtConfig() {
	if file := s.options.ConfigFile; file != "" {
		s.readConfig(file, "", nil) // no drop-ins, and no gates of a command line
		return
	}
	if len(s.Kubelets) == 0 { // there is no configuration; something is missing only if a kubelet holds the lock
		if s.findLock(login1.Lock.IsKubelets) != nil && !s.couldNotSee("the processes") {
			s.addUnseen("the kubelet", errors.New("its lock is held, but no process was recognized as a kubelet"), "give --config")
		}
		return
	}
	switch kubelet := s.Kubelets[0]; {
	case kubelet.Program != "kubelet":
		s.addUnseen("the configuration of "+kubelet.text(), errors.New("its command line does not have it"), "save what kubectl get --raw /api/v1/nodes/NODE/proxy/configz prints, and give it with --config")
	case kubelet.ConfigFile == "" && kubelet.ConfigDir == "":
		s.ConfigSource = "the kubelet's defaults: it has neither --config nor --config-dir"
	default:
		s.readConfig(s.pathBelowRoot(kubelet.ConfigFile), s.pathBelowRoot(kubelet.ConfigDir), kubelet.gates)
	}
}

// readConfig reads the kubelet's configuration from a file, a folder of drop-ins, or both; "": there is none. The
// gates of the kubelet's command line override those of its files.
func (s *State) readConfig(file, folder string, gates map[string]bool) {
	config, err := kubeletconfig.Load(file, folder)
	if err != nil {
		s.ConfigError = err
		s.addUnseen("the kubelet's configuration", err, "")
		return
	}
	if config.FeatureGates == nil {
		config.FeatureGates = map[string]bool{}
	}
	maps.Copy(config.FeatureGates, gates)
	s.Config = config
	s.ConfigSource = strings.Join(nonEmpty(file, folder), " and ")
	if root := s.options.Root; root != "/" { // ConfigSource names the files as the machine does, without Root
		s.ConfigSource = strings.ReplaceAll(s.ConfigSource, strings.TrimSuffix(root, "/")+"/", "/")
	}
}

// nonEmpty returns the paths that are not "".
func nonEmpty(paths ...string) []string {
	return slices.DeleteFunc(paths, func(path string) bool { return path == "" })
}

// findLock returns the first lock for which isWanted is true; nil: nobody holds one, or logind could not be asked.
func (s *State) findLock(isWanted func(login1.Lock) bool) *login1.Lock {
	if s.Logind == nil {
		return nil
	}
	i := slices.IndexFunc(s.Logind.Locks, isWanted)
	if i < 0 {
		return nil
	}
	return &s.Logind.Locks[i]
}

// OverridingFile returns the path of the file that overrides an agent's drop-in, so that the agent cannot raise
// the limit; "": there is none.
func (s *State) OverridingFile(agent nodeplan.Agent) string {
	file := s.fileOverridingKubelet()
	if agent == nodeplan.Kubegrace {
		file = s.fileOverriding(KubegraceDropIn)
	}
	if file == nil {
		return ""
	}
	return file.Path
}

// lookAtAgent asks kubegrace-node for its status on its socket, which only root may open. A missing socket
// means that no agent runs, because systemd removes the folder of the socket when the agent ends.
func (s *State) lookAtAgent(ctx context.Context) {
	var status api.Status
	err := api.Request(ctx, s.pathBelowRoot(socket.Default), http.MethodGet, "/status", &status)
	switch {
	case err == nil:
		s.Agent = &status
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ECONNREFUSED): // no agent runs, or it has no socket
	default:
		s.addUnseen("kubegrace-node", err, "")
	}
}

// kubegraceDropIn returns the logind drop-in that an agent with kubegrace has written; nil: there is none.
func (s *State) kubegraceDropIn() *LimitFile {
	for i := range s.LimitFiles {
		if s.LimitFiles[i].Writer == "kubegrace" {
			return &s.LimitFiles[i]
		}
	}
	return nil
}
