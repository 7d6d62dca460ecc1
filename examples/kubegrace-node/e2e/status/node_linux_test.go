//go:build e2e

package e2e_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kubegrace/kubegrace/examples/internal/golden"
	"github.com/kubegrace/kubegrace/examples/internal/machine"
)

const (
	// kubeletScript is a process with the name and the command line of a kubelet. It has no child, which
	// would have both until its exec.
	kubeletScript = "#!/bin/bash\nexec -a /usr/bin/kubelet perl -e sleep -- \"$@\"\n"
	lockedBy      = "systemd-inhibit --what=shutdown --mode=delay --who=%s \"--why=%s\" "
	config        = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"
	pods          = `{"kind": "List", "items": [{"kind": "Pod", "metadata": {"name": "web-0", "namespace": "shop"}, "spec": {"nodeName": "n", "terminationGracePeriodSeconds": 10}, "status": {"phase": "Running"}}]}`
)

// host is a machine with the program.
type host struct {
	*machine.Machine
	t *testing.T
}

// newHost boots a machine with the program, and units that are not started.
func newHost(t *testing.T, debian machine.Debian) host {
	t.Helper()
	m := machine.New(t, debian)
	m.Bind(buildProgram(t), "/usr/local/bin/kubegrace-node")
	m.WriteFile(t, "/usr/local/bin/fakekubelet", 0o755, []byte(kubeletScript))
	m.WriteFile(t, "/etc/kubelet/config.yaml", 0o644, []byte(config+"shutdownGracePeriod: 30s\nshutdownGracePeriodCriticalPods: 10s\n"))
	m.WriteFile(t, "/etc/kubelet/none.yaml", 0o644, []byte(config))
	m.WriteFile(t, "/etc/kubelet/conf.d/20.conf", 0o644, []byte(config+"shutdownGracePeriod: 25s\n"))
	m.WriteFile(t, "/etc/pods.json", 0o644, []byte(pods))
	kubeletLock := fmt.Sprintf(lockedBy, "kubelet", "Kubelet needs time to handle node shutdown")
	for name, command := range map[string]string{
		"kubelet-held":   kubeletLock + "/usr/local/bin/fakekubelet --config=/etc/kubelet/config.yaml",
		"kubelet-folder": kubeletLock + "/usr/local/bin/fakekubelet --config=/etc/kubelet/config.yaml --config-dir=/etc/kubelet/conf.d",
		"kubelet":        "/usr/local/bin/fakekubelet --config=/etc/kubelet/config.yaml",
		"kubelet-none":   "/usr/local/bin/fakekubelet --config=/etc/kubelet/none.yaml",
		"agents-lock":    fmt.Sprintf(lockedBy, "kubegrace-node", "Pods need time to end before the node shuts down") + "sleep infinity",
		"other":          fmt.Sprintf(lockedBy, "other", "test") + "sleep infinity",
	} {
		m.WriteFile(t, "/etc/systemd/system/"+name+".service", 0o644, []byte("[Service]\nType=exec\nExecStart="+command+"\n"))
	}
	unit, err := os.ReadFile("../../kubegrace-node.service")
	require.NoError(t, err)
	m.WriteFile(t, "/etc/systemd/system/kubegrace-node.service", 0o644, unit)
	m.WriteFile(t, "/etc/kubegrace-node/config.yaml", 0o644, []byte(config+"shutdownGracePeriod: 8s\nshutdownGracePeriodCriticalPods: 3s\n"))
	m.Enable(t, "ready.service", []byte("[Unit]\nAfter=dbus.service systemd-logind.service\n[Service]\nType=exec\nExecStart=sleep infinity\n"))
	m.Boot(t)
	m.AwaitActive(t, "ready.service")
	return host{m, t}
}

// buildProgram builds the program as make dist does: it needs no library of the machine.
func buildProgram(t *testing.T) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "kubegrace-node")
	build := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-o", program, "github.com/kubegrace/kubegrace/examples/kubegrace-node")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	out, err := build.CombinedOutput()
	require.NoError(t, err, string(out))
	return program
}

