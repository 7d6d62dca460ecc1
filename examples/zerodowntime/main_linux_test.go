package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kubegrace/kubegrace/examples/zerodowntime/internal/rollout"
	"github.com/kubegrace/kubegrace/examples/zerodowntime/internal/show"
)

// runVariable is an environment variable. If it is set, the test binary runs main. The
// backends of the program inherit it, so its value identifies all processes of one run.
const runVariable = "ZERODOWNTIME_TEST_RUN"

func TestMain(m *testing.M) {
	if os.Getenv(runVariable) != "" {
		main()
		return
	}
	m.Run()
}

// newCommand returns a command that runs this program in a process group of its own, as a
// shell does, and the value of runVariable for its processes.
func newCommand(t *testing.T, args ...string) (*exec.Cmd, string) {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	run := t.TempDir()
	cmd := exec.CommandContext(t.Context(), self, args...)
	cmd.Env = append(os.Environ(), runVariable+"="+run)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	return cmd, run
}

// processesOf returns the processes of a run that have not ended.
func processesOf(t *testing.T, run string) []string {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/environ")
	require.NoError(t, err)
	var found []string
	for _, file := range files {
		environ, err := os.ReadFile(file)
		if err == nil && bytes.Contains(environ, []byte(runVariable+"="+run+"\x00")) {
			found = append(found, file)
		}
	}
	return found
}

// shortFlags returns flags with which everything takes little time.
func shortFlags(more ...string) []string {
	return append([]string{
		"--delay=700ms", "--sleep=4", "--short-grace=1", "--task=5s", "--min-ready=200ms", "--backends=2", "--rate=50", "--websockets=6",
	}, more...)
}

func TestProgramMeasuresAllScenarios(t *testing.T) {
	picture := filepath.Join(t.TempDir(), "p.svg")
	cmd, run := newCommand(t, shortFlags("-o", "json", "--picture", picture)...)
	var progress bytes.Buffer
	cmd.Stderr = &progress
	out, err := cmd.Output()
	require.NoError(t, err, progress.String())
	require.Empty(t, processesOf(t, run), "all backends have ended")

	var document show.Document
	require.NoError(t, json.Unmarshal(out, &document))
	require.Equal(t, show.Version, document.Version)
	require.False(t, document.Interrupted)
	require.Len(t, document.Advice, 3)
	failed := map[string]int{}
	for _, r := range document.Scenarios {
		failed[r.Scenario] = r.Requests.Failed()
		require.NotEmpty(t, r.Bins)
	}
	require.Len(t, failed, len(rollout.Names()))
	for name, fails := range map[string]bool{
		rollout.NoSleep: true, rollout.Sleep: false, rollout.LongRequests: false, rollout.ShortGrace: true,
		rollout.WebsocketsCut: true, rollout.WebsocketsDrain: false,
	} {
		require.Equal(t, fails, failed[name] > 0, "%s: %d failed", name, failed[name])
	}
	for _, a := range document.Advice {
		require.Positive(t, a.TerminationGracePeriodSeconds, a.Why)
	}
	for _, line := range []string{"old-1 deleted, grace 30 s", "old-1 deleted, grace 1 s", "old-1 SIGTERM", "old-1 gone: exit status 0", "old-1 gone: signal: killed"} {
		require.Contains(t, progress.String(), line)
	}
	drawn, err := os.ReadFile(picture)
	require.NoError(t, err)
	require.Contains(t, string(drawn), "Short requests, no preStop sleep")
}

// startUntilDeleted starts the program, and returns when the first pod has been deleted.
func startUntilDeleted(t *testing.T, args ...string) (*exec.Cmd, string, *bytes.Buffer) {
	t.Helper()
	cmd, run := newCommand(t, args...)
	var out bytes.Buffer
	cmd.Stdout = &out
	progress, err := cmd.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	lines := bufio.NewScanner(progress)
	for deleted := false; !deleted && lines.Scan(); {
		deleted = strings.Contains(lines.Text(), "deleted")
	}
	require.NotEmpty(t, processesOf(t, run))
	return cmd, run, &out
}

func TestInterruptEndsEverything(t *testing.T) {
	cmd, run, out := startUntilDeleted(t, shortFlags("-o", "json", "--scenario=long-requests,sleep,websockets-drain")...)
	signalled := time.Now()
	require.NoError(t, syscall.Kill(-cmd.Process.Pid, syscall.SIGINT)) // Ctrl-C sends it to the whole process group
	var exit *exec.ExitError
	require.ErrorAs(t, cmd.Wait(), &exit)
	require.Equal(t, 130, exit.ExitCode())
	require.Less(t, time.Since(signalled), 20*time.Second)
	require.Empty(t, processesOf(t, run))
	var document show.Document
	require.NoError(t, json.Unmarshal(out.Bytes(), &document))
	require.True(t, document.Interrupted)
}

func TestBackendsEndWithAProgramThatIsKilled(t *testing.T) {
	cmd, run, _ := startUntilDeleted(t, shortFlags("--scenario=sleep")...)
	require.NoError(t, cmd.Process.Kill())
	require.Error(t, cmd.Wait())
	require.Eventually(t, func() bool { return len(processesOf(t, run)) == 0 }, time.Minute, 10*time.Millisecond)
}

func TestWrongFlagsAreRefused(t *testing.T) {
	for name, test := range map[string]struct {
		args []string
		want string
	}{
		"unknown scenario": {[]string{"--scenario=naps"}, `there is no "naps"; there are no-sleep, sleep`},
		"no scenario":      {[]string{"--scenario="}, "name one at least"},
		"output":           {[]string{"-o", "yaml"}, `"yaml" is neither text nor json`},
		"picture":          {[]string{"--picture=a.gif"}, `"a.gif" is neither a .svg nor a .png`},
		"picture's folder": {[]string{"--picture=no/such/folder/a.svg"}, "no such file or directory"},
		"parallel":         {[]string{"--parallel=0"}, "--parallel must be 1 at least"},
		"settings":         {[]string{"--backends=0", "--sleep=40"}, "the number of backends must be 1 at least, not 0; the sleep (40 s)"},
		"argument":         {[]string{"now"}, `unknown command "now"`},
	} {
		t.Run(name, func(t *testing.T) {
			cmd, _ := newCommand(t, test.args...)
			var errs bytes.Buffer
			cmd.Stderr = &errs
			out, err := cmd.Output()
			var exit *exec.ExitError
			require.True(t, errors.As(err, &exit))
			require.Equal(t, 1, exit.ExitCode())
			require.Empty(t, out)
			require.Contains(t, errs.String(), test.want)
			require.Equal(t, 1, strings.Count(errs.String(), "\n"), "one line: %s", errs.String())
		})
	}
}

func TestHelpFits80Columns(t *testing.T) {
	cmd, _ := newCommand(t, "--help")
	out, err := cmd.Output()
	require.NoError(t, err)
	for line := range strings.Lines(string(out)) {
		if !strings.Contains(line, "--") { // pflag gives each flag one line
			require.LessOrEqual(t, len(strings.TrimRight(line, "\n")), 80, line)
		}
	}
	require.NotContains(t, string(out), "  backend")
}
