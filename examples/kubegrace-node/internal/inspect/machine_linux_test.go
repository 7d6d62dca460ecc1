package inspect_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/godbus/dbus/v5"
	"github.com/stretchr/testify/require"

	"github.com/kubegrace/kubegrace/examples/kubegrace-node/internal/api"
	"github.com/kubegrace/kubegrace/examples/kubegrace-node/internal/machine"
	"github.com/kubegrace/kubegrace/examples/kubegrace-node/internal/socket"
	"github.com/kubegrace/kubegrace/internal/logindfake"
	"github.com/kubegrace/kubegrace/internal/logindhost"
)

// kubeletWhy and kubegraceWhy are the reasons that the kubelet and kubegrace-node give for their locks. kubeletFile is
// the drop-in that a kubelet writes for logind, and configHeader is the beginning of a kubelet's configuration file.
const (
	kubeletWhy   = "Kubelet needs time to handle node shutdown"
	kubegraceWhy = "Pods need time to end before the node shuts down"
	kubeletFile  = "/etc/systemd/logind.conf.d/99-kubelet.conf"
	configHeader = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"
)

// fakeMachine is what kubegrace-node status looks at in these tests: a folder in the place of the file system,
// and a bus with a fake logind.
type fakeMachine struct {
	t      *testing.T
	root   string // the folder
	bus    *logindhost.Bus
	login1 *logindfake.Login1
	extra  []string // more arguments of status
}

// newMachine returns a machine on which only logind runs: no kubelet, no lock, no configuration.
func newMachine(t *testing.T) *fakeMachine {
	t.Helper()
	root, err := os.MkdirTemp("", "machine") // not t.TempDir: its path may be too long for a socket
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(root)) })
	m := &fakeMachine{t: t, root: root}
	require.NoError(t, os.MkdirAll(filepath.Join(root, "run/dbus"), 0o700))
	m.bus = logindhost.StartBus(t, filepath.Join(root, "run/dbus/system_bus_socket"))
	m.login1 = logindfake.StartLogin1(t, m.bus.Address)
	m.write("/proc/1/cmdline", "/sbin/init\x00")
	m.write("/etc/hostname", "worker-1\n")
	return m
}

// write writes a file of the machine.
func (m *fakeMachine) write(path, text string) {
	m.t.Helper()
	full := filepath.Join(m.root, path)
	require.NoError(m.t, os.MkdirAll(filepath.Dir(full), 0o700))
	require.NoError(m.t, os.WriteFile(full, []byte(text), 0o600))
}

// remove removes a file or a folder of the machine, with all that is in it.
func (m *fakeMachine) remove(path string) {
	m.t.Helper()
	require.NoError(m.t, os.RemoveAll(filepath.Join(m.root, path)))
}

// writeDropIn writes a configuration file of logind that sets InhibitDelayMaxSec. The fake logind does not read it:
// the caller also sets the limit of m.login1.
func (m *fakeMachine) writeDropIn(path string, limit time.Duration) {
	m.t.Helper()
	m.write(path, fmt.Sprintf("# some words\n[Login]\nInhibitDelayMaxSec=%.0f\n", limit.Seconds()))
}

// addKubelet makes a kubelet appear among the processes of the machine, with this configuration and these additional
// flags. The kubelet has the PID of the test process, because logind says of each lock that the test takes that this
// PID holds it.
func (m *fakeMachine) addKubelet(config string, flags ...string) {
	m.t.Helper()
	m.write("/var/lib/kubelet/config.yaml", configHeader+config)
	words := append([]string{"/usr/bin/kubelet", "--config=/var/lib/kubelet/config.yaml"}, flags...)
	m.write(fmt.Sprintf("/proc/%d/cmdline", os.Getpid()), strings.Join(words, "\x00")+"\x00")
}

// addStockKubelet makes a stock kubelet appear whose shutdownGracePeriod is 30 s: its configuration, its process, and its
// drop-in, whose limit logind uses. The kubelet has no lock; a test that needs one calls takeLock. extraConfig is appended to
// the configuration, and flags to the command line.
func (m *fakeMachine) addStockKubelet(extraConfig string, flags ...string) {
	m.t.Helper()
	m.writeDropIn(kubeletFile, 30*time.Second)
	m.login1.SetLimit(30 * time.Second)
	m.addKubelet(grace30+extraConfig, flags...)
}

// writePods writes a list of pods to a file: nodePods, and the items that extra has as YAML. It returns the arguments that make
// status read the file.
func (m *fakeMachine) writePods(extra ...string) []string {
	m.t.Helper()
	m.write("/pods.yaml", nodePods+strings.Join(extra, ""))
	return []string{"--pods", filepath.Join(m.root, "pods.yaml")}
}