// limit writes files of logind, and waits until it goes by them. A text of "" removes a file.
func (h host) limit(want time.Duration, files map[string]string) {
	h.t.Helper()
	for name, text := range files {
		if text == "" {
			h.Run(h.t, "rm", "-f", name)
			continue
		}
		h.Run(h.t, "sh", "-c", "mkdir -p $(dirname $0) && printf %s \"$1\" > $0", name, text)
	}
	h.Run(h.t, "systemctl", "kill", "--signal=HUP", "systemd-logind")
	h.await(fmt.Sprintf("t %d", uint64(want.Microseconds())), "busctl", "get-property", "org.freedesktop.login1", "/org/freedesktop/login1", "org.freedesktop.login1.Manager", "InhibitDelayMaxUSec")
}

// await waits until a command prints something.
func (h host) await(want string, command ...string) {
	h.t.Helper()
	require.Eventually(h.t, func() bool { return strings.Contains(h.Run(h.t, command...), want) }, 20*time.Second, 100*time.Millisecond, want)
}

// start starts a unit, and waits for texts in the list of locks and of kubelets.
func (h host) start(unit string, wants ...string) {
	h.t.Helper()
	h.Run(h.t, "systemctl", "start", unit)
	for _, want := range wants {
		h.await(want, "sh", "-c", "systemd-inhibit --list --no-legend; grep -l ^/usr/bin/kubelet /proc/[0-9]*/cmdline || true")
	}
}

// stop stops all units that the tests start.
func (h host) stop() {
	h.t.Helper()
	h.Run(h.t, "systemctl", "stop", "kubelet-held", "kubelet-folder", "kubelet", "kubelet-none", "agents-lock", "kubegrace-node", "other")
}

// look returns what the program prints, and its exit status, for root or another user.
func (h host) look(as ...string) string {
	h.t.Helper()
	text := h.Run(h.t, append(as, "sh", "-c", "COLUMNS=2000 /usr/local/bin/kubegrace-node status --pods /etc/pods.json 2>&1; echo exit status $?")...)
	return regexp.MustCompile(`PID \d+`).ReplaceAllString(text, "PID 812") + "\n"
}

// lookAsNobody returns what nobody is told.
func (h host) lookAsNobody() string {
	h.t.Helper()
	return h.look("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups")
}

// compare compares what root is told with a file. Nobody is told the same.
func (h host) compare(name string) {
	h.t.Helper()
	text := h.look()
	golden.Require(h.t, name+".golden", text)
	require.Equal(h.t, text, h.lookAsNobody(), name)
}

// infinity is 2^64-1 microseconds for logind.
const infinity = -time.Microsecond

const (
	runs       = "/cmdline" // what start awaits of a kubelet
	ownDropIn  = "/etc/systemd/logind.conf.d/99-kubelet.conf"
	siteDropIn = "/etc/systemd/logind.conf.d/zz-site.conf"
	leftover   = "/etc/systemd/logind.conf.d/zz-kubegrace.conf"
)

func TestNode(t *testing.T) {
	for _, debian := range []machine.Debian{machine.Bookworm, machine.Trixie} {
		t.Run(string(debian), func(t *testing.T) { testNode(newHost(t, debian)) })
	}
}

