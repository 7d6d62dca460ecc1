package inspect_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"github.com/kubegrace/kubegrace/examples/internal/golden"
	"github.com/kubegrace/kubegrace/examples/kubegrace-node/internal/api"
	"github.com/kubegrace/kubegrace/examples/kubegrace-node/internal/inspect"
	"github.com/kubegrace/kubegrace/examples/kubegrace-node/internal/machine"
	"github.com/kubegrace/kubegrace/examples/kubegrace-node/internal/output"
)

// requireStatus requires that a run ended with this exit status. That of machine.Held is 0: the run has no error.
func requireStatus(t *testing.T, want machine.Status, r result) {
	t.Helper()
	if want == machine.Held {
		require.NoError(t, r.err, r.out)
		return
	}
	require.ErrorIs(t, r.err, inspect.ExitStatus(want), r.out)
}

// For each state of a machine, kubegrace-node status prints what the golden file has, and ends with the exit status of
// the state. The JSON output has the same exit status in it.
func TestStatusOfEachMachineState(t *testing.T) {
	for _, state := range machineStates() {
		t.Run(state.name, func(t *testing.T) {
			m := newMachine(t)
			state.prepare(m)
			podArgs := m.writePods()
			r := m.runStatus(podArgs...)
			golden.Require(t, "node-"+state.name+".golden", r.out)
			requireStatus(t, state.exitStatus, r)

			var report output.NodeReport
			require.NoError(t, json.Unmarshal([]byte(m.runStatus(append(podArgs, "-o", "json")...).out), &report))
			require.Equal(t, state.exitStatus, report.Verdict.Status)
		})
	}
}

// apiServer starts a server that lists pods as an API server does: nodePods for worker-1, no pods for worker-0, and
// an error for any other node.
func apiServer(t *testing.T) *httptest.Server {
	t.Helper()
	pods, err := yaml.YAMLToJSON([]byte(strings.Replace(nodePods, "kind: List", "apiVersion: v1\nkind: PodList", 1)))
	require.NoError(t, err)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch r.URL.Path + "?" + r.URL.Query().Get("fieldSelector") {
		case "/api/v1/pods?spec.nodeName=worker-1":
			_, _ = w.Write(pods) // if this fails, the client's request fails
		case "/api/v1/pods?spec.nodeName=worker-0":
			_, _ = w.Write([]byte(`{"kind": "PodList", "apiVersion": "v1", "items": []}`)) // if this fails, the client's request fails
		default:
			http.Error(w, "no such node", http.StatusForbidden)
		}
	}))
	t.Cleanup(server.Close)
	return server
}

// newMachineWithLock returns a machine on which all is well: a kubelet whose shutdownGracePeriod is 30 s holds its
// lock. extraConfig is appended to the kubelet's configuration, and flags to its command line.
func newMachineWithLock(t *testing.T, extraConfig string, flags ...string) *fakeMachine {
	t.Helper()
	m := newMachine(t)
	m.addStockKubelet(extraConfig, flags...)
	m.takeLock("kubelet", kubeletWhy)
	return m
}

// The node's pods are read from the API server that the kubelet's kubeconfig names, and the static pods from the folder
// of their manifests. The static pod etcd has no priority, so it gets the 20 s of the pods that are not critical, of
// the 25 s that it asks for: exit status 2. If the API server refuses to list the node's pods (worker-2), or has no
// pods of the node (worker-0), it is not known what happens to the pods: exit status 4.
func TestPodsOfTheAPIServer(t *testing.T) {
	m := newMachineWithLock(t, "staticPodPath: /etc/kubernetes/manifests\n", "--kubeconfig=/etc/kubernetes/kubelet.conf")
	m.write("/etc/kubernetes/kubelet.conf", "apiVersion: v1\nkind: Config\ncurrent-context: c\ncontexts: [{name: c, context: {cluster: c, user: u}}]\nusers: [{name: u, user: {}}]\nclusters: [{name: c, cluster: {server: \""+apiServer(t).URL+"\"}}]\n")
	m.write("/etc/kubernetes/manifests/README", "no manifest yet")
	for node, want := range map[string]string{"worker-2": "no such node", "worker-0": `the API server: has no pods of a node "worker-0", which --node may have to name`} {
		r := m.runStatus("--node", node)
		requireStatus(t, machine.Unknown, r)
		require.Contains(t, r.out, want)
	}

	m.write("/etc/kubernetes/manifests/etcd.yaml", "kind: Pod\nmetadata: {name: etcd}\nspec: {terminationGracePeriodSeconds: 25}\n")
	r := m.runStatus()
	requireStatus(t, machine.Lossy, r)
	require.Contains(t, r.out, "pods       from the API server and /etc/kubernetes/manifests")
	require.Contains(t, r.out, "Pods cut short: 1 of 4; 5s are lost.")
}

