//go:build e2e

package e2e_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kubegrace/kubegrace/examples/internal/golden"
	"github.com/kubegrace/kubegrace/examples/internal/machine"
)

const (
	// kubeletScript stands for a kubelet: it becomes one process that has a kubelet's name and command line,
	// and sleeps. It starts no child, because a child would look like a second kubelet until its exec.
	kubeletScript = "#!/bin/bash\nexec -a /usr/bin/kubelet perl -e sleep -- \"$@\"\n"
	// lockedBy is the start of a command line that runs a program while a delay lock is held, with this holder
	// and reason.
	lockedBy     = "systemd-inhibit --what=shutdown --mode=delay --who=%s \"--why=%s\" "
	configHeader = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"
	webPod       = `{"kind": "List", "items": [{"kind": "Pod", "metadata": {"name": "web-0", "namespace": "shop"}, "spec": {"nodeName": "n", "terminationGracePeriodSeconds": 10}, "status": {"phase": "Running"}}]}`
)

// host is a machine on which the program is installed.
type host struct {
	*machine.Machine
	t *testing.T
}

// newHost boots a machine with the program, and with units that the tests start later: a kubelet with its
// lock, one without, a lock with the agent's holder and reason, and the agent itself.
func newHost(t *testing.T, debian machine.Debian) host {
	t.Helper()
	m := machine.New(t, debian)
	m.WriteFile(t, "/usr/local/bin/kubegrace-node", 0o755, buildAgent(t))
	m.WriteFile(t, "/usr/local/bin/fakekubelet", 0o755, []byte(kubeletScript))
	m.WriteFile(t, "/etc/kubelet/config.yaml", 0o644, []byte(configHeader+"shutdownGracePeriod: 30s\nshutdownGracePeriodCriticalPods: 10s\n"))
	m.WriteFile(t, "/etc/pods.json", 0o644, []byte(webPod))
	for name, command := range map[string]string{
		"kubelet-held": fmt.Sprintf(lockedBy, "kubelet", "Kubelet needs time to handle node shutdown") + "/usr/local/bin/fakekubelet --config=/etc/kubelet/config.yaml",
		"kubelet":      "/usr/local/bin/fakekubelet --config=/etc/kubelet/config.yaml",
		"agents-lock":  fmt.Sprintf(lockedBy, "kubegrace-node", "Pods need time to end before the node shuts down") + "sleep infinity",
	} {
		m.WriteFile(t, "/etc/systemd/system/"+name+".service", 0o644, []byte("[Service]\nType=exec\nExecStart="+command+"\n"))
	}
	m.WriteFile(t, "/etc/systemd/system/"+agentUnit, 0o644, readFile(t, "../kubegrace-node.service"))
	m.WriteFile(t, configFile, 0o644, []byte(configHeader+"shutdownGracePeriod: 8s\nshutdownGracePeriodCriticalPods: 3s\n"))
	m.Enable(t, "ready.service", []byte("[Unit]\nAfter=dbus.service systemd-logind.service\n[Service]\nType=exec\nExecStart=sleep infinity\n"))
	m.Boot(t)
	m.AwaitActive(t, "ready.service")
	return host{m, t}
}

// limit writes logind's configuration files, given by path, and waits until logind's limit is want. The text
// "" removes a file.
func (h host) limit(want time.Duration, files map[string]string) {
	h.t.Helper()
	for name, text := range files {
		if text == "" {
			h.Run(h.t, "rm", "-f", name)
			continue
		}
		h.Run(h.t, "sh", "-c", "mkdir -p $(dirname $0) && printf %s \"$1\" > $0", name, text)
	}
	reloadLogind(h.t, h.Machine)
	require.Eventually(h.t, func() bool { return limitOf(h.t, h.Machine) == want }, 20*time.Second, 100*time.Millisecond)
}

// start starts a unit. It then waits until each of wants appears in the list of locks or of kubelet processes.
func (h host) start(unit string, wants ...string) {
	h.t.Helper()
	h.Run(h.t, "systemctl", "start", unit)
	const script = "systemd-inhibit --list --no-legend; grep -l ^/usr/bin/kubelet /proc/[0-9]*/cmdline || true"
	for _, want := range wants {
		require.Eventually(h.t, func() bool { return strings.Contains(h.Run(h.t, "sh", "-c", script), want) }, 20*time.Second, 100*time.Millisecond, want)
	}
}

// stop stops all units that start may have started.
func (h host) stop() {
	h.t.Helper()
	h.Run(h.t, "systemctl", "stop", "kubelet-held", "kubelet", "agents-lock", "kubegrace-node")
}

// look returns the output of kubegrace-node status for root.
func (h host) look() string {
	h.t.Helper()
	return status(h.t, h.Machine, nil, "--pods /etc/pods.json")
}

