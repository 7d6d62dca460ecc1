package command_test

import (
	"bufio"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kubegrace/kubegrace/examples/nodeagent/internal/api"
)

// tell runs a command of the program beside the agent, and gives what it says.
func tell(t *testing.T, args ...string) (out, stderr string, status int) {
	t.Helper()
	p := &process{t: t}
	p.command = exec.CommandContext(t.Context(), program, args...)
	p.command.Stdout, p.command.Stderr = &p.out, &p.stderr
	require.NoError(t, p.command.Start())
	status = p.exit()
	return p.out.String(), p.stderr.String(), status
}

func decode[T any](t *testing.T, text string) T {
	t.Helper()
	var value T
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.DisallowUnknownFields()
	require.NoError(t, decoder.Decode(&value), text)
	return value
}

func TestPlanIsWhatTheAgentThenDoes(t *testing.T) {
	t.Parallel()
	dir := folder(t, map[string]string{
		"pods/web.yaml": scripted("web", "exits 10ms after TERM"),
		"pods/db.yaml":  strings.Replace(scripted("db", "exits 10ms after TERM"), "priority: 0", "priority: 1000", 1),
		"kubelet.yaml":  kubelet + "shutdownGracePeriodByPodPriority: [{priority: 0, shutdownGracePeriodSeconds: 20}, {priority: 1000, shutdownGracePeriodSeconds: 10}]\n",
	})
	planned := []string{"--manifests=" + dir + "/pods", "--config=" + dir + "/kubelet.yaml"}
	out, stderr, status := tell(t, append([]string{"plan", "-o=json"}, planned...)...)
	require.Zero(t, status, stderr)
	plan := decode[api.Plan](t, out)

	stateDir := t.TempDir()
	p := start(t, append(planned, "--state-dir="+stateDir, "--shutdown-after=10ms")...)
	p.says("Metrics are on")
	require.Zero(t, p.exit())
	out, stderr, status = tell(t, "report", "--state-dir="+stateDir, "--socket=/nonexistent", "-o=json")
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

func TestPlanSaysWhatIsCutShort(t *testing.T) {
	t.Parallel()
	out, stderr, status := tell(t, "plan", "--config=../../demo/kubelet.yaml", "--manifests=../../demo/pods", "--limit=10s")
	require.Zero(t, status, stderr)
	golden(t, "plan.txt", out)
}

func TestPlanReadsAsTheAgentDoes(t *testing.T) {
	t.Parallel()
	_, stderr, status := tell(t, "plan", "--manifests=/nonexistent")
	require.Equal(t, 1, status)
	require.Equal(t, "nodeagent: failed to list the pod manifests: stat /nonexistent: no such file or directory\n", stderr)
	_, stderr, status = tell(t, "plan", "--manifests=../../demo/pods", "-o=yaml")
	require.Equal(t, 1, status)
	require.Equal(t, "nodeagent: --output: Unsupported value: \"yaml\": supported values: \"table\", \"json\"\n", stderr)
}

// controlled is an agent with a socket.
func controlled(t *testing.T, manifests map[string]string, more ...string) (p *process, dir, at string) {
	t.Helper()
	dir = folder(t, manifests)
	socket := filepath.Join(t.TempDir(), "s")
	p = start(t, append([]string{"--manifests=" + dir, "--socket=" + socket}, more...)...)
	p.says("pods run.")
	return p, dir, "--socket=" + socket
}

func TestDrainByHand(t *testing.T) {
	t.Parallel()
	p, _, at := controlled(t, map[string]string{"web.yaml": scripted("web", "exits 10ms after TERM"), "db.yaml": scripted("db", "exits 10ms after TERM")})
	out, stderr, status := tell(t, "drain", at, "-o=json")
	require.Zero(t, status, stderr)
	report := decode[api.Report](t, out)
	require.Equal(t, "nodeagent drain", report.Origin)
	require.Len(t, report.Pods, 2)
	require.Zero(t, p.exit())
	require.Contains(t, p.out.String(), "2 of 2 pods stopped in time.")
}

func TestDrainByHandTellsOfPodsThatWereNotStopped(t *testing.T) {
	t.Parallel()
	manifest := strings.Replace(scripted("web", "StopContainer fails"), "60", "1", 1)
	p, _, at := controlled(t, map[string]string{"web.yaml": manifest})
	ended := make(chan string, 1)
	go func() {
		_, stderr, _ := tell(t, "drain", at)
		ended <- stderr
	}()
	p.says("got SIGTERM, is ending")
	out, _, status := tell(t, "report", at, "-o=json")
	require.Zero(t, status)
	report := decode[api.Report](t, out)
	require.True(t, report.UnderWay)
	require.Len(t, report.Pods, 1)
	p.signal(syscall.SIGTERM)
	p.says("the pods are being stopped, and that goes on")
	p.signal(syscall.SIGTERM)
	require.Equal(t, 1, p.exit())
	require.Equal(t, "nodeagent: the agent has left before the pods were stopped\n", <-ended)
}

func TestStopOfOnePod(t *testing.T) {
	t.Parallel()
	p, _, at := controlled(t, map[string]string{
		"web.yaml": scripted("web", "exits 10ms after TERM"), "db.yaml": scripted("db", "ignores TERM"),
	})
	out, stderr, status := tell(t, "stop", at, "default/web")
	require.Zero(t, status, stderr)
	require.Equal(t, "default/web was stopped: stopped in time\n", out)
	out, stderr, status = tell(t, "stop", at, "db", "--grace-period=1")
	require.Zero(t, status, stderr)
	require.Equal(t, "default/db was stopped: killed, its time was up\n", out)
	_, stderr, status = tell(t, "stop", at, "cache")
	require.Equal(t, 1, status)
	require.Equal(t, "nodeagent: there is no pod \"cache\"\n", stderr)
	p.signal(syscall.SIGTERM)
	require.Zero(t, p.exit(), "a shutdown has nothing more to do")
	require.Contains(t, p.out.String(), "0 of 2 pods stopped in time.")
}

// The pod stays one of the shutdown, in its report and in the count at the end.
func TestStopHastensAPodThatADrainIsStopping(t *testing.T) {
	t.Parallel()
	p, _, at := controlled(t, map[string]string{"db.yaml": scripted("db", "ignores TERM")})
	drained := make(chan string, 1)
	go func() {
		out, _, _ := tell(t, "drain", at, "-o=json")
		drained <- out
	}()
	p.says("got SIGTERM, is ending")
	out, stderr, status := tell(t, "stop", at, "db", "--grace-period=1")
	require.Zero(t, status, stderr)
	require.Contains(t, out, "default/db gone after ")
	report := decode[api.Report](t, <-drained)
	require.Len(t, report.Pods, 1)
	require.EqualValues(t, 60, report.Pods[0].GrantedSeconds)
	require.Zero(t, p.exit())
	require.Regexp(t, `default/db +0 +0\+ +60 s +\d+\.\d s  killed, its time was up`, p.out.String())
	require.NotContains(t, p.out.String(), "was stopped")
}

func TestDrainWhoseAgentIsKilled(t *testing.T) {
	t.Parallel()
	p, _, at := controlled(t, map[string]string{"db.yaml": scripted("db", "ignores TERM")})
	ended := make(chan string, 1)
	go func() {
		_, stderr, _ := tell(t, "drain", at)
		ended <- stderr
	}()
	p.says("got SIGTERM, is ending")
	require.NoError(t, p.command.Process.Kill())
	require.Error(t, p.command.Wait())
	require.Contains(t, <-ended, "has ended, or closed the connection, before it answered")
}

func TestWithoutAnAgentToAsk(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"drain"}, {"stop", "web"}, {"report", "--state-dir=" + t.TempDir()}} {
		_, stderr, status := tell(t, append(args, "--socket=/nonexistent/s")...)
		require.Equal(t, 1, status)
		require.Contains(t, stderr, "no agent answers on /nonexistent/s")
		require.Equal(t, 1, strings.Count(stderr, "\n"))
	}
}