// The file of --pods has four pods, of several nodes. Only the three pods of this node, worker-1, count. If the file
// has no pod of the node that --node names, status fails.
func TestPodsOfSeveralNodes(t *testing.T) {
	m := newMachineWithLock(t, noExtraConfig)
	podArgs := m.writePods("- {kind: Pod, metadata: {name: p}, spec: {nodeName: worker-2}, status: {phase: Running}}\n")
	r := m.runStatus(podArgs...)
	requireStatus(t, machine.Held, r)
	require.Contains(t, r.out, "No pod is cut short, of 3.")
	require.ErrorContains(t, m.runStatus(append(podArgs, "--node", "worker-3")...).err, `none of "worker-3"; --node says which is this one`)
}

// Each wrong flag or argument gives an error that names it, and nothing is written. So does a file of --pods without
// pods: status would otherwise say that all is well.
func TestErrorsOfStatus(t *testing.T) {
	m := newMachineWithLock(t, noExtraConfig)
	m.write("/nodes.yaml", "kind: List\nitems: [{kind: Node}]\n")
	for _, test := range []struct {
		args []string
		want string
	}{
		{args: []string{"-o", "html"}, want: `"html" for "-o, --output" flag: wanted is one of table, json, yaml`},
		{args: []string{"--every", "5ms"}, want: "--every: 5ms is too short, a second is the least"},
		{args: []string{"--textfile", "/nonexistent/a.prom", "--pods", "none"}, want: "--textfile: there is no folder /nonexistent"},
		{args: []string{"--root", "/nonexistent"}, want: "--root: there is no folder /nonexistent"},
		{args: []string{"--config", "/nonexistent"}, want: "--config: /nonexistent: failed to read: no such file or directory"},
		{args: []string{"--pods", "/nonexistent"}, want: "--pods: stat /nonexistent: no such file"},
		{args: []string{"--pods", "/dev/null"}, want: "--pods: /dev/null: has no pods, as kubectl get pods -o json gives them; it has: nothing"},
		{args: []string{"--pods", filepath.Join(m.root, "nodes.yaml")}, want: "has no pods, as kubectl get pods -o json gives them; it has: Node"},
		{args: []string{"--frmat"}, want: "unknown flag: --frmat"},
		{args: []string{"pods.json"}, want: `unknown command "pods.json"`},
	} {
		r := m.runStatus(test.args...)
		require.ErrorContains(t, r.err, test.want)
		require.Empty(t, r.out)
	}
}

// On a machine on which all is well, the metrics are those of the golden file. When the limit is lowered to 20 s, the
// exit status is 2, and the metrics have the 30 s that the kubelet needs, even without a list of pods. When the bus is
// stopped, the exit status is 4, and what is not known has no metric.
func TestMetrics(t *testing.T) {
	m := newMachineWithLock(t, noExtraConfig)
	r, text := m.metrics(m.writePods()...)
	requireStatus(t, machine.Held, r)
	golden.Require(t, "node.prom", text)

	m.login1.SetLimit(20 * time.Second)
	r, text = m.metrics()
	requireStatus(t, machine.Lossy, r)
	require.Contains(t, text, "limit_seconds 20\n")
	require.Contains(t, text, "needed_seconds 30\n", "also without a plan: the dashboard compares the two")

	m.bus.Stop()
	r, text = m.metrics()
	requireStatus(t, machine.Unknown, r)
	require.Contains(t, text, "kubegrace_node_status 4\n")
	require.NotContains(t, text, "limit_seconds")
}

// On a machine with a running agent, the metrics have the numbers that the agent sends on its socket. 7 s are lost:
// exit status 2.
func TestMetricsOfAnAgent(t *testing.T) {
	m := newMachine(t)
	m.startAgent(api.Status{Held: true, PodCount: 3, CutShort: 1, LostSeconds: 7})
	_, text := m.metrics()
	for _, line := range []string{"kubegrace_node_status 2", "kubegrace_node_needed_seconds 30", "kubegrace_node_pods 3", "kubegrace_node_pods_cut_short 1", "kubegrace_node_lost_seconds 7"} {
		require.Contains(t, text, line+"\n")
	}
}