// takeLock takes an inhibitor lock for shutdowns, which is held until the test ends.
func (m *fakeMachine) takeLock(who, why string) {
	m.t.Helper()
	var lock dbus.UnixFD
	err := m.bus.Connect().Object("org.freedesktop.login1", "/org/freedesktop/login1").
		CallWithContext(m.t.Context(), "org.freedesktop.login1.Manager.Inhibit", 0, "shutdown", who, why, "delay").Store(&lock)
	require.NoError(m.t, err)
	m.t.Cleanup(func() { require.NoError(m.t, syscall.Close(int(lock))) })
}

// args returns the arguments of kubegrace-node of kubegrace-node status.
func (m *fakeMachine) args(more ...string) []string {
	return slices.Concat([]string{"status", "--root", m.root}, m.extra, more)
}

// wide is a number of columns at which no line is wrapped. Otherwise the length of a PID would decide where a
// line breaks.
const wide = "2000"

// runStatus runs kubegrace-node status on the machine, and makes its output the same in every run (see stable).
func (m *fakeMachine) runStatus(more ...string) result {
	m.t.Helper()
	m.t.Setenv("COLUMNS", wide)
	r := runCommand(m.t, noInput, m.args(more...)...)
	r.out = m.stable(r.out)
	return r
}

// stable replaces what differs from run to run: the PID becomes 812, the user 0, and the folder ROOT.
func (m *fakeMachine) stable(text string) string {
	text = regexp.MustCompile(`\b`+strconv.Itoa(os.Getpid())+`\b`).ReplaceAllString(text, "812")
	text = regexp.MustCompile(`user \d+`).ReplaceAllString(text, "user 0")
	return strings.ReplaceAll(text, m.root, "ROOT")
}

// noExtraConfig says that nothing is appended to a configuration.
const noExtraConfig = ""

// grace30 is a configuration with 30 s for all pods, of which 10 s are for critical pods, so that the others
// get 20 s.
const grace30 = "shutdownGracePeriod: 30s\nshutdownGracePeriodCriticalPods: 10s\n"

// machineState is a state in which an operator may find a machine. The golden file node-NAME.golden has the output of
// kubegrace-node status for it.
type machineState struct {
	name       string
	exitStatus machine.Status       // of kubegrace-node status
	prepare    func(m *fakeMachine) // brings a new machine into the state
}

