//go:build e2e

package e2e_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kubegrace/kubegrace/examples/internal/machine"
)

const (
	// kubeletScript stands for a kubelet: it becomes a process that has a kubelet's name and command line, and sleeps. The
	// word kubelet ends perl's own flags. The process starts no child process, which would look like a second kubelet until
	// it executes its own program.
	kubeletScript = "#!/bin/bash\nexec -a /usr/bin/kubelet perl -e sleep kubelet \"$@\"\n"
	// lockedBy is the start of a command line that holds a delay lock while a program runs. It has two parameters, the
	// holder and the reason of the lock.
	lockedBy = "systemd-inhibit --what=shutdown --mode=delay --who=%s \"--why=%s\" "
	webPod   = `{"kind": "List", "items": [{"kind": "Pod", "metadata": {"name": "web-0", "namespace": "shop"}, "spec": {"nodeName": "n", "terminationGracePeriodSeconds": 10}, "status": {"phase": "Running"}}]}`
)

// host is a machine on which the program is installed.
type host struct {
	*machine.Machine
	t *testing.T
}

// newHost boots a machine with the program, and with units that the tests start later: a kubelet with its
// lock, one without, and a lock with the agent's holder and reason.
func newHost(t *testing.T, debian machine.Debian) host {
	t.Helper()
	m := machine.New(t, debian)
	m.WriteFile(t, "/usr/local/bin/kubegrace-node", 0o755, buildAgent(t))
	m.WriteFile(t, "/usr/local/bin/fakekubelet", 0o755, []byte(kubeletScript))
	m.WriteFile(t, "/etc/kubelet/config.yaml", 0o644, []byte("apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\nshutdownGracePeriod: 30s\nshutdownGracePeriodCriticalPods: 10s\n"))
	m.WriteFile(t, "/etc/pods.json", 0o644, []byte(webPod))
	for name, command := range map[string]string{
		"kubelet-held": fmt.Sprintf(lockedBy, "kubelet", "Kubelet needs time to handle node shutdown") + "/usr/local/bin/fakekubelet --config=/etc/kubelet/config.yaml",
		"kubelet":      "/usr/local/bin/fakekubelet --config=/etc/kubelet/config.yaml",
		"agents-lock":  fmt.Sprintf(lockedBy, "kubegrace-node", "Pods need time to end before the node shuts down") + "sleep infinity",
	} {
		m.WriteFile(t, "/etc/systemd/system/"+name+".service", 0o644, []byte("[Service]\nType=exec\nExecStart="+command+"\n"))
	}
	m.Enable(t, "ready.service", []byte("[Unit]\nAfter=dbus.service systemd-logind.service\n[Service]\nType=exec\nExecStart=sleep infinity\n"))
	m.Boot(t)
	m.AwaitActive(t, "ready.service")
	return host{m, t}
}

// setLimit writes a configuration file of logind with this limit, and waits until logind uses the limit.
func (h host) setLimit(file string, want time.Duration) {
	h.t.Helper()
	h.Run(h.t, "sh", "-c", "mkdir -p $(dirname $0) && printf '[Login]\nInhibitDelayMaxSec=%s\n' $1 > $0", file, fmt.Sprint(want.Seconds()))
	reloadLogind(h.t, h.Machine)
	require.Eventually(h.t, func() bool { return limitOf(h.t, h.Machine) == want }, 20*time.Second, 100*time.Millisecond)
}

// start starts a unit. It then waits until each text of wants appears in the list of locks or in that of kubelet
// processes.
func (h host) start(unit string, wants ...string) {
	h.t.Helper()
	h.Run(h.t, "systemctl", "start", unit)
	const script = "systemd-inhibit --list --no-legend; grep -l ^/usr/bin/kubelet /proc/[0-9]*/cmdline || true"
	for _, want := range wants {
		require.Eventually(h.t, func() bool { return strings.Contains(h.Run(h.t, "sh", "-c", script), want) }, 20*time.Second, 100*time.Millisecond, want)
	}
}

// requireStatusRow requires that the output of kubegrace-node status is as the row of COMPARED.md with this name says. The
// output for the user nobody must be the same as for root.
func (h host) requireStatusRow(row string) {
	h.t.Helper()
	const flags = "--pods /etc/pods.json"
	text := status(h.t, h.Machine, asRoot, flags)
	require.Regexp(h.t, statusRow(h.t, row), text)
	require.Equal(h.t, text, status(h.t, h.Machine, asNobody, flags), row)
}

// kubeletRuns is what start waits for if the unit runs a kubelet: the end of the path of the process in /proc.
const kubeletRuns = "/cmdline"

// A machine is put into three states, one after the other: two agents run, the limit is lowered while a kubelet holds its
// lock, and a kubelet starts while the limit is low. In each state kubegrace-node status must say what COMPARED.md has. The
// tests of package inspect compare the whole output.
func TestStatus(t *testing.T) {
	eachPlatform(t, func(t *testing.T, on platform) {
		h := newHost(t, on.debian)
		h.setLimit("/etc/systemd/logind.conf.d/99-kubelet.conf", 30*time.Second)
		h.start("kubelet-held", "Kubelet needs time", kubeletRuns)
		h.start("agents-lock", "Pods need time")
		h.requireStatusRow("both agents running")

		h.Run(t, "systemctl", "stop", "agents-lock")
		h.setLimit("/etc/systemd/logind.conf.d/zz-site.conf", 15*time.Second)
		h.requireStatusRow("limit lowered under a kubelet that holds its lock (a)")

		h.Run(t, "systemctl", "stop", "kubelet-held")
		h.start("kubelet", kubeletRuns)
		h.requireStatusRow("limit lowered before the kubelet starts (b)")
	})
}

// status runs kubegrace-node status with flags in a machine. It returns the output, and the exit status as the last
// line. asUser is asRoot or asNobody.
func status(t *testing.T, m *machine.Machine, asUser []string, flags string) string {
	t.Helper()
	text, err := m.TryRun(t.Context(), append(slices.Clone(asUser), "sh", "-c", "COLUMNS=2000 /usr/local/bin/kubegrace-node status "+flags+" 2>&1; echo exit status $?")...)
	require.NoError(t, err)
	return text
}

// The start of a command line that runs a program as a user.
var (
	asRoot   []string // the tests are root already
	asNobody = []string{"setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"}
)

// noFlags says to status that the command has no flags.
const noFlags = ""

// statusRow returns a pattern for the output of status, made from the row of the table in COMPARED.md whose first column is
// name. The row quotes a sentence, in which … stands for any text, and an exit status.
func statusRow(t *testing.T, name string) *regexp.Regexp {
	t.Helper()
	cells := regexp.MustCompile(`(?m)^\| ` + regexp.QuoteMeta(name) + ` \|.*\| ` + "`([^`]+)`" + `, exit status (\d) \|[^|]*\|$`).FindStringSubmatch(string(readFile(t, "../COMPARED.md")))
	require.Len(t, cells, 3, name)
	return regexp.MustCompile(`(?s)` + strings.ReplaceAll(regexp.QuoteMeta(cells[1]), "…", `[^\n]*`) + `.*exit status ` + cells[2])
}

// awaitStatus waits until the output of kubegrace-node status is as COMPARED.md says in the row with this name.
func awaitStatus(t *testing.T, m *machine.Machine, name string) {
	t.Helper()
	want, text := statusRow(t, name), ""
	isFound := assert.Eventually(t, func() bool { text = status(t, m, asRoot, noFlags); return want.MatchString(text) }, 20*time.Second, 200*time.Millisecond)
	require.Truef(t, isFound, "%s: %s", name, text)
}
