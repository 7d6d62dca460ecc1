package inspect_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"github.com/kubegrace/kubegrace/examples/internal/golden"
	"github.com/kubegrace/kubegrace/examples/kubegrace-node/internal/inspect"
	"github.com/kubegrace/kubegrace/examples/kubegrace-node/internal/nodeplan"
	"github.com/kubegrace/kubegrace/internal/need"
)

// cutShortArgs returns the arguments of a plan in which pods are cut short: kubegrace needs more than 50 s for its
// three buckets and its own steps, but the host waits for 35 s. more is appended.
func cutShortArgs(more ...string) []string {
	return append([]string{"testdata/pods.yaml", "--agent", "kubegrace", "--config", "testdata/priorities.yaml", "--limit", "35s"}, more...)
}

// The output of kubegrace-node plan is in golden files: a table and JSON in which pods are cut short, a table without a
// configuration (the graceful node shutdown is off), and a table of a kubelet that takes no lock, because it needs 30 s
// and the host waits for 29 s.
func TestGolden(t *testing.T) {
	for name, args := range map[string][]string{
		"table.golden":  cutShortArgs(),
		"plan.json":     cutShortArgs("-o", "json"),
		"off.golden":    {"testdata/pods.yaml"},
		"nolock.golden": {"testdata/pods.yaml", "--config", "testdata/kubelet.yaml", "--limit", "29s", "--node", "worker-1"},
	} {
		t.Run(name, func(t *testing.T) {
			r := runPlan(t, noInput, args...)
			if r.err != nil {
				require.ErrorIs(t, r.err, inspect.ErrCutShort)
			}
			golden.Require(t, name, r.out)
		})
	}
}

// The outputs as JSON and as YAML have the same document, with all nodes.
func TestJSONAndYAMLAreTheSameDocument(t *testing.T) {
	var fromJSON, fromYAML nodeplan.Document
	require.NoError(t, json.Unmarshal([]byte(runPlan(t, noInput, cutShortArgs("-o", "json")...).out), &fromJSON))
	require.NoError(t, yaml.UnmarshalStrict([]byte(runPlan(t, noInput, cutShortArgs("-o", "yaml")...).out), &fromYAML))
	require.Equal(t, fromJSON, fromYAML)
	require.Equal(t, nodeplan.APIVersion, fromJSON.APIVersion)
	require.Len(t, fromJSON.Nodes, 2)
	require.Equal(t, 2, fromJSON.Summary.NodeCount)
}

// Without pods the table says so. In JSON and YAML the list of nodes is [] and not null, so that programs can loop over
// it.
func TestAPlanWithoutPods(t *testing.T) {
	require.Contains(t, runPlan(t, `{"kind": "List", "items": []}`, "--shutdown-grace-period", "30s").out, "There are no pods.")
	for _, format := range []string{"json", "yaml"} {
		var empty nodeplan.Document
		r := runPlan(t, `{"kind": "List", "items": []}`, "-o", format)
		require.NoError(t, r.err)
		require.NoError(t, yaml.UnmarshalStrict([]byte(r.out), &empty))
		require.Equal(t, []nodeplan.Node{}, empty.Nodes, "a list, not null")
	}
}

// Each error names the flag or the input that is wrong. Nothing is written to standard output, and the error is not
// ErrCutShort, which has an exit status of its own.
func TestErrorsNameTheFlagOrTheInput(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "pods.json")
	for name, test := range map[string]struct {
		stdin string
		args  []string
		want  string
	}{
		"empty input":                              {args: []string{"-"}, want: "standard input: has no pods, as kubectl get pods -o json gives them; it has: nothing"},
		"a missing file":                           {args: []string{missing}, want: missing + ": no such file or directory"},
		"a file without pods":                      {args: []string{"testdata/kubelet.yaml"}, want: "testdata/kubelet.yaml: has no pods, as kubectl get pods -o json gives them; it has: KubeletConfiguration"},
		"an unknown format":                        {args: []string{"-o", "xml", "-"}, want: `"xml" for "-o, --output" flag: wanted is one of table, json, yaml, html`},
		"a negative limit":                         {args: []string{"--limit", "-1s", "-"}, want: "--limit: -1s is less than 0"},
		"an unknown agent":                         {args: []string{"--agent", "me", "-"}, want: `"me" for "--agent" flag: wanted is one of kubelet, kubegrace`},
		"a node without pods":                      {args: cutShortArgs("--node", "worker-9"), want: `--node: "worker-9" has no pods here; the first node is worker-1`},
		"a node without pods in an empty list":     {stdin: "kind: List\napiVersion: v1\nitems: []\n", args: []string{"--node", "worker-9", "-"}, want: `--node: "worker-9" has no pods here: there are no pods at all`},
		"two configurations":                       {args: cutShortArgs("--shutdown-grace-period", "3s"), want: "--shutdown-grace-period: is only for"},
		"a missing configuration":                  {args: []string{"--config", missing, "-"}, want: "--config: " + missing + ": failed to read: no such file or directory"},
		"pods as the configuration":                {args: []string{"--config", "testdata/pods.yaml", "-"}, want: "testdata/pods.yaml: "},
		"more time for critical pods than for all": {args: []string{"--shutdown-grace-period", "3s", "--shutdown-grace-period-critical-pods", "4s", "-"}, want: "--shutdown-grace-period: "},
	} {
		t.Run(name, func(t *testing.T) {
			r := runPlan(t, test.stdin, test.args...)
			require.ErrorContains(t, r.err, test.want)
			require.NotErrorIs(t, r.err, inspect.ErrCutShort)
			require.Empty(t, r.out)
		})
	}
}