// lookAsNobody returns the output of kubegrace-node status for the user nobody (65534).
func (h host) lookAsNobody() string {
	h.t.Helper()
	return status(h.t, h.Machine, []string{"setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"}, "--pods /etc/pods.json")
}

// compare compares the output for root with a golden file, and with rows of COMPARED.md. The output for the
// user nobody must be the same.
func (h host) compare(name string, rows ...string) {
	h.t.Helper()
	text := h.look()
	golden.Require(h.t, "status/"+name+".golden", text)
	require.Equal(h.t, text, h.lookAsNobody(), name)
	for _, name := range rows {
		require.Regexp(h.t, row(h.t, name), text)
	}
}

const (
	runs       = "/cmdline" // in what start waits for: the path of a kubelet process under /proc
	ownDropIn  = "/etc/systemd/logind.conf.d/99-kubelet.conf"
	siteDropIn = "/etc/systemd/logind.conf.d/zz-site.conf"
)

// A machine is put into one state after the other: a kubelet with its lock, two agents, a lowered limit, and
// so on. In each one kubegrace-node status must say what the golden file has. The files are the same for both
// releases of systemd.
func TestStatus(t *testing.T) {
	eachPlatform(t, func(t *testing.T, on platform) { testStatus(newHost(t, on.debian)) })
}

// testStatus makes each state with systemctl and with files of logind, and compares the output of status in
// it.
func testStatus(h host) {
	h.limit(30*time.Second, map[string]string{ownDropIn: "[Login]\nInhibitDelayMaxSec=30\n"})
	h.start("kubelet-held", "Kubelet needs time", runs)
	h.compare("lock-held")
	h.start("agents-lock", "Pods need time")
	h.compare("two-agents", "both agents running")
	h.Run(h.t, "systemctl", "stop", "agents-lock")
	h.limit(15*time.Second, map[string]string{siteDropIn: "[Login]\nInhibitDelayMaxSec=15\n"})
	h.compare("limit-lowered", "limit lowered under a kubelet that holds its lock (a)")
	h.stop()
	h.start("kubelet", runs)
	h.compare("limit-too-low", "limit lowered before the kubelet starts (b)")
	h.stop()
	h.limit(30*time.Second, map[string]string{siteDropIn: ""})
	testAgent(h)
}

// testAgent puts the agent itself into one state after the other: running, drained, its limit overridden. The
// machine has no container runtime, so the agent does not know its pods. The user nobody may not ask the
// agent: for it, status only knows the agent's lock and drop-in, and so can say less.
func testAgent(h host) {
	const (
		overridden = "/etc/systemd/logind.conf.d/50-site.conf"  // the agent's zz-kubegrace.conf overrides it
		site       = "/etc/systemd/logind.conf.d/zzz-site.conf" // overrides the agent's
	)
	// says checks that text contains all of wants.
	says := func(text string, wants ...string) {
		h.t.Helper()
		for _, want := range wants {
			require.Contains(h.t, text, want)
		}
	}
	h.limit(5*time.Second, map[string]string{ownDropIn: ""}) // logind's default, which the agent raises
	h.start("kubegrace-node", "Pods need time")
	says(h.look(), "kubegrace-node (PID 812) holds the inhibitor lock", "Its pods are not known", "missing: container runtime: ", "exit status 4")
	says(h.lookAsNobody(), "Which pods lose time only the agent can say.", "exit status 4")

	h.Run(h.t, "/usr/local/bin/kubegrace-node", "drain") // takes the whole schedule of 8 s: without a runtime the agent cannot know that there are no pods
	says(h.look(), "this machine is drained", "exit status 0")
	says(h.lookAsNobody(), "kubegrace-node runs, and holds no lock: this machine is drained, or nothing waits for its pods.", "exit status 4")
	h.Run(h.t, "/usr/local/bin/kubegrace-node", "undrain")
	require.Eventually(h.t, func() bool { return delaysShutdowns(h.t, h.Machine) }, 20*time.Second, 100*time.Millisecond)

	h.Run(h.t, "sh", "-c", "printf '[Login]\\nInhibitDelayMaxSec=2\\n' > "+overridden)
	says(h.look(), "holds the inhibitor lock", overridden+": 2s, overridden")
	h.limit(2*time.Second, map[string]string{overridden: "", site: "[Login]\nInhibitDelayMaxSec=2\n"})
	says(h.look(), "and the host waits for 2s, by "+site, "or more in "+site+", or remove it there.")
	says(h.lookAsNobody(), "and the host goes down after 2s, by "+site, "exit status 2")

	h.stop()
	h.Run(h.t, "/usr/local/bin/kubegrace-node", "uninstall", "--remove-state")
	h.limit(30*time.Second, map[string]string{site: "", ownDropIn: "[Login]\nInhibitDelayMaxSec=30\n"})
}
