package inspect_test

import (
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kubegrace/kubegrace/internal/need"
)

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

// Every metric that the alert rules and the dashboard query exists: kubegrace_node_* is written by status or
// listed in INSTALL.md, and kubelet_* is listed in the README of the package metrics. A misspelled name would
// never fire.
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