// Without a configuration the plan is that of the kubelet's defaults. A note says so, because the user may have
// forgotten --config. With a flag that configures the shutdown there is no note.
func TestAPlanWithoutAConfigurationSaysSo(t *testing.T) {
	const note = "no configuration is given (--config, --shutdown-grace-period): this is the plan of a kubelet's defaults"
	require.Contains(t, runPlan(t, "kind: Pod\n").log, note)
	require.NotContains(t, runPlan(t, "kind: Pod\n", "--shutdown-grace-period", "30s").log, note)
}

// Without an argument, kubegrace-node plan asks the running agent for its plan. The first call fails because no agent runs.
// The second call fails before it asks, because the agent would ignore --limit and --node.
func TestWithoutAnArgumentTheAgentIsAsked(t *testing.T) {
	require.ErrorContains(t, runPlan(t, noInput, "--socket", "/nonexistent").err, "no agent answers on /nonexistent")
	require.ErrorContains(t, runPlan(t, noInput, "--limit", "30s", "--node", "n").err, "--limit, --node: the agent of this machine plans by its own settings; for other pods give a FILE")
}

// A pod has neither a priority nor a priority class, so its priority 0 is a guess. The table marks it with "?".
func TestGuessedPrioritiesAreMarked(t *testing.T) {
	r := runPlan(t, "kind: Pod\n", "--shutdown-grace-period", "30s")
	require.NoError(t, r.err)
	require.Regexp(t, `(?s)default/ +0\? .*\n\? A priority is guessed`, r.out)
}

// Objects that are left out of the plan are counted on standard error: a pod that has ended, pods that were given
// twice, and an object that is no pod. Giving the pods twice does not change the plan.
func TestPodsThatAreLeftOutAreCounted(t *testing.T) {
	once := runPlan(t, noInput, cutShortArgs()...)
	twice := runPlan(t, noInput, cutShortArgs("testdata/pods.yaml", "testdata/kubelet.yaml")...)
	require.Equal(t, "kubegrace-node plan: left out are pods that have ended: 1\n", once.log)
	require.Contains(t, twice.log, "given more than once, and counted once, are pods: 5\n")
	require.Contains(t, twice.log, "left out is what is no pod: KubeletConfiguration\n")
	require.Equal(t, once.out, twice.out)
}

// A pod, its container and its node have names with control characters, and the pod has the largest possible numbers.
// No control character but the line feed may reach the terminal.
func TestControlCharactersDoNotReachTheTerminal(t *testing.T) {
	r := runPlan(t, `{"items": [{"metadata": {"name": "\u001b[31mred\u0007\u4e16\u754c\n"}, "spec": {"nodeName": "n\u001b", "priority": 2147483647, "terminationGracePeriodSeconds": 9223372036854775807,
		"containers": [{"name": "\u001b[2J", "lifecycle": {"preStop": {"sleep": {"seconds": 9223372036854775807}}}}]}}]}`)
	require.ErrorIs(t, r.err, inspect.ErrCutShort)
	require.Contains(t, r.out, "default/?[31mred")
	require.NotRegexp(t, `[\x00-\x09\x0b-\x1f\x7f]`, r.out)
}

