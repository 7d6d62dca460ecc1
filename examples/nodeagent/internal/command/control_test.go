package command_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kubegrace/kubegrace/examples/nodeagent/internal/api"
)

// startWithSocket starts an agent with a socket and waits until its pods run. It returns
// the folder of the manifests and the flag --socket=PATH.
func startWithSocket(t *testing.T, manifests map[string]string, more ...string) (p *process, dir, socketFlag string) {
	t.Helper()
	dir = folder(t, manifests)
	socket := filepath.Join(t.TempDir(), "s")
	p = start(t, append([]string{"--manifests=" + dir, "--socket=" + socket}, more...)...)
	p.waitFor("pods run.")
	return p, dir, "--socket=" + socket
}

func TestDrain(t *testing.T) {
	t.Parallel()
	p, _, socketFlag := startWithSocket(t, map[string]string{"web.yaml": scripted("web", "exits 10ms after TERM"), "db.yaml": scripted("db", "exits 10ms after TERM")})
	out, stderr, status := runTool(t, "drain", socketFlag, "-o=json")
	require.Zero(t, status, stderr)
	report := decode[api.Report](t, out)
	require.Equal(t, "nodeagent drain", report.Origin)
	require.Len(t, report.Pods, 2)
	require.Zero(t, p.waitExit())
	require.Contains(t, p.out.String(), "2 of 2 pods stopped in time.")
}

func TestDrainFailsIfTheAgentLeaves(t *testing.T) {
	t.Parallel()
	manifest := strings.Replace(scripted("web", "StopContainer fails"), "60", "1", 1)
	p, _, socketFlag := startWithSocket(t, map[string]string{"web.yaml": manifest})
	ended := make(chan string, 1)
	go func() {
		_, stderr, _ := runTool(t, "drain", socketFlag)
		ended <- stderr
	}()
	p.waitFor("got SIGTERM, is ending")
	out, _, status := runTool(t, "report", socketFlag, "-o=json")
	require.Zero(t, status)
	report := decode[api.Report](t, out)
	require.True(t, report.UnderWay)
	require.Len(t, report.Pods, 1)
	p.signal(syscall.SIGTERM)
	p.waitFor("the pods are being stopped, and that goes on")
	require.Equal(t, 1, p.terminate())
	require.Equal(t, "nodeagent: the agent has left before the pods were stopped\n", <-ended)
}

func TestStopOfOnePod(t *testing.T) {
	t.Parallel()
	p, _, socketFlag := startWithSocket(t, map[string]string{
		"web.yaml": scripted("web", "exits 10ms after TERM"), "db.yaml": scripted("db", "ignores TERM"),
	})
	out, stderr, status := runTool(t, "stop", socketFlag, "default/web")
	require.Zero(t, status, stderr)
	require.Equal(t, "default/web was stopped: stopped in time\n", out)
	out, stderr, status = runTool(t, "stop", socketFlag, "db", "--grace-period=1")
	require.Zero(t, status, stderr)
	require.Equal(t, "default/db was stopped: killed, its time was up\n", out)
	_, stderr, status = runTool(t, "stop", socketFlag, "cache")
	require.Equal(t, 1, status)
	require.Equal(t, "nodeagent: there is no pod \"cache\"\n", stderr)
	require.Zero(t, p.terminate(), "a shutdown has nothing more to do")
	require.Contains(t, p.out.String(), "0 of 2 pods stopped in time.")
}

// nodeagent stop shortens the stop of a pod by a drain. The pod stays in the report and the
// summary of the drain.
func TestStopShortensTheStopOfADrain(t *testing.T) {
	t.Parallel()
	p, _, socketFlag := startWithSocket(t, map[string]string{"db.yaml": scripted("db", "ignores TERM")})
	drained := make(chan string, 1)
	go func() {
		out, _, _ := runTool(t, "drain", socketFlag, "-o=json")
		drained <- out
	}()
	p.waitFor("got SIGTERM, is ending")
	out, stderr, status := runTool(t, "stop", socketFlag, "db", "--grace-period=1")
	require.Zero(t, status, stderr)
	require.Contains(t, out, "default/db gone after ")
	report := decode[api.Report](t, <-drained)
	require.Len(t, report.Pods, 1)
	require.EqualValues(t, 60, report.Pods[0].GrantedSeconds)
	require.Zero(t, p.waitExit())
	require.Regexp(t, `default/db +0 +0\+ +60 s +\d+\.\d s  killed, its time was up`, p.out.String())
	require.NotContains(t, p.out.String(), "was stopped")
}

func TestDrainFailsIfTheAgentIsKilled(t *testing.T) {
	t.Parallel()
	p, _, socketFlag := startWithSocket(t, map[string]string{"db.yaml": scripted("db", "ignores TERM")})
	ended := make(chan string, 1)
	go func() {
		_, stderr, _ := runTool(t, "drain", socketFlag)
		ended <- stderr
	}()
	p.waitFor("got SIGTERM, is ending")
	require.NoError(t, p.command.Process.Kill())
	require.Error(t, p.command.Wait())
	require.Contains(t, <-ended, "has ended, or closed the connection, before it answered")
}

func TestToolsWithoutAnAgent(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"drain"}, {"stop", "web"}, {"report", "--state-dir=" + t.TempDir()}} {
		_, stderr, status := runTool(t, append(args, "--socket=/nonexistent/s")...)
		require.Equal(t, 1, status)
		require.Contains(t, stderr, "no agent answers on /nonexistent/s")
		require.Equal(t, 1, strings.Count(stderr, "\n"))
	}
}

// An agent takes over the socket of one that was killed, but not of one that runs.
func TestSocketHasOneAgent(t *testing.T) {
	t.Parallel()
	p, dir, socketFlag := startWithSocket(t, map[string]string{"web.yaml": scripted("web", "")})
	info, err := os.Stat(strings.TrimPrefix(socketFlag, "--socket="))
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	second := start(t, "--manifests="+dir, socketFlag)
	require.Equal(t, 1, second.waitExit())
	require.Contains(t, second.stderr.String(), "another agent listens there")

	require.NoError(t, p.command.Process.Kill())
	require.Equal(t, -1, p.waitExit())
	third := start(t, "--manifests="+dir, socketFlag)
	third.waitFor("1 of 1 pods run.")
	_, stderr, status := runTool(t, "drain", socketFlag)
	require.Zero(t, status, stderr)
	require.Zero(t, third.waitExit())
}
