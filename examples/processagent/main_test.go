//go:build unix

package main

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// lineTimeout bounds the wait for one line of output.
const lineTimeout = 30 * time.Second

// program is a running processagent.
type program struct {
	*testing.T

	cmd    *exec.Cmd
	folder string      // the agent's TMPDIR
	output chan string // the lines that the agent and its containers print; closed when all have exited
	seen   []string    // the lines read from output so far
}

// asProgram is the environment variable with which this test binary is the agent.
const asProgram = "KUBEGRACE_TEST_PROCESSAGENT"

// TestMain runs the agent if asProgram is set, as the function command does, and the tests otherwise.
func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		main()
		return
	}
	m.Run()
}

// command returns the agent as a command that has not started.
func command(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	binary, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.Command(binary, args...)
	cmd.Args[0] = "processagent" // whose name the inhibitor lock has
	cmd.Env = append(os.Environ(), asProgram+"=1")
	return cmd
}

// start runs the agent without a system bus, on the manifests of a folder.
func start(t *testing.T, manifests string) *program {
	t.Helper()
	p := &program{T: t, folder: t.TempDir(), output: make(chan string)}
	read, write, err := os.Pipe()
	require.NoError(t, err)
	p.cmd = command(t, manifests)
	p.cmd.Env = append(p.cmd.Env, "TMPDIR="+p.folder, "DBUS_SYSTEM_BUS_ADDRESS=unix:path="+filepath.Join(p.folder, "none"))
	p.cmd.Stdout, p.cmd.Stderr = write, write
	require.NoError(t, p.cmd.Start())
	require.NoError(t, write.Close())
	go func() {
		defer close(p.output)
		for lines := bufio.NewScanner(read); lines.Scan(); {
			p.output <- lines.Text()
		}
	}()
	t.Cleanup(func() { // the agent still runs if the test failed
		_ = p.cmd.Process.Signal(syscall.SIGTERM)
		_ = p.cmd.Wait()
		require.NoError(t, read.Close())
		for range p.output { // let the goroutine above finish
		}
	})
	return p
}

// waitForLines reads lines until it has seen all wanted ones.
func (p *program) waitForLines(wanted ...string) {
	p.Helper()
	missing := func() bool {
		return slices.ContainsFunc(wanted, func(line string) bool { return !slices.Contains(p.seen, line) })
	}
	for missing() {
		select {
		case line, open := <-p.output:
			require.True(p, open, "the agent has exited; output: %q", p.seen)
			p.seen = append(p.seen, strings.TrimSpace(line))
		case <-time.After(lineTimeout):
			require.Fail(p, "no further line", "output: %q", p.seen)
		}
	}
}

// waitForExit reads the output until the agent and all its processes have exited. It returns the agent's error.
func (p *program) waitForExit() error {
	p.Helper()
	for {
		select {
		case line, open := <-p.output:
			if !open {
				return p.cmd.Wait()
			}
			p.seen = append(p.seen, strings.TrimSpace(line))
		case <-time.After(lineTimeout):
			require.Fail(p, "a process is still running after the drain", "output: %q", p.seen)
		}
	}
}

// stop sends SIGTERM to the agent and waits until it and all its processes have exited.
func (p *program) stop() {
	p.Helper()
	require.NoError(p, p.cmd.Process.Signal(syscall.SIGTERM))
	require.NoError(p, p.waitForExit(), "%q", p.seen)
}

// requireOrder requires that the lines were printed in this order.
func (p *program) requireOrder(lines ...string) {
	p.Helper()
	remaining := p.seen
	for _, line := range lines {
		i := slices.Index(remaining, line)
		require.NotEqual(p, -1, i, "%q, in order, in %q", line, p.seen)
		remaining = remaining[i+1:]
	}
}

// writeManifest writes a pod whose only container runs a shell script.
func writeManifest(t *testing.T, folder, name, script string) {
	t.Helper()
	text := "apiVersion: v1\nkind: Pod\nmetadata:\n  name: " + name +
		"\nspec:\n  containers:\n  - name: main\n    command: [sh, -c, '" + script + "']\n"
	require.NoError(t, os.WriteFile(filepath.Join(folder, name+".yaml"), []byte(text), 0o600))
}

// The agent drains the four pods of the folder pods, each within the grace period of its manifest. The two pods with a
// priority below 1000 end before the others are stopped. Of these two, stubborn ignores SIGTERM and is killed after 2 s. The
// sidecar of the pod cart ends after its container. README.md shows the complete output without the log; the order of lines
// of different pods may vary.
func TestSIGTERMDrainsThePodsInOrder(t *testing.T) {
	t.Parallel()
	p := start(t, "pods")
	p.waitForLines("proxy runs", "app runs", "db runs", "main runs", "nginx runs")
	signalled := time.Now()
	p.stop()

	p.requireOrder("container data/postgres/db has ended: exit status 0", "container batch/stubborn/main has ended: signal: killed",
		"container shop/cart/app has ended: exit status 0", "container shop/cart/proxy has ended: exit status 0",
		"pod shop/cart had 5 s to end: Graceful")
	p.requireOrder("container batch/stubborn/main has ended: signal: killed", "container shop/web/nginx has ended: exit status 0")
	for _, first := range []string{"pod data/postgres had 4 s to end: Graceful", "pod batch/stubborn had 2 s to end: GraceExceeded"} {
		p.requireOrder(first, "pod shop/cart had 5 s to end: Graceful")
		p.requireOrder(first, "pod shop/web had 5 s to end: Graceful")
	}
	require.GreaterOrEqual(t, time.Since(signalled), 3*time.Second, "2 s for the stubborn pod and 1 s for the sleep hook")
	hook, err := os.ReadFile(filepath.Join(p.folder, "processagent-hook"))
	require.NoError(t, err)
	require.Equal(t, "checkpoint\n", string(hook), "the hook ran once")

	isLogLine := regexp.MustCompile(`^[IE]\d{4} `).MatchString // it begins with the header of klog
	require.ElementsMatch(t, outputInREADME(t), slices.DeleteFunc(p.seen, isLogLine))
}