// machineStates returns the states of a machine, beginning with the one in which all is well.
func machineStates() []machineState {
	return []machineState{
		// The kubelet holds its lock, and its 20 s and 10 s are enough for nodePods.
		{name: "lock-held", exitStatus: machine.Held, prepare: func(m *fakeMachine) {
			m.addStockKubelet(noExtraConfig)
			m.takeLock("kubelet", kubeletWhy)
		}},
		// Of 20 s, 10 s are for pods that are not critical, and orders-0 asks for 15 s.
		{name: "pods-cut", exitStatus: machine.Lossy, prepare: func(m *fakeMachine) {
			m.writeDropIn(kubeletFile, 20*time.Second)
			m.login1.SetLimit(20 * time.Second)
			m.addKubelet("shutdownGracePeriod: 20s\nshutdownGracePeriodCriticalPods: 10s\n")
			m.takeLock("kubelet", kubeletWhy)
		}},
		// The kubelet has no lock. The lock of another program does not wait for pods.
		{name: "none", exitStatus: machine.Unheld, prepare: func(m *fakeMachine) {
			m.addStockKubelet(noExtraConfig)
			m.takeLock("unattended-upgrades", "Stop ongoing upgrades")
		}},
		// A drop-in that sorts after the kubelet's sets 20 s. The kubelet needs 30 s, so it has no lock.
		{name: "limit-too-low", exitStatus: machine.Unheld, prepare: func(m *fakeMachine) {
			m.writeDropIn("/usr/lib/systemd/logind.conf.d/unattended-upgrades-logind-maxdelay.conf", 20*time.Second)
			m.writeDropIn(kubeletFile, 30*time.Second)
			m.login1.SetLimit(20 * time.Second)
			m.addKubelet(grace30)
		}},
		// The kubelet holds its lock, and then the limit was lowered from 30 s to 15 s: its drain is cut off.
		{name: "limit-lowered", exitStatus: machine.Lossy, prepare: func(m *fakeMachine) {
			m.writeDropIn("/run/systemd/logind.conf.d/zz-site.conf", 15*time.Second)
			m.writeDropIn(kubeletFile, 30*time.Second)
			m.login1.SetLimit(15 * time.Second)
			m.addKubelet(grace30)
			m.takeLock("kubelet", kubeletWhy)
		}},
		// kubegrace-node was removed, but its drop-in still sets 33 s. The kubelet needs 60 s, so it has no lock.
		{name: "leftover-drop-in", exitStatus: machine.Unheld, prepare: func(m *fakeMachine) {
			m.write("/etc/systemd/logind.conf.d/zz-kubegrace.conf", "# Written by kubegrace: how long a node shutdown may be delayed.\n[Login]\nInhibitDelayMaxSec=33\n")
			m.writeDropIn(kubeletFile, time.Minute)
			m.login1.SetLimit(33 * time.Second)
			m.addKubelet("shutdownGracePeriod: 60s\nshutdownGracePeriodCriticalPods: 20s\n")
		}},
		// The drop-in of a kubelet is there, but no kubelet runs.
		{name: "no-kubelet", exitStatus: machine.Unheld, prepare: func(m *fakeMachine) {
			m.writeDropIn(kubeletFile, 30*time.Second)
			m.login1.SetLimit(30 * time.Second)
		}},
		// The kubelet's configuration does not set shutdownGracePeriod, so it never takes a lock.
		{name: "no-grace-period", exitStatus: machine.Unheld, prepare: func(m *fakeMachine) { m.addKubelet("maxPods: 110\n") }},
		// A drop-in of the kubelet's configuration raises its 30 s to 35 s, and logind waits for 40 s: all is
		// well.
		{name: "config-from-a-folder", exitStatus: machine.Held, prepare: func(m *fakeMachine) {
			m.login1.SetLimit(40 * time.Second)
			m.write("/etc/systemd/logind.conf", "[Login]\nInhibitDelayMaxSec=40\n")
			m.write("/etc/kubernetes/kubelet.conf.d/20-site.conf", configHeader+"shutdownGracePeriod: 35s\n")
			m.addKubelet(grace30, "--config-dir", "/etc/kubernetes/kubelet.conf.d")
			m.takeLock("kubelet", kubeletWhy)
		}},
		// Both the kubelet and kubegrace-node hold a lock: each would stop the pods in its own time.
		{name: "two-agents", exitStatus: machine.Lossy, prepare: func(m *fakeMachine) {
			m.addStockKubelet(noExtraConfig)
			m.takeLock("kubelet", kubeletWhy)
			m.takeLock("kubegrace-node", kubegraceWhy)
		}},
		// A shutdown is pending. logind grants no lock then, so a kubelet that starts now has none.
		{name: "started-while-pending", exitStatus: machine.Unheld, prepare: func(m *fakeMachine) {
			m.addStockKubelet(noExtraConfig)
			m.login1.SetPreparing(true)
		}},
		// systemd-logind is masked, so there is no lock to take.
		{name: "masked", exitStatus: machine.Unheld, prepare: func(m *fakeMachine) {
			m.login1.Close()
			require.NoError(m.t, os.MkdirAll(filepath.Join(m.root, "etc/systemd/system"), 0o700))
			require.NoError(m.t, os.Symlink("/dev/null", filepath.Join(m.root, "etc/systemd/system/systemd-logind.service")))
			m.addKubelet(grace30)
		}},
		// kubegrace-node holds a lock, but does not answer on a socket: what becomes of the pods is not known.
		{name: "agent-of-kubegrace", exitStatus: machine.Unknown, prepare: func(m *fakeMachine) {
			m.login1.SetLimit(30 * time.Second)
			m.takeLock("kubegrace-node", kubegraceWhy)
		}},
		// kubegrace-node holds a lock and does not answer on a socket, but --config names its configuration. So status
		// plans the shutdown by the rules of kubegrace: the limit of 60 s is enough.
		{name: "agent-with-config", exitStatus: machine.Held, prepare: func(m *fakeMachine) {
			m.writeDropIn("/etc/systemd/logind.conf.d/50-site.conf", time.Minute)
			m.login1.SetLimit(time.Minute)
			m.takeLock("kubegrace-node", kubegraceWhy)
			m.write("/agent.yaml", configHeader+grace30)
			m.extra = []string{"--config", filepath.Join(m.root, "agent.yaml")}
		}},
		// The kubelet's file says 30 s. The kubelet really uses what its /configz says: 12 s, of which 5 s are for critical
		// pods. The other pods get 7 s and are cut short.
		{name: "configz", exitStatus: machine.Lossy, prepare: func(m *fakeMachine) {
			m.addStockKubelet(noExtraConfig)
			m.takeLock("kubelet", kubeletWhy)
			m.write("/configz.json", `{"kubeletconfig": {"shutdownGracePeriod": "12s", "shutdownGracePeriodCriticalPods": "5s"}}`)
			m.extra = []string{"--config", filepath.Join(m.root, "configz.json")}
		}},
		// A kubelet takes no lock if logind's limit is infinity.
		{name: "limit-infinite", exitStatus: machine.Unheld, prepare: func(m *fakeMachine) {
			m.write(siteFile, "[Login]\nInhibitDelayMaxSec=infinity\n")
			m.login1.SetLimit(logindfake.Unlimited)
			m.addKubelet(grace30)
		}},
		// With a limit of 0 s logind ignores all locks, also the one that the kubelet holds.
		{name: "limit-zero", exitStatus: machine.Unheld, prepare: func(m *fakeMachine) {
			m.write(siteFile, "[Login]\nInhibitDelayMaxSec=0\n")
			m.login1.SetLimit(0)
			m.addKubelet(grace30)
			m.takeLock("kubelet", kubeletWhy)
		}},
		// The limit is 0 s, and kubegrace-node holds the lock, and asks for 30 s. It needs no restart.
		{name: "limit-zero-for-the-agent", exitStatus: machine.Unheld, prepare: func(m *fakeMachine) {
			m.startAgent(api.Status{Held: true, PodCount: 3})
			m.write(siteFile, "[Login]\nInhibitDelayMaxSec=0\n")
			m.login1.SetLimit(0)
		}},
	}
}