// The socket of an agent that was killed is taken over, that of a living one is not.
func TestSocketHasOneAgent(t *testing.T) {
	t.Parallel()
	p, dir, at := controlled(t, map[string]string{"web.yaml": scripted("web", "")})
	info, err := os.Stat(strings.TrimPrefix(at, "--socket="))
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	second := start(t, "--manifests="+dir, at)
	require.Equal(t, 1, second.exit())
	require.Contains(t, second.stderr.String(), "another agent listens there")

	require.NoError(t, p.command.Process.Kill())
	require.Equal(t, -1, p.exit())
	third := start(t, "--manifests="+dir, at)
	third.says("1 of 1 pods run.")
	_, stderr, status := tell(t, "drain", at)
	require.Zero(t, status, stderr)
	require.Zero(t, third.exit())
}

func TestProgramsMayRead(t *testing.T) {
	t.Parallel()
	p, _, _ := controlled(t, map[string]string{"web.yaml": scripted("web", "ignores TERM")})
	address := regexp.MustCompile(`http://127\.0\.0\.1:\d+`).FindString(p.out.String())
	pods := decode[api.PodList](t, get(t, address+"/pods"))
	require.Equal(t, api.Pod{Namespace: "default", Name: "web", UID: pods.Items[0].UID, State: "Running", Doing: "runs"}, pods.Items[0])
	require.Equal(t, api.Meta{APIVersion: "nodeagent.kubegrace.dev/v1", Kind: "PodList"}, pods.Meta)
	plan := decode[api.Plan](t, get(t, address+"/plan"))
	require.EqualValues(t, 60, plan.Buckets[0].Pods[0].GrantedSeconds)

	p.signal(syscall.SIGTERM)
	p.says("got SIGTERM, is ending")
	pods = decode[api.PodList](t, get(t, address+"/pods"))
	require.True(t, pods.ShuttingDown)
	require.Equal(t, "Ending", pods.Items[0].State)
	require.EqualValues(t, 60, pods.Items[0].Granted)
	require.Equal(t, []api.Container{{Name: "app", Phase: "Stopping"}}, pods.Items[0].Containers)
	require.True(t, decode[api.Report](t, get(t, address+"/report")).UnderWay)
}