// metrics calls runStatus with --textfile, and also returns the text of the file.
func (m *fakeMachine) metrics(args ...string) (result, string) {
	m.t.Helper()
	file := filepath.Join(m.t.TempDir(), "kubegrace-node.prom")
	r := m.runStatus(append(args, "--textfile", file)...)
	text, err := os.ReadFile(file)
	require.NoError(m.t, err)
	return r, string(text)
}

// With --every, kubegrace-node status looks at the machine repeatedly. After two looks the context is cancelled, which
// ends the command without an error.
func TestLooksAgainUntilItIsStopped(t *testing.T) {
	m := newMachineWithLock(t, noExtraConfig)
	ctx, stop := context.WithCancel(t.Context())
	looks := make(chan struct{}, 2)
	out := writerFunc(func(text []byte) (int, error) {
		looks <- struct{}{}
		return len(text), nil
	})
	c := newCommand(m.args("--pods", "none", "--every", "1s", "-o", "json")...)
	c.SetOut(out)
	ended := make(chan error, 1)
	go func() { ended <- c.ExecuteContext(ctx) }()
	<-looks
	<-looks
	stop()
	require.NoError(t, <-ended)
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(text []byte) (int, error) { return f(text) }

// In each case something cannot be seen that decides on the shutdown. kubegrace-node status must name it, say how to
// make it visible, and end with exit status 4, although all else is well. It must not say that a lock or a drop-in is
// left over: an operator might remove it.
func TestWhatCannotBeSeen(t *testing.T) {
	kubeletsCommandLine := fmt.Sprintf("/proc/%d/cmdline", os.Getpid())
	remove := func(path string) func(*fakeMachine) { return func(m *fakeMachine) { m.remove(path) } }
	for name, test := range map[string]struct {
		hide func(m *fakeMachine)
		args []string // nil: --pods with the pods
		want []string
	}{
		"the pods":      {hide: func(*fakeMachine) {}, args: []string{}, want: []string{"the pods: the API server: no kubeconfig is known (give --kubeconfig, or with --pods a file"}},
		"no cluster":    {hide: func(*fakeMachine) {}, args: []string{"--kubeconfig", "in-cluster"}, want: []string{"the API server: unable to load in-cluster configuration"}},
		"the processes": {hide: remove("proc/1"), want: []string{"the processes: the processes of others are hidden from this user (run it as root"}},
		"a file of logind": {hide: func(m *fakeMachine) { // the one with the limit that logind uses
			m.remove(filepath.Dir(kubeletFile))
			m.write(filepath.Dir(kubeletFile), "a file in the place of a folder")
		}, want: []string{filepath.Dir(kubeletFile) + ": not a directory"}},
		"the kubelet":       {hide: remove(kubeletsCommandLine), want: []string{"the kubelet: its lock is held, but no process was recognized as a kubelet (give --config"}},
		"its configuration": {hide: remove("var/lib/kubelet/config.yaml"), want: []string{"whether that covers its configuration could not be seen", "config.yaml: failed to read: no such file"}},
		"no bus":            {hide: func(m *fakeMachine) { m.bus.Stop() }, want: []string{"cannot be told: systemd-logind could not be asked", "failed to reach the system bus"}},
		"no logind":         {hide: func(m *fakeMachine) { m.login1.Close() }, want: []string{"cannot be told", "systemd-logind does not run (systemctl status systemd-logind)"}},
		"a kubelet in k3s": {hide: func(m *fakeMachine) { // k3s hides its arguments
			m.write(kubeletsCommandLine, "/usr/local/bin/k3s server\x00\x00\x00")
		}, want: []string{"the configuration of the kubelet in k3s (PID 812): its command line does not have it", "proxy/configz"}},
		"a kubelet in k0s": {hide: func(m *fakeMachine) {
			m.write(kubeletsCommandLine, "/usr/local/bin/k0s\x00worker\x00--profile\x00default\x00")
		}, want: []string{"the configuration of the kubelet in k0s (PID 812): its command line does not have it", "proxy/configz"}},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMachineWithLock(t, noExtraConfig)
			test.hide(m)
			if test.args == nil {
				test.args = m.writePods()
			}
			r := m.runStatus(test.args...)
			requireStatus(t, machine.Unknown, r)
			require.Contains(t, r.out, "Not seen:")
			require.NotContains(t, r.out, "left over", "a kubelet or its lock is there")
			require.NotContains(t, r.out, "has not read them since they changed", "the file with the limit may be the one that cannot be read")
			for _, want := range test.want {
				require.Contains(t, r.out, want)
			}
		})
	}
}