// testNode brings a machine into one state after the other, and powers it off in the last one.
func testNode(h host) {
	h.limit(30*time.Second, map[string]string{ownDropIn: "[Login]\nInhibitDelayMaxSec=30\n"})
	h.start("kubelet-held", "Kubelet needs time", runs)
	h.compare("lock-held")
	h.Run(h.t, "chmod", "600", "/etc/kubelet/config.yaml", ownDropIn)
	golden.Require(h.t, "not-readable.golden", h.lookAsNobody())
	h.Run(h.t, "chmod", "644", "/etc/kubelet/config.yaml", ownDropIn)
	h.Run(h.t, "touch", "--date=1 hour", "/etc/kubelet/config.yaml")
	h.compare("config-changed")
	h.Run(h.t, "touch", "--date=1 hour ago", "/etc/kubelet/config.yaml")
	h.start("agents-lock", "Pods need time")
	h.compare("two-agents")
	h.stop()
	h.compare("no-kubelet")
	h.start("kubelet", runs)
	h.compare("none")
	h.limit(20*time.Second, map[string]string{siteDropIn: "[Login]\nInhibitDelayMaxSec=20\n"})
	h.compare("limit-too-low")
	h.limit(infinity, map[string]string{siteDropIn: "[Login]\nInhibitDelayMaxSec=infinity\n"})
	h.compare("limit-of-infinity")
	h.limit(25*time.Second, map[string]string{siteDropIn: "", leftover: "# Written by kubegrace: how long a node shutdown may be delayed.\n[Login]\nInhibitDelayMaxSec=25\n"})
	h.compare("leftover-drop-in")
	h.stop()
	h.limit(30*time.Second, map[string]string{leftover: ""})
	h.start("kubelet-none", runs)
	h.compare("no-grace-period")
	h.stop()
	h.start("kubelet-folder", "Kubelet needs time", runs)
	h.compare("config-from-a-folder")
	h.stop()

	testAgent(h)

	h.Run(h.t, "systemctl", "mask", "systemd-logind")
	h.Run(h.t, "systemctl", "stop", "systemd-logind")
	h.start("kubelet", runs)
	h.compare("masked")
	h.Run(h.t, "systemctl", "unmask", "systemd-logind")
	h.Run(h.t, "systemctl", "start", "systemd-logind")
	h.stop()

	h.start("other", "other")
	h.Run(h.t, "systemctl", "poweroff")
	h.await("b true", "busctl", "get-property", "org.freedesktop.login1", "/org/freedesktop/login1", "org.freedesktop.login1.Manager", "PreparingForShutdown")
	h.start("kubelet", runs)
	h.compare("started-while-pending")
	h.Run(h.t, "systemctl", "stop", "other")
	h.AwaitPowerOff(h.t)
}

// testAgent brings the agent itself into one state after the other. The machine has no container runtime, so that the
// agent has no pods, and says so. Nobody may not ask the agent, and is told what its lock and its drop-in say.
func testAgent(h host) {
	const (
		beaten = "/etc/systemd/logind.conf.d/50-site.conf" // by the agent's zz-kubegrace.conf
		site   = "/etc/systemd/logind.conf.d/zzz-site.conf"
	)
	says := func(text string, wants ...string) {
		h.t.Helper()
		for _, want := range wants {
			require.Contains(h.t, text, want)
		}
	}
	h.limit(5*time.Second, map[string]string{ownDropIn: ""}) // logind's default, which the agent raises
	h.start("kubegrace-node", "Pods need time")
	says(h.look(), "kubegrace-node (PID 812) holds the host back", "Its pods are not known", "missing: container runtime: ", "exit status 4")
	says(h.lookAsNobody(), "Which pods lose time only the agent can say.", "exit status 4")

	h.Run(h.t, "/usr/local/bin/kubegrace-node", "drain") // takes 8 s, because no runtime says that there are no pods
	says(h.look(), "this machine is drained", "exit status 0")
	says(h.lookAsNobody(), "kubegrace-node runs, and holds no lock: this machine is drained, or nothing waits for its pods.", "exit status 4")
	h.Run(h.t, "/usr/local/bin/kubegrace-node", "undrain")
	h.await("Pods need time", "systemd-inhibit", "--list", "--no-legend")

	h.Run(h.t, "sh", "-c", "printf '[Login]\\nInhibitDelayMaxSec=2\\n' > "+beaten)
	says(h.look(), "holds the host back", beaten+": 2s, beaten")
	h.limit(2*time.Second, map[string]string{beaten: "", site: "[Login]\nInhibitDelayMaxSec=2\n"})
	says(h.look(), "and the host waits for 2s, by "+site, "or more in "+site+", or remove it there.")
	says(h.lookAsNobody(), "and the host goes down after 2s, by "+site, "exit status 2")

	h.stop()
	h.Run(h.t, "/usr/local/bin/kubegrace-node", "uninstall", "--remove-state")
	h.limit(30*time.Second, map[string]string{site: "", ownDropIn: "[Login]\nInhibitDelayMaxSec=30\n"})
}
