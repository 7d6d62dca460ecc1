package command_test

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/godbus/dbus/v5"
	"github.com/stretchr/testify/require"

	"github.com/kubegrace/kubegrace/examples/kubegrace-node/internal/socket"
	"github.com/kubegrace/kubegrace/examples/kubegrace-node/internal/units"
	"github.com/kubegrace/kubegrace/internal/need"
	"github.com/kubegrace/kubegrace/shutdown/logind"
	"github.com/kubegrace/kubegrace/shutdown/logind/logindtest"
)

// In each case one part is missing or unusable: the container runtime, the API server or the kubelet. (The container
// runtime is missing in every case.) All the same the agent must take its lock. It must answer 200 on its
// socket's /healthz and name the missing part there, and end with status 0 on SIGTERM.
func TestTheLockIsHeldWhateverIsMissing(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		args   []string // DIR stands for the folder of the node
		health string   // in the answer of /healthz
	}{
		"there is no container runtime": {health: "missing: container runtime: "},
		"there is no kubeconfig":        {args: []string{"--kubeconfig=/nonexistent.conf", "--node-name=node"}, health: "missing: API server: /nonexistent.conf: "},
		"there is no API server":        {args: []string{"--kubeconfig=DIR/kubeconfig", "--node-name=node"}, health: "missing: API server: failed to watch the node's pods: "},
		"there is no kubelet":           {args: []string{"--kubelet-pods=https://127.0.0.1:1/pods"}, health: "missing: kubelet's pods: "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := newNode(t)
			require.NoError(t, os.WriteFile(n.dir+"/kubeconfig", []byte(unreachableServer), 0o600))
			for i := range test.args {
				test.args[i] = strings.ReplaceAll(test.args[i], "DIR", n.dir)
			}
			p := n.startAgent(test.args...)
			n.awaitLockTaken()
			n.awaitHealth(http.StatusOK, test.health)
			require.Zero(t, p.terminate())
			n.awaitLockReleased()
		})
	}
}

// unreachableServer is a valid kubeconfig of an API server that refuses connections.
const unreachableServer = `apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "http://127.0.0.1:1"}}]
contexts: [{name: c, context: {cluster: c, user: u}}]
users: [{name: u, user: {}}]
current-context: c
`

// An administrator's file limits logind to 15 s, while the agent asks for more than the 20 s of its pods. The limit is
// low at the start of the agent, then it is raised to a minute, and then lowered again. The agent must take its lock
// all the same. While the limit is low, /healthz must answer 503 and name the file, and the plan must end within 15 s.
func TestTheLimitIsTooLow(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	limitFile := filepath.Join(n.dir, "host/etc/systemd/logind.conf.d/zzz-site.conf")
	require.NoError(t, os.MkdirAll(filepath.Dir(limitFile), 0o755))
	lowerLimit := func() {
		require.NoError(t, os.WriteFile(limitFile, []byte("[Login]\nInhibitDelayMaxSec=15\n"), 0o600))
		n.SetLimit(15 * time.Second)
	}
	awaitComplaint := func() {
		n.awaitHealth(http.StatusServiceUnavailable, "missing: time for the pods: ", "by 15s at most", "/etc/systemd/logind.conf.d/zzz-site.conf")
		out, _, code := n.runTool("plan")
		require.Zero(t, code)
		require.Regexp(t, `is released\s+after\s+1[345](\.\d)?s`, out, "within the limit of 15 s, less a margin")
	}

	lowerLimit()
	p := n.startAgent()
	awaitComplaint()
	require.Len(t, n.Held(), 1)

	// The limit is raised, and then lowered again.
	require.NoError(t, os.Remove(limitFile))
	n.SetLimit(time.Minute)
	require.Eventually(t, func() bool {
		status, text := n.health()
		return status == http.StatusOK && strings.HasPrefix(text, "ok\n") && !strings.Contains(text, "time for the pods")
	}, 30*time.Second, 20*time.Millisecond, "the agent notices that the limit was raised")
	lowerLimit()
	awaitComplaint()
	require.Zero(t, p.terminate())
}