// manyNodes returns the pods of the 20 nodes n00 to n19. Each node has a pod that asks for ten times the number of its node in seconds,
// from 0 s to 190 s, and n00 has a critical pod that asks for a day.
func manyNodes() string {
	var list strings.Builder
	for i := range 20 {
		fmt.Fprintf(&list, `{"kind": "Pod", "metadata": {"name": "p"}, "spec": {"nodeName": "n%02d", "terminationGracePeriodSeconds": %d}}`+"\n", i, 10*i)
	}
	list.WriteString(`{"kind": "Pod", "metadata": {"name": "slow"}, "spec": {"nodeName": "n00", "priority": 2000000000, "terminationGracePeriodSeconds": 86400}}`)
	return list.String()
}

// Each pod of 20 nodes gets 50 s, so the 14 pods of n06 to n19 are cut short, and so is a critical pod that asks for a day. Instead of
// tables of pods the output has the sums, what to change, and the four nodes that lose most. No bucket of a day is proposed: the
// critical pod is named as an outlier.
func TestManyNodesAreSummedUp(t *testing.T) {
	r := runPlan(t, manyNodes(), "--shutdown-grace-period", "50s")
	require.ErrorIs(t, r.err, inspect.ErrCutShort)
	require.NotContains(t, r.out, "START", "the head of a table of pods")
	require.Contains(t, r.out, "20 nodes with 21 pods: 15 cut short")
	require.Less(t, strings.Index(r.out, "n19"), strings.Index(r.out, "n18"), "the worst first")
	require.NotContains(t, r.out, "n16", "only n00, n19, n18 and n17 are named")
	beginning := strings.Join(strings.SplitAfter(r.out, "\n")[:20], "")
	require.Contains(t, beginning, "shutdownGracePeriod: ", "what to change")
	require.Contains(t, strings.Join(strings.Fields(beginning), " "), "1 critical pod asks for 1d: default/pod/slow; no bucket of that length is proposed, and it is cut short.")
	require.Contains(t, beginning, "workload default/pod/p ", "the workload that loses most")
}

// With --node one node is shown in full, JSON has all nodes, and a page has the ten that lose most.
func TestOutputsOfManyNodes(t *testing.T) {
	args := []string{"--shutdown-grace-period", "50s"}
	require.Equal(t, 1, strings.Count(runPlan(t, manyNodes(), append(args, "--node", "n07")...).out, "POD "), "tables of pods")
	var document nodeplan.Document
	require.NoError(t, json.Unmarshal([]byte(runPlan(t, manyNodes(), append(args, "-o", "json")...).out), &document))
	require.Len(t, document.Nodes, 20)
	require.Equal(t, 10, strings.Count(runPlan(t, manyNodes(), append(args, "-o", "html")...).out, "<h2>n"), "nodes")
}

// result is what a command has written to standard output (out) and standard error (log), and what it returned.
type result struct {
	out, log string
	err      error
}

// noInput says that the command reads no standard input.
const noInput = ""

// runPlan runs kubegrace-node plan. Unless stdin is noInput, the command reads it as standard input: "-" is added to the arguments.
func runPlan(t *testing.T, stdin string, args ...string) result {
	t.Helper()
	if stdin != noInput {
		args = append(args, "-")
	}
	return runCommand(t, stdin, append([]string{"plan"}, args...)...)
}

// runCommand runs a command of kubegrace-node: plan or status.
func runCommand(t *testing.T, stdin string, args ...string) result {
	t.Helper()
	var out, log bytes.Buffer
	c := newCommand(args...)
	c.SetIn(strings.NewReader(stdin))
	c.SetOut(&out)
	c.SetErr(&log)
	err := c.ExecuteContext(t.Context())
	return result{out.String(), log.String(), err}
}

// newCommand returns a root command that executes plan or status.
func newCommand(args ...string) *cobra.Command {
	c := &cobra.Command{Use: "kubegrace-node", SilenceUsage: true, SilenceErrors: true}
	c.AddCommand(inspect.NewPlan(), inspect.NewStatus())
	c.SetArgs(args)
	return c
}