// nodePods are the pods of the fake machine: two that are not critical and ask for 10 s and 15 s, and a
// critical one that asks for 5 s.
const nodePods = `kind: List
items:
- kind: Pod
  metadata: {name: web-0, namespace: shop}
  spec: {nodeName: worker-1, priority: 0, terminationGracePeriodSeconds: 10}
  status: {phase: Running}
- kind: Pod
  metadata: {name: orders-0, namespace: shop}
  spec: {nodeName: worker-1, priority: 0, terminationGracePeriodSeconds: 15}
  status: {phase: Running}
- kind: Pod
  metadata: {name: dns, namespace: kube-system}
  spec: {nodeName: worker-1, priority: 2000000000, terminationGracePeriodSeconds: 5}
  status: {phase: Running}
`

// agentsFile is the drop-in of kubegrace-node that sets logind's limit. siteFile is a drop-in of an administrator,
// whose name sorts after agentsFile, so that its limit overrides the agent's.
const (
	agentsFile = "/etc/systemd/logind.conf.d/zz-kubegrace.conf"
	siteFile   = "/etc/systemd/logind.conf.d/zzz-site.conf"
)

// startAgent starts a fake kubegrace-node. Its drop-in raises logind's limit to 30 s. On its socket, which only root may
// open, it answers with status. If status.Held is set, it also takes a lock.
func (m *fakeMachine) startAgent(status api.Status) {
	m.t.Helper()
	m.write(agentsFile, "# Written by kubegrace: how long a node shutdown may be delayed.\n[Login]\nInhibitDelayMaxSec=30\n")
	m.login1.SetLimit(30 * time.Second)
	if status.Held {
		m.takeLock("kubegrace-node", kubegraceWhy)
	}
	status.Meta = api.Meta{APIVersion: api.Version, Kind: "Status"}
	status.AskedSeconds = 30
	m.serveAgentSocket(func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(status) // the client reports a failure
	})
}

// serveAgentSocket serves a handler on the agent's socket.
func (m *fakeMachine) serveAgentSocket(handler http.HandlerFunc) {
	m.t.Helper()
	listener, err := socket.Listen(filepath.Join(m.root, socket.Default))
	require.NoError(m.t, err)
	server := httptest.NewUnstartedServer(handler)
	server.Listener = listener
	server.Start()
	m.t.Cleanup(server.Close)
}