// The state folder cannot be created, is read-only, or is on a full file system; the folder of the socket
// cannot be created either. The agent must take its lock all the same, and log both problems.
func TestTheLockIsHeldWithoutAStateFolder(t *testing.T) {
	t.Parallel()
	// mountDisk returns a new folder on a file system of its own, with the flags and the options of mount(2).
	mountDisk := func(t *testing.T, flags uintptr, options string) string {
		t.Helper()
		need.Root(t)
		dir := t.TempDir()
		require.NoError(t, syscall.Mount("tmpfs", dir, "tmpfs", flags, options))
		t.Cleanup(func() { require.NoError(t, syscall.Unmount(dir, syscall.MNT_DETACH)) })
		return dir
	}
	for name, test := range map[string]struct {
		newStateFolder func(t *testing.T) (path string)
		logged         string
	}{
		"it cannot be created": {newStateFolder: func(*testing.T) string { return "/proc/nonexistent" }, logged: "Continues without a state folder"},
		"it is read-only":      {newStateFolder: func(t *testing.T) string { return mountDisk(t, syscall.MS_RDONLY, "") }, logged: "read-only file system"},
		"its disk is full": {newStateFolder: func(t *testing.T) string {
			dir := mountDisk(t, 0, "size=4k")
			require.NoError(t, os.WriteFile(filepath.Join(dir, "fill"), make([]byte, 4096), 0o600))
			return dir
		}, logged: "no space left on device"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := newNode(t)
			p := n.startAgent("--state-dir="+test.newStateFolder(t), "--socket=/proc/nonexistent/s")
			n.awaitLockTaken()
			require.Zero(t, p.terminate())
			require.Contains(t, p.stderr.String(), test.logged)
			require.Contains(t, p.stderr.String(), `missing="socket of the commands"`)
		})
	}
}

// A kubelet holds an inhibitor lock, which means that it drains the machine too. /healthz must say so.
func TestAKubeletThatHoldsALock(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	bus, err := dbus.Connect(n.address)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, bus.Close()) })
	require.NoError(t, bus.Object("org.freedesktop.login1", "/org/freedesktop/login1").Call("org.freedesktop.login1.Manager.Inhibit", 0, "shutdown", "kubelet", "pods", "delay").Err)
	n.startAgent()
	n.awaitHealth(http.StatusOK, "missing: the only drain of this machine: a kubelet holds a shutdown lock of its own")
}

// Another program uses the port of --listen when the agent starts. Once that program frees the port, the agent must
// serve it, without a restart. There is no kubeconfig, so the agent cannot publish the state of the node. The metrics
// must count these failed updates, and must have 0 for pods, of which there are none.
func TestAPortThatIsFreedIsServed(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	n := newNode(t)
	n.startAgent("--listen="+taken.Addr().String(), "--kubeconfig=/nonexistent.conf", "--node-name=node")
	n.awaitHealth(http.StatusOK, "missing: port of /healthz")
	require.NoError(t, taken.Close())
	var metrics string
	require.Eventually(t, func() bool { // the port is served, and a node update has failed
		_, metrics = n.get(http.DefaultClient, "http://"+taken.Addr().String()+"/metrics")
		return regexp.MustCompile(`\nkubegrace_node_api_updates_failed_total\{object="node"\} [1-9]`).MatchString(metrics)
	}, 20*time.Second, time.Second/4, &metrics)
	require.Contains(t, metrics, "\n"+`kubegrace_node_api_updates_failed_total{object="pod"} 0`+"\n")
	_, health := n.health()
	require.NotContains(t, health, "port of /healthz")
}