// Files that are written, changed and removed while the agent runs.
func TestManifestsAreWatched(t *testing.T) {
	t.Parallel()
	p, dir, _ := controlled(t, map[string]string{"web.yaml": scripted("web", "exits 10ms after TERM")})
	write := func(name, text string) {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	write("db.yaml", scripted("db", "exits 10ms after TERM"))
	p.says("default/db               runs")
	write("web.yaml", strings.Replace(scripted("web", "exits 10ms after TERM"), "60", "61", 1))
	p.says("default/web: its manifest has changed, it is stopped and then started again.")
	require.NoError(t, os.Remove(filepath.Join(dir, "db.yaml")))
	p.says("default/db: its manifest is gone, it is stopped.")
	write("web.yaml", "kind: [")
	require.Eventually(t, func() bool {
		return strings.Contains(p.stderr.String(), "Failed to read the manifests again, the pods stay as they are")
	}, 20*time.Second, 5*time.Millisecond)
	p.signal(syscall.SIGTERM)
	require.Zero(t, p.exit())
	require.Contains(t, p.out.String(), "1 of 1 pod stopped in time.")
}

func TestLogsInJSON(t *testing.T) {
	t.Parallel()
	dir := folder(t, map[string]string{"web.yaml": strings.Replace(scripted("web", "exec fails"), "image: local/busybox", "image: local/busybox, lifecycle: {preStop: {exec: {command: [drain, s3cret]}}}", 1)})
	p := start(t, "--manifests="+dir, "--log-format=json", "-v=1", "--shutdown-after=1ms")
	require.Zero(t, p.exit())
	seen := map[string]bool{}
	for lines := bufio.NewScanner(strings.NewReader(p.stderr.String())); lines.Scan(); {
		var line map[string]any
		require.NoError(t, json.Unmarshal(lines.Bytes(), &line), lines.Text())
		require.Contains(t, line, "time")
		reason, _ := line["reason"].(string)
		seen[reason] = true
	}
	require.True(t, seen["Killing"] && seen["FailedPreStopHook"], p.stderr.String())
	require.NotContains(t, p.out.String()+p.stderr.String(), "s3cret")
}

func TestVersion(t *testing.T) {
	t.Parallel()
	out, _, status := tell(t, "--version")
	require.Zero(t, status)
	require.Regexp(t, `^nodeagent \S+ \(go1\.\d+.*, linux/\w+\)\n$`, out)
}

// golden compares with a file, or writes it where KUBEGRACE_GOLDEN is set.
func golden(t *testing.T, name, text string) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if os.Getenv("KUBEGRACE_GOLDEN") != "" {
		require.NoError(t, os.MkdirAll("testdata", 0o755))
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	}
	want, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, string(want), text)
}

// The page has what was planned beside what has happened.
func TestReportAsAPage(t *testing.T) {
	t.Parallel()
	stateDir := t.TempDir()
	p := start(t, "--manifests=../../demo/pods", "--config=../../demo/kubelet.yaml", "--state-dir="+stateDir, "--shutdown-after=10ms")
	require.Zero(t, p.exit(), p.stderr.String())
	page, stderr, status := tell(t, "report", "--socket=/nonexistent", "--state-dir="+stateDir, "-o=html")
	require.Zero(t, status, stderr)
	require.Contains(t, page, "<!DOCTYPE html>")
	require.Contains(t, page, "shop/web")
	require.Contains(t, page, "asks for 6 s, gets 6 s; got 6 s, Graceful")
	require.Equal(t, 9, strings.Count(page, "asks for"))
}