// PLAN.md shows two outputs of kubegrace-node: the plan of the demo's pods, up to the warnings and indented by four
// spaces, and the status of a machine in the state limit-too-low, up to the reasons and with other line breaks.
func TestPLANShowsWhatIsPrinted(t *testing.T) {
	page, err := os.ReadFile("../../PLAN.md")
	require.NoError(t, err)

	// The plan.
	const folder = "../../../kubegrace-node/demo/"
	r := runPlan(t, noInput, "--agent", "kubegrace", "--config", folder+"kubelet.yaml", "--limit", "16s", folder+"pods")
	require.ErrorIs(t, r.err, inspect.ErrCutShort)
	plan, _, found := strings.Cut(r.out, "\nWarnings:\n")
	require.True(t, found, r.out)
	require.Contains(t, string(page), regexp.MustCompile(`(?m)^.`).ReplaceAllString(plan, "    $0"))

	// The status.
	status, err := os.ReadFile("testdata/node-limit-too-low.golden")
	require.NoError(t, err)
	text, _, _ := strings.Cut(string(status), "\nWhy,")
	require.Contains(t, strings.Join(strings.Fields(string(page)), " "), strings.Join(strings.Fields(text), " "))
}

// deploy is the folder with the alert rules and the dashboard that are shipped with kubegrace-node.
const deploy = "../../deploy/"

// promtool finds nothing wrong with the alert rules, and they fire as alerts_test.yaml says.
func TestAlertRules(t *testing.T) {
	promtool := need.Program(t, "promtool", "prometheus")
	for _, args := range [][]string{{"check", "rules", "--lint-fatal", "alerts.yaml"}, {"test", "rules", "alerts_test.yaml"}} {
		command := exec.CommandContext(t.Context(), promtool, args...)
		command.Dir = deploy
		out, err := command.CombinedOutput()
		require.NoErrorf(t, err, "%v: %s", args, out)
	}
}

// Every metric that the alert rules and the dashboard query exists. One whose name begins with kubegrace_node_ is
// written by status or listed in INSTALL.md. One whose name begins with kubelet_ is listed in the README of the package
// metrics. An alert with a misspelled name would never fire.
func TestDeployedQueriesNameMetrics(t *testing.T) {
	status, err := os.ReadFile("testdata/node.prom")
	require.NoError(t, err)
	agent, err := os.ReadFile("../../../../metrics/README.md")
	require.NoError(t, err)
	install, err := os.ReadFile("../../INSTALL.md")
	require.NoError(t, err)
	for _, file := range []string{"alerts.yaml", "alerts_test.yaml", "dashboard.json"} {
		text, err := os.ReadFile(deploy + file)
		require.NoError(t, err)
		ofStatus := regexp.MustCompile(`kubegrace_node_\w+`).FindAllString(string(text), -1)
		ofAgent := regexp.MustCompile(`kubelet_\w+`).FindAllString(string(text), -1)
		require.NotEmpty(t, ofStatus, file)
		require.NotEmpty(t, ofAgent, file)
		for _, name := range ofStatus {
			if !strings.Contains(string(install), "\n| `"+name+"` |") { // not one that only the agent has
				require.Contains(t, string(status), "\n"+name+" ", file)
			}
		}
		for _, name := range ofAgent {
			require.Contains(t, string(agent), "\n| `"+name+"` |", file)
		}
	}
}

// A D-Bus daemon starts a service that does not run when somebody calls it. kubegrace-node status must change nothing
// on the machine, so it must not have logind started. Here the service of logind is a program that creates the file
// "started". The file must not appear, and the exit status is 4, because logind cannot be asked.
func TestStatusDoesNotStartLogind(t *testing.T) {
	data, root := t.TempDir(), t.TempDir()
	bus := filepath.Join(root, "run/dbus/system_bus_socket")
	require.NoError(t, os.MkdirAll(filepath.Dir(bus), 0o700))
	started := filepath.Join(data, "started")
	require.NoError(t, os.MkdirAll(filepath.Join(data, "dbus-1/services"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(data, "dbus-1/services/org.freedesktop.login1.service"),
		[]byte("[D-BUS Service]\nName=org.freedesktop.login1\nExec=/usr/bin/touch "+started+"\n"), 0o600))
	t.Setenv("XDG_DATA_HOME", data)

	daemon := exec.CommandContext(t.Context(), need.Program(t, "dbus-daemon", "dbus"), "--session", "--nofork", "--print-address=1", "--address=unix:path="+bus)
	out, err := daemon.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, daemon.Start())
	t.Cleanup(func() { _ = daemon.Wait() })        // the end of the context has killed it, which is an error
	_, err = bufio.NewReader(out).ReadString('\n') // its address; now it listens
	require.NoError(t, err)

	r := runCommand(t, noInput, "status", "--root", root)
	require.ErrorIs(t, r.err, inspect.ExitStatus(4))
	require.Contains(t, r.out, "systemd-logind does not run")
	require.NoFileExists(t, started)
}