// A second agent starts with the state folder of a running one. The second agent must end with status 1 and say why,
// and the first one must keep running.
func TestASecondAgentOnTheSameStateFolderEnds(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.startAgent()
	n.awaitStateFolder()
	second := n.startAgent("--socket=") // without a socket, because the first agent has it
	require.Equal(t, 1, second.waitExit())
	require.Contains(t, second.stderr.String(), "another agent")
	n.awaitHealth(http.StatusOK)
}

// Each invalid command line must end with status 1 and one line on stderr that names the mistake.
func TestBadInputEndsWithOneLine(t *testing.T) {
	t.Parallel()
	dir := writeFolder(t, map[string]string{
		"good.yaml":    configHeader + "shutdownGracePeriod: 30s\n",
		"none.yaml":    configHeader,
		"both.yaml":    configHeader + "shutdownGracePeriod: 30s\nshutdownGracePeriodByPodPriority: [{priority: 0, shutdownGracePeriodSeconds: 5}]\n",
		"kubelet.yaml": configHeader + "shutdownGracePeriod: 45s\n",
	})
	good := "--config=" + dir + "/good.yaml"
	t.Cleanup(func() { require.NoDirExists(t, dir+"/state", "a demo that cannot begin makes no folder") })
	for name, test := range map[string]struct {
		args []string
		want string
	}{
		"no config":                    {args: []string{"run"}, want: "--config: Required value"},
		"missing config":               {args: []string{"run", "--config=/nonexistent.yaml"}, want: "--config: /nonexistent.yaml: failed to read: no such file or directory"},
		"nothing to drain":             {args: []string{"run", "--config=" + dir + "/none.yaml"}, want: "has no shutdownGracePeriod, so nothing would be drained"},
		"both styles":                  {args: []string{"run", "--config=" + dir + "/both.yaml"}, want: "Cannot specify both"},
		"a kubelet that drains itself": {args: []string{"run", good, "--stop-unit=kubelet.service", "--kubelet-config=" + dir + "/kubelet.yaml"}, want: `the kubelet has a shutdownGracePeriod of its own (` + dir + `/kubelet.yaml has 45s, of them 0s for critical pods`},
		"a unit without a suffix":      {args: []string{"run", good, "--stop-unit=kubelet"}, want: `--stop-unit: Invalid value: "kubelet"`},
		"a unit with the runtime":      {args: []string{"run", good, "--stop-unit=k3s.service"}, want: "k3s.service has the container runtime in it"},
		"a unit with cri-dockerd":      {args: []string{"run", good, "--stop-unit=cri-docker.service"}, want: "cri-docker.service has the container runtime in it"},
		"the agent itself":             {args: []string{"run", good, "--stop-unit=kubegrace-node.service"}, want: "kubegrace-node.service is needed to end pods"},
		"unknown source":               {args: []string{"run", good, "--source=acpi"}, want: `--source: Unsupported value: "acpi"`},
		"unknown cloud":                {args: []string{"run", good, "--notice=ibm"}, want: `"ibm" for "--notice" flag: wanted is one of azure, ec2, gce`},
		"bad endpoint":                 {args: []string{"run", good, "--state-dir=", "--container-runtime-endpoint=tcp://x"}, want: "--container-runtime-endpoint: "},
		"bad rule":                     {args: []string{"run", good, "--priority=x"}, want: `must be NAMESPACE=PRIORITY or NAMESPACE/NAME=PRIORITY, such as ingress/*=1000`},
		"node name without kubeconfig": {args: []string{"run", good, "--node-name=node-1"}, want: "--node-name: Forbidden: is only for --kubeconfig"},
		"a kubelet over http":          {args: []string{"run", good, "--kubelet-pods=http://127.0.0.1:10255/pods"}, want: `--kubelet-pods: Invalid value: "http://127.0.0.1:10255/pods": must be a URL of https`},
		"credentials for nothing":      {args: []string{"run", good, "--kubelet-credentials=x"}, want: "--kubelet-credentials: Forbidden: is only for --kubelet-pods"},
		"unknown policy":               {args: []string{"run", good, "--kubeconfig=x", "--node-name=n", "--pod-policy=Fail"}, want: `"Fail" for "--pod-policy" flag`},
		"demo of nothing":              {args: []string{"demo"}, want: "--manifests: Required value"},
		"demo of a missing folder":     {args: []string{"demo", "--manifests=/nonexistent", "--state-dir=" + dir + "/state"}, want: "open /nonexistent: no such file or directory"},
		"drain without an agent":       {args: []string{"drain", "--socket=/nonexistent"}, want: "no agent answers on /nonexistent"},
		"report of nothing":            {args: []string{"report", "--socket=/nonexistent", "--state-dir=" + dir}, want: "there is no report of a shutdown in " + dir},
		"report of a folder":           {args: []string{"report", "--state-dir=" + dir}, want: "there is no report of a shutdown in " + dir + ", and no agent was asked"},
		"unknown command":              {args: []string{"stop"}, want: `"stop"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out, stderr, status := runTool(t, test.args...)
			require.Equal(t, 1, status)
			require.Empty(t, out)
			require.Equal(t, 1, strings.Count(stderr, "\n"), stderr)
			require.True(t, strings.HasPrefix(stderr, "kubegrace-node: "), stderr)
			require.Contains(t, stderr, test.want)
		})
	}
}

// Without arguments the program prints a help that names all commands. The help of run names the values of flags that
// come from other packages: clouds and pod policies.
func TestHelpNamesAllCommandsAndValues(t *testing.T) {
	t.Parallel()
	out, stderr, status := runTool(t)
	require.Zero(t, status, stderr)
	for _, command := range []string{"run", "plan", "status", "drain", "undrain", "report", "uninstall", "demo"} {
		require.Contains(t, out, "\n  "+command+" ")
	}
	out, _, _ = runTool(t, "run", "--help")
	for _, value := range []string{"azure", "LeaveAsIs"} {
		require.Contains(t, out, value)
	}
}

// No line of the help of plan is wider than a terminal of 80 columns, except the path of the socket, which is not wrapped.
func TestHelpFitsATerminal(t *testing.T) {
	t.Parallel()
	out, _, _ := runTool(t, "plan", "--help")
	for line := range strings.Lines(out) {
		isPath := strings.Contains(line, socket.Default)
		require.True(t, isPath || len(line) <= len("\n")+80, line)
	}
}

// --version prints the versions of the program and of Go, and the platform.
func TestVersion(t *testing.T) {
	t.Parallel()
	out, _, _ := runTool(t, "--version")
	require.Regexp(t, `^kubegrace-node \S+ \(go1\.\d+.*, linux/\w+\)\n$`, out)
}

// runUninstall runs kubegrace-node uninstall with the system bus at an address, and returns its output.
func runUninstall(t *testing.T, address string, args ...string) (output string, err error) {
	t.Helper()
	c := exec.CommandContext(t.Context(), program, append([]string{"uninstall", "--state-dir="}, args...)...)
	c.Env = append(os.Environ(), "DBUS_SYSTEM_BUS_ADDRESS="+address)
	text, err := c.CombinedOutput()
	return string(text), err
}

// uninstall removes the agent's drop-in with its folder, and has logind read its files again (SIGHUP). A second
// uninstall finds nothing to remove, which is no error.
func TestUninstallRemovesTheDropIn(t *testing.T) {
	t.Parallel()
	broker := logindtest.StartBroker(t)
	hungUp := make(chan struct{}, 1)
	broker.OnHangUp(func() { hungUp <- struct{}{} })
	root := t.TempDir() // in place of the host's root
	file := filepath.Join(root, "etc/systemd/logind.conf.d", logind.DropInName)
	require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o755))
	const text = "# Written by kubegrace: how long a node shutdown may be delayed.\n[Login]\nInhibitDelayMaxSec=60\n" // uninstall goes by the first line
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	for range 2 {
		output, err := runUninstall(t, broker.Address, "--host-root="+root)
		require.NoError(t, err, output)
		require.Equal(t, "systemd-logind has no settings of this agent.\n", output)
		require.NoDirExists(t, filepath.Dir(file), "the folder of the drop-in, which the agent had created")
	}
	<-hungUp // logind reads its files again
}

// A unit that the agent had stopped cannot be started, because systemd does not answer. uninstall says so, and removes the
// drop-in nevertheless.
func TestUninstallGoesOnIfAUnitCannotBeStarted(t *testing.T) {
	t.Parallel()
	root := t.TempDir() // in place of the host's root
	dropIn, stopped := filepath.Join(root, "etc/systemd/logind.conf.d", logind.DropInName), filepath.Join(root, "run", units.File)
	for file, text := range map[string]string{dropIn: "# Written by kubegrace: how long a node shutdown may be delayed.\n", stopped: `{"units": ["kubelet.service"]}`} {
		require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o755))
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	}
	output, err := runUninstall(t, logindtest.StartBroker(t).Address, "--host-root="+root)
	require.Error(t, err)
	require.Contains(t, output, "failed to let units start again")
	require.NoFileExists(t, dropIn)
	require.FileExists(t, stopped, "uninstall can be called again")
}

// While an agent runs, uninstall fails. When the agent has ended, uninstall keeps the state folder, unless
// --remove-state is given: then it removes all files of the agent, and keeps only "notes", a file of somebody else.
// Once "notes" is gone, uninstall removes the folder too. A missing folder is no error.
func TestUninstallRemovesStateOnRequest(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	p := n.startAgent()
	n.awaitStateFolder()
	stateDir := filepath.Join(n.dir, "state")
	uninstall := func(want string, args ...string) {
		t.Helper()
		output, err := runUninstall(t, n.address, append(args, "--host-root="+t.TempDir(), "--state-dir="+stateDir)...)
		isErrorWanted := strings.HasPrefix(want, "kubegrace-node: ")
		require.Equal(t, isErrorWanted, err != nil, output)
		require.Contains(t, output, want)
	}

	uninstall("kubegrace-node: an agent uses " + stateDir + ", stop it first")
	require.Zero(t, p.terminate())
	uninstall(stateDir + " is kept, with the state of shutdowns; --remove-state removes it.\n")

	for _, name := range []string{"graceful_node_shutdown_state", ".tmp-graceful_node_shutdown_state1", "kubegrace-node_pods.json", ".tmp-kubegrace-node_plan.json7", "notes"} {
		require.NoError(t, os.WriteFile(filepath.Join(stateDir, name), nil, 0o600))
	}
	require.NoError(t, os.MkdirAll(filepath.Join(stateDir, "kubegrace-node_hooks/id"), 0o700))
	uninstall("The folder is kept", "--remove-state")
	kept, err := os.ReadDir(stateDir)
	require.NoError(t, err)
	require.Len(t, kept, 1, "only notes")

	require.NoError(t, os.WriteFile(filepath.Join(stateDir, ".graceful_node_shutdown_lock"), nil, 0o600))
	require.NoError(t, os.Remove(filepath.Join(stateDir, "notes")))
	uninstall("Removed "+stateDir+", with the state of shutdowns.\n", "--remove-state")
	require.NoDirExists(t, stateDir)
	uninstall("systemd-logind has no settings of this agent.\n", "--remove-state")
}

// node is a machine on which an agent process can run, with a fake logind on a bus of its own.
type node struct {
	*logindtest.Broker
	t       *testing.T
	address string // of the bus
	dir     string // the folder with config.yaml, the state folder "state", the socket "s" and the host's root "host"
}

// newNode returns a node whose logind delays a shutdown for up to a minute, more than the 20 s of its
// config.yaml. The agent is not started.
func newNode(t *testing.T) *node {
	t.Helper()
	broker := logindtest.StartBroker(t)
	broker.SetLimit(time.Minute)
	dir, err := os.MkdirTemp("", "n") // not t.TempDir: its path is too long for a socket
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "host/run"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "config.yaml"), []byte(configHeader+"shutdownGracePeriod: 20s\nshutdownGracePeriodCriticalPods: 5s\n"), 0o600))
	return &node{Broker: broker, t: t, address: broker.Address, dir: dir}
}

// startAgent starts the agent, without a container runtime. args follow the arguments that all tests share, so that they can
// override them.
func (n *node) startAgent(args ...string) *process {
	n.t.Helper()
	p := prepare(n.t, append([]string{
		"run", "--config=" + n.dir + "/config.yaml", "--state-dir=" + n.dir + "/state", "--socket=" + n.dir + "/s", "--listen=",
		"--host-root=" + n.dir + "/host", "--container-runtime-endpoint=unix:///nonexistent.sock",
	}, args...)...)
	p.command.Env = append(os.Environ(), "DBUS_SYSTEM_BUS_ADDRESS="+n.address)
	require.NoError(n.t, p.command.Start())
	return p
}

// awaitLockTaken waits until the agent holds its lock.
func (n *node) awaitLockTaken() {
	n.t.Helper()
	require.Eventually(n.t, func() bool { return len(n.Held()) == 1 }, 20*time.Second, 10*time.Millisecond)
}

// awaitStateFolder waits until the agent has locked its state folder. It may answer on its socket before that.
func (n *node) awaitStateFolder() {
	n.t.Helper()
	require.Eventually(n.t, func() bool {
		file, err := os.Open(filepath.Join(n.dir, "state", ".graceful_node_shutdown_lock"))
		if err != nil {
			return false
		}
		defer func() { require.NoError(n.t, file.Close()) }() // it also releases a lock that Flock got here; the agent tries again
		return errors.Is(syscall.Flock(int(file.Fd()), syscall.LOCK_SH|syscall.LOCK_NB), syscall.EWOULDBLOCK)
	}, 20*time.Second, 10*time.Millisecond)
}

// awaitLockReleased waits until no lock is held. The fake logind, like a real one, notices a moment after the end of a
// process that the lock of the process is released.
func (n *node) awaitLockReleased() {
	n.t.Helper()
	require.Eventually(n.t, func() bool { return len(n.Held()) == 0 }, 30*time.Second, 10*time.Millisecond)
}

// health requests /healthz on the agent's socket. It returns the HTTP status and the body, or the status 0 if the agent
// does not answer.
func (n *node) health() (status int, text string) {
	return n.get(socket.Client(n.dir+"/s"), "http://localhost/healthz")
}

// get requests a URL. It returns the HTTP status and the body, or the status 0 if there is no answer.
func (n *node) get(client *http.Client, url string) (status int, text string) {
	request, err := http.NewRequestWithContext(n.t.Context(), http.MethodGet, url, nil)
	require.NoError(n.t, err)
	response, err := client.Do(request)
	if err != nil {
		return 0, ""
	}
	body, err := io.ReadAll(response.Body)
	require.NoError(n.t, err)
	require.NoError(n.t, response.Body.Close())
	return response.StatusCode, string(body)
}

// awaitHealth waits until /healthz answers with this status, and its body contains all texts.
func (n *node) awaitHealth(status int, texts ...string) {
	n.t.Helper()
	require.Eventually(n.t, func() bool {
		got, body := n.health()
		return got == status && !slices.ContainsFunc(texts, func(want string) bool { return !strings.Contains(body, want) })
	}, 20*time.Second, 20*time.Millisecond, fmt.Sprint(status, texts))
}

// runTool runs another command of kubegrace-node, such as plan, which asks the agent on its socket.
func (n *node) runTool(args ...string) (out, stderr string, status int) {
	n.t.Helper()
	return runTool(n.t, append(args, "--socket="+n.dir+"/s")...)
}