// Each case is a state of kubegrace-node. Root asks the agent over its socket, and so learns what happens to the pods. The
// user nobody cannot open the socket. It sees only the agent's lock and its drop-in, and usually cannot tell whether pods
// lose time. In all cases 50-site.conf sets 15 s, which never count, because it sorts before the agent's drop-in.
func TestStatusOfTheAgent(t *testing.T) {
	for name, test := range map[string]struct {
		agent         api.Status
		siteLimit     time.Duration  // the limit that siteFile sets; 0: there is no such file
		rootsStatus   machine.Status // the exit status
		rootSees      string
		nobodysStatus machine.Status // the exit status
		nobodySees    string
	}{
		"it holds the only lock": {
			agent: api.Status{Held: true, PodCount: 3}, rootsStatus: machine.Held, rootSees: "kubegrace-node (PID 812) holds the inhibitor lock for up to 30s. No pod is cut short, of 3.",
			nobodysStatus: machine.Unknown, nobodySees: "kubegrace-node (PID 812) holds the inhibitor lock for up to 30s. Which pods lose time could not be seen: run it as root, or give the agent's configuration with --config.",
		},
		"a pod asks for more than its bucket has": {
			agent: api.Status{Held: true, PodCount: 3, CutShort: 1, LostSeconds: 7}, rootsStatus: machine.Lossy, rootSees: "Pods cut short: 1 of 3; 7s are lost.",
			nobodysStatus: machine.Unknown, nobodySees: "Which pods lose time could not be seen: run it as root, or give the agent's configuration with --config.",
		},
		"a file of the site sets too little": {
			agent: api.Status{Held: true, PodCount: 3, CutShort: 2, LostSeconds: 12}, siteLimit: 15 * time.Second, rootsStatus: machine.Lossy,
			rootSees:      "kubegrace-node asks for 30s, and the host waits for 15s, by " + siteFile,
			nobodysStatus: machine.Lossy, nobodySees: "kubegrace-node (PID 812) asks for 30s, and the host goes down after 15s, by " + siteFile,
		},
		"a file of the site sets enough for the pods": {
			agent: api.Status{Held: true, PodCount: 3}, siteLimit: 25 * time.Second, rootsStatus: machine.Held, rootSees: "No pod is cut short, of 3.",
			nobodysStatus: machine.Lossy, nobodySees: "asks for 30s, and the host goes down after 25s",
		},
		"the container runtime is away": {
			agent: api.Status{Held: true, PodsUnknown: true}, rootsStatus: machine.Unknown, rootSees: "Its pods are not known: the container runtime does not list them.",
			nobodysStatus: machine.Unknown, nobodySees: "Which pods lose time could not be seen: run it as root, or give the agent's configuration with --config.",
		},
		"it is drained": {
			agent: api.Status{Drained: true}, rootsStatus: machine.Held, rootSees: "this machine is drained: kubegrace-node drain has stopped its pods",
			nobodysStatus: machine.Unknown, nobodySees: "kubegrace-node runs, and holds no lock: this machine is drained, or nothing waits for its pods.",
		},
		"it holds no lock": {
			agent: api.Status{PodCount: 3, Missing: []string{"missing: inhibitor lock: no bus"}}, rootsStatus: machine.Unheld,
			rootSees:      "nothing waits for the pods: kubegrace-node runs, and holds no lock.",
			nobodysStatus: machine.Unknown, nobodySees: "kubegrace-node runs, and holds no lock",
		},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMachine(t)
			m.startAgent(test.agent)
			m.writeDropIn("/etc/systemd/logind.conf.d/50-site.conf", 15*time.Second)
			if test.siteLimit > 0 {
				m.writeDropIn(siteFile, test.siteLimit)
				m.login1.SetLimit(test.siteLimit)
			}
			r := m.runStatus()
			requireStatus(t, test.rootsStatus, r)
			require.Contains(t, r.out, test.rootSees)
			require.Contains(t, r.out, "50-site.conf: 15s, overridden")
			for _, line := range test.agent.Missing {
				require.Contains(t, r.out, line)
			}
			if test.siteLimit > 0 {
				require.Contains(t, r.out, "Set InhibitDelayMaxSec=30 or more in "+siteFile+", or remove it there.")
			}

			// A file in the place of the socket's folder hides the socket, as from the user nobody.
			m.remove(filepath.Dir(socket.Default))
			m.write(filepath.Dir(socket.Default), "a file in the place of a folder")
			r = m.runStatus()
			requireStatus(t, test.nobodysStatus, r)
			require.Contains(t, r.out, test.nobodySees)
		})
	}
}

// An agent answers on its socket with the HTTP status 418, and has neither a lock nor a drop-in. What happens to the
// pods is not known, so the exit status is 4. The output shows the agent's answer.
func TestAnAgentThatAnswersNonsense(t *testing.T) {
	m := newMachine(t)
	m.serveAgentSocket(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) })
	r := m.runStatus()
	requireStatus(t, machine.Unknown, r)
	require.Contains(t, r.out, "kubegrace-node: ")
	require.Contains(t, r.out, "418")
}
