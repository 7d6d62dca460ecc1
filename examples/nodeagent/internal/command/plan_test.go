package command_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kubegrace/kubegrace/examples/internal/golden"
	"github.com/kubegrace/kubegrace/examples/nodeagent/internal/api"
)

func TestPlanIsWhatTheAgentDoes(t *testing.T) {
	t.Parallel()
	dir := folder(t, map[string]string{
		"pods/web.yaml": scripted("web", "exits 10ms after TERM"),
		"pods/db.yaml":  strings.Replace(scripted("db", "exits 10ms after TERM"), "priority: 0", "priority: 1000", 1),
		"kubelet.yaml":  kubelet + "shutdownGracePeriodByPodPriority: [{priority: 0, shutdownGracePeriodSeconds: 20}, {priority: 1000, shutdownGracePeriodSeconds: 10}]\n",
	})
	flags := []string{"--manifests=" + dir + "/pods", "--config=" + dir + "/kubelet.yaml"}
	out, stderr, status := runTool(t, append([]string{"plan", "-o=json"}, flags...)...)
	require.Zero(t, status, stderr)
	plan := decode[api.Plan](t, out)

	stateDir := t.TempDir()
	p := start(t, append(flags, "--state-dir="+stateDir, "--shutdown-after=10ms")...)
	p.waitFor("Metrics are on")
	require.Zero(t, p.waitExit())
	out, stderr, status = runTool(t, "report", "--state-dir="+stateDir, "--socket=/nonexistent", "-o=json")
	require.Zero(t, status, stderr)
	report := decode[api.Report](t, out)
	require.Len(t, report.Pods, 2)
	require.False(t, report.Ended.IsZero())
	for i, bucket := range plan.Buckets {
		require.Len(t, bucket.Pods, 1)
		require.Equal(t, bucket.Pods[0].Name, report.Pods[i].Name)
		require.Equal(t, bucket.Priority, report.Pods[i].Bucket)
		require.Equal(t, "Graceful", report.Pods[i].Outcome)
	}
	require.Equal(t, plan.Buckets[0].Pods[0].GrantedSeconds, report.Pods[0].GrantedSeconds)
	require.Equal(t, "--shutdown-after", report.Origin)
}

func TestPlanShowsPodsThatAreCutShort(t *testing.T) {
	t.Parallel()
	out, stderr, status := runTool(t, "plan", "--config=../../demo/kubelet.yaml", "--manifests=../../demo/pods", "--limit=10s")
	require.Zero(t, status, stderr)
	golden.Require(t, "plan.txt", out)
}

func TestPlanRejectsInvalidInput(t *testing.T) {
	t.Parallel()
	_, stderr, status := runTool(t, "plan", "--manifests=/nonexistent")
	require.Equal(t, 1, status)
	require.Equal(t, "nodeagent: failed to list the pod manifests: stat /nonexistent: no such file or directory\n", stderr)
	_, stderr, status = runTool(t, "plan", "--manifests=../../demo/pods", "-o=yaml")
	require.Equal(t, 1, status)
	require.Equal(t, "nodeagent: --output: Unsupported value: \"yaml\": supported values: \"table\", \"json\"\n", stderr)
}

// The page of a report shows the plan and what has happened.
func TestReportAsAPage(t *testing.T) {
	t.Parallel()
	stateDir := t.TempDir()
	p := start(t, "--manifests=../../demo/pods", "--config=../../demo/kubelet.yaml", "--state-dir="+stateDir, "--shutdown-after=10ms")
	require.Zero(t, p.waitExit(), p.stderr.String())
	page, stderr, status := runTool(t, "report", "--socket=/nonexistent", "--state-dir="+stateDir, "-o=html")
	require.Zero(t, status, stderr)
	require.Contains(t, page, "<!DOCTYPE html>")
	require.Contains(t, page, "shop/web")
	require.Contains(t, page, "asks for 6 s, gets 6 s; got 6 s, Graceful")
	require.Equal(t, 9, strings.Count(page, "asks for"))
}