// outputInREADME returns the lines of the complete output that README.md shows.
func outputInREADME(t *testing.T) (lines []string) {
	t.Helper()
	page, err := os.ReadFile("README.md")
	require.NoError(t, err)
	_, rest, found := strings.Cut(string(page), "The complete output:\n\n")
	require.True(t, found)
	block, _, found := strings.Cut(rest, "\n\n")
	require.True(t, found)
	for line := range strings.Lines(block) {
		lines = append(lines, strings.TrimSpace(line))
	}
	return lines
}

// The process of the pod job has exited before the drain, so the pod is not in the report: there is nothing to drain. The pod
// web has no grace period in its manifest, so it has the 20 s of its priority.
func TestAnExitedPodIsNotDrained(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	writeManifest(t, folder, "job", "exit 3")
	writeManifest(t, folder, "web", "echo web runs; exec sleep 1000")
	p := start(t, folder)
	p.waitForLines("container default/job/main has ended: exit status 3", "web runs")
	p.stop()

	require.Contains(t, p.seen, "pod default/web had 20 s to end: Graceful")
	require.NotContains(t, strings.Join(p.seen, "\n"), "pod default/job")
}

// The container's shell exits at SIGTERM and leaves its sleep behind. The agent kills that too: stop fails
// the test if any process still runs.
func TestChildProcessesOfAContainerAreKilled(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	writeManifest(t, folder, "web", `sleep 1000 & trap "exit 0" TERM; echo web runs; while :; do sleep 0.1; done`)
	p := start(t, folder)
	p.waitForLines("web runs")
	p.stop()
}

// The program of one of two pods does not exist. The agent logs that, and runs and drains the other pod, which has the 20 s of
// its priority.
func TestAContainerThatFailsToStartIsLogged(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	writeManifest(t, folder, "web", "echo web runs; exec sleep 1000")
	text, err := os.ReadFile(filepath.Join(folder, "web.yaml"))
	require.NoError(t, err)
	broken := strings.NewReplacer("name: web", "name: broken", "[sh, ", "[/no/such/program, ").Replace(string(text))
	require.NoError(t, os.WriteFile(filepath.Join(folder, "a.yaml"), []byte(broken), 0o600))
	p := start(t, folder)
	p.waitForLines("web runs")
	require.Contains(t, strings.Join(p.seen, "\n"), "/no/such/program: no such file or directory")
	p.stop()
	require.Contains(t, p.seen, "pod default/web had 20 s to end: Graceful")
}

// The agent does not start with an invalid manifest, and the error names the file and the mistake.
func TestAnInvalidManifestIsNamed(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ old, replacement, want string }{
		"a field that pods do not have": {old: "containers", replacement: "contaners", want: `unknown field "contaners"`},
		"no command":                    {old: "command", replacement: "args", want: "container default/web/main has no command"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			folder := t.TempDir()
			writeManifest(t, folder, "web", "exit 0")
			file := filepath.Join(folder, "web.yaml")
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			require.NoError(t, os.WriteFile(file, []byte(strings.ReplaceAll(string(text), test.old, test.replacement)), 0o600))
			p := start(t, folder)
			require.Error(t, p.waitForExit())
			require.Contains(t, strings.Join(p.seen, "\n"), file+": ")
			require.Contains(t, strings.Join(p.seen, "\n"), test.want)
		})
	}
}

// README.md promises an agent in 170 lines. Its code blocks must be in main.go word for word, and short enough to read.
func TestREADMEQuotesMain(t *testing.T) {
	t.Parallel()
	source, err := os.ReadFile("main.go")
	require.NoError(t, err)
	require.LessOrEqual(t, strings.Count(string(source), "\n"), 170)
	page, err := os.ReadFile("README.md")
	require.NoError(t, err)
	blocks := regexp.MustCompile("(?s)```go\n(.*?)```").FindAllStringSubmatch(string(page), -1)
	require.NotEmpty(t, blocks)
	for _, block := range blocks {
		require.Contains(t, "\n"+string(source), "\n"+block[1])
		require.LessOrEqual(t, strings.Count(block[1], "\n"), 25)
	}
}

// A missing folder is an error, and --help starts nothing.
func TestArguments(t *testing.T) {
	for argument, want := range map[string]string{"--help": "Usage of ", "/nonexistent": "open /nonexistent: no such file or directory"} {
		out, err := command(t, argument).CombinedOutput()
		require.Equal(t, argument == "--help", err == nil, "%s", out)
		require.Contains(t, string(out), want)
	}
}
