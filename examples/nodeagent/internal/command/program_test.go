package command_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// program is the agent, built once for all tests of this package.
var program string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "nodeagent")
	if err != nil {
		panic(err)
	}
	program = filepath.Join(dir, "nodeagent")
	build := exec.Command("go", "build", "-o", program, "github.com/kubegrace/kubegrace/examples/nodeagent")
	build.Stdout, build.Stderr = os.Stdout, os.Stderr
	if err := build.Run(); err != nil {
		panic(fmt.Errorf("failed to build the agent: %w", err))
	}
	m.Run()
	if err := os.RemoveAll(dir); err != nil {
		panic(err)
	}
}

// output collects what a program writes, from any goroutine.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// process is an agent that runs.
type process struct {
	t           *testing.T
	command     *exec.Cmd
	out, stderr output
}

// prepare makes an agent with manual shutdowns and any free port, which further
// arguments may change.
func prepare(t *testing.T, args ...string) *process {
	t.Helper()
	p := &process{t: t}
	p.command = exec.CommandContext(t.Context(), program, append([]string{"--source=manual", "--listen=127.0.0.1:0"}, args...)...)
	p.command.Stdout, p.command.Stderr = &p.out, &p.stderr
	t.Cleanup(func() {
		if p.command.Process != nil && p.command.ProcessState == nil {
			_ = p.command.Wait() // killed with the test's context
		}
	})
	return p
}

// start runs such an agent. It is killed with the test.
func start(t *testing.T, args ...string) *process {
	t.Helper()
	p := prepare(t, args...)
	require.NoError(t, p.command.Start())
	return p
}

// says waits until the program has written something.
func (p *process) says(text string) {
	p.t.Helper()
	require.Eventually(p.t, func() bool { return strings.Contains(p.out.String(), text) }, 20*time.Second, 5*time.Millisecond,
		"never said %q", text)
}

func (p *process) signal(sig os.Signal) {
	p.t.Helper()
	require.NoError(p.t, p.command.Process.Signal(sig))
}

// exit waits for the end and gives the status.
func (p *process) exit() int {
	p.t.Helper()
	err := p.command.Wait()
	var failed *exec.ExitError
	if errors.As(err, &failed) {
		return failed.ExitCode()
	}
	require.NoError(p.t, err)
	return 0
}

// folder makes a folder of files and gives its path.
func folder(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		file := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o700))
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	}
	return dir
}

// scripted is a manifest of one pod with a script.
func scripted(name, script string) string {
	return `apiVersion: v1
kind: Pod
metadata:
  name: ` + name + `
  annotations: {nodeagent.kubegrace.dev/script.app: "` + script + `"}
spec:
  priority: 0
  terminationGracePeriodSeconds: 60
  containers: [{name: app, image: local/busybox}]
`
}

const kubelet = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"

func TestBadInputEndsWithOneLine(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, taken.Close()) })
	dir := folder(t, map[string]string{
		"good/pod.yaml":     scripted("web", "ignores TERM"),
		"manifest/pod.yaml": strings.ReplaceAll(scripted("web", ""), "60", "soon"),
		"syntax/pod.yaml":   "kind: [",
		"script/pod.yaml":   scripted("web", "dances"),
		"volume/pod.yaml":   scripted("web", "") + "  volumes: [{name: data}]\n",
		"both.yaml":         kubelet + "shutdownGracePeriod: 30s\nshutdownGracePeriodByPodPriority: [{priority: 0, shutdownGracePeriodSeconds: 5}]\n",
		"negative.yaml":     kubelet + "shutdownGracePeriodByPodPriority: [{priority: 0, shutdownGracePeriodSeconds: -5}]\n",
		"duration.yaml":     kubelet + "shutdownGracePeriod: soon\n",
		"critical.yaml":     kubelet + "shutdownGracePeriod: 5s\nshutdownGracePeriodCriticalPods: 10s\n",
		"priority.yaml":     kubelet + "shutdownGracePeriodByPodPriority: [{priority: 0, shutdownGracePeriodSeconds: 5}]\nfeatureGates: {GracefulNodeShutdownBasedOnPodPriority: false}\n",
		"file":              "not a folder",
		"nothing.conf":      "",
		"kubeconfig":        startCluster(t, 5).Kubeconfig(),
		"long/pod.yaml":     scripted(strings.Repeat("a", 250), ""),
	})
	good := "--manifests=" + dir + "/good"
	for name, test := range map[string]struct {
		args []string
		want []string
	}{
		"no manifests":          {nil, []string{"--manifests: Required value"}},
		"missing folder":        {[]string{"--manifests=/nonexistent"}, []string{"/nonexistent"}},
		"verbose":               {[]string{good, "-v=6"}, []string{"-v: Invalid value: 6: must be from 0 to 5"}},
		"less than quiet":       {[]string{good, "-v=-1"}, []string{"-v: Invalid value: -1: must be from 0 to 5"}},
		"form of the log":       {[]string{good, "--log-format=xml"}, []string{`--log-format: Unsupported value: "xml"`}},
		"negative limit":        {[]string{good, "--limit=-1s"}, []string{`--limit: Invalid value: "-1s"`}},
		"broken manifest":       {[]string{"--manifests=" + dir + "/manifest"}, []string{dir + "/manifest/pod.yaml: ", "spec.terminationGracePeriodSeconds", `"soon"`}},
		"no YAML":               {[]string{"--manifests=" + dir + "/syntax"}, []string{dir + "/syntax/pod.yaml: not valid YAML"}},
		"bad script":            {[]string{"--manifests=" + dir + "/script"}, []string{dir + "/script/pod.yaml: ", "metadata.annotations[nodeagent.kubegrace.dev/script.app]", `"dances"`}},
		"unknown gate":          {[]string{good, "--feature-gates=Teleport=true"}, []string{"--feature-gates", "Teleport"}},
		"gate value":            {[]string{good, "--feature-gates=GracefulNodeShutdown=perhaps"}, []string{"--feature-gates", "GracefulNodeShutdown=perhaps"}},
		"missing config":        {[]string{good, "--config=/nonexistent.yaml"}, []string{"nodeagent: --config: /nonexistent.yaml: failed to read: no such file or directory"}},
		"both styles":           {[]string{good, "--config=" + dir + "/both.yaml"}, []string{dir + "/both.yaml: ", "Cannot specify both shutdownGracePeriodByPodPriority and shutdownGracePeriod", `"shutdownGracePeriod":"30s"`}},
		"negative seconds":      {[]string{good, "--config=" + dir + "/negative.yaml"}, []string{dir + "/negative.yaml: ", "shutdownGracePeriodByPodPriority[0].shutdownGracePeriodSeconds -5"}},
		"bad duration":          {[]string{good, "--config=" + dir + "/duration.yaml"}, []string{dir + "/duration.yaml: ", "shutdownGracePeriod: ", `"soon"`}},
		"critical too long":     {[]string{good, "--config=" + dir + "/critical.yaml"}, []string{dir + "/critical.yaml: ", "shutdownGracePeriodCriticalPods {10s} must be <= shutdownGracePeriod {5s}"}},
		"gate off":              {[]string{good, "--config=" + dir + "/priority.yaml"}, []string{dir + "/priority.yaml: ", "requires feature gate GracefulNodeShutdownBasedOnPodPriority"}},
		"unknown runtime":       {[]string{good, "--runtime=docker"}, []string{`--runtime: Unsupported value: "docker"`, "embedded"}},
		"unknown source":        {[]string{good, "--source=acpi"}, []string{`--source: Unsupported value: "acpi"`, "logind"}},
		"missing endpoint":      {[]string{good, "--runtime=cri"}, []string{"--container-runtime-endpoint: Required value"}},
		"needless endpoint":     {[]string{good, "--container-runtime-endpoint=unix:///run/x.sock"}, []string{`--container-runtime-endpoint: Invalid value: "unix:///run/x.sock"`}},
		"bad endpoint":          {[]string{good, "--runtime=cri", "--container-runtime-endpoint=tcp://x"}, []string{"--container-runtime-endpoint", "tcp://x"}},
		"deaf endpoint":         {[]string{good, "--runtime=cri", "--container-runtime-endpoint=unix:///nonexistent.sock"}, []string{"--container-runtime-endpoint", "unix:///nonexistent.sock"}},
		"negative time":         {[]string{good, "--shutdown-after=-1s"}, []string{`--shutdown-after: Invalid value: "-1s"`}},
		"no time":               {[]string{good, "--shutdown-after=soon"}, []string{"--shutdown-after", `"soon"`}},
		"time with logind":      {[]string{good, "--source=logind", "--shutdown-after=1s"}, []string{`--shutdown-after: Invalid value: "1s"`, "--source=manual"}},
		"port in use":           {[]string{good, "--listen=" + taken.Addr().String()}, []string{"--listen: ", taken.Addr().String(), "address already in use"}},
		"no address":            {[]string{good, "--listen=nonsense"}, []string{`--listen: Invalid value: "nonsense"`}},
		"state in a file":       {[]string{good, "--state-dir=" + dir + "/file"}, []string{"--state-dir: ", dir + "/file", "not a directory"}},
		"missing kubeconfig":    {[]string{good, "--kubeconfig=/nonexistent.conf"}, []string{"--kubeconfig: /nonexistent.conf: ", "no such file"}},
		"broken kubeconfig":     {[]string{good, "--kubeconfig=" + dir + "/file"}, []string{"--kubeconfig: " + dir + "/file: "}},
		"empty kubeconfig":      {[]string{good, "--kubeconfig=" + dir + "/nothing.conf"}, []string{"--kubeconfig: " + dir + "/nothing.conf: ", "no configuration has been provided"}},
		"unknown node":          {[]string{good, "--kubeconfig=" + dir + "/kubeconfig", "--node-name=node-2"}, []string{`--node-name: Invalid value: "node-2": the API server has no node of this name`}},
		"no name of a node":     {[]string{good, "--kubeconfig=" + dir + "/kubeconfig", "--node-name=Node_1"}, []string{`--node-name: Invalid value: "Node_1"`}},
		"name without a server": {[]string{good, "--node-name=node-1"}, []string{`--node-name: Invalid value: "node-1": is only for --kubeconfig`}},
		"policy without server": {[]string{good, "--pod-policy=reboot=Delete"}, []string{`--pod-policy: Invalid value: "reboot=Delete": is only for --kubeconfig`}},
		"unknown kind":          {[]string{good, "--kubeconfig=" + dir + "/kubeconfig", "--pod-policy=restart=Delete"}, []string{`--pod-policy: Unsupported value: "restart"`, `"poweroff", "reboot", "halt", "kexec", "soft-reboot", "default"`}},
		"unknown policy":        {[]string{good, "--kubeconfig=" + dir + "/kubeconfig", "--pod-policy=reboot=Fail"}, []string{`--pod-policy[reboot]: Unsupported value: "Fail"`, `"SetTerminal", "LeaveAsIs", "Delete"`}},
		"two policies":          {[]string{good, "--kubeconfig=" + dir + "/kubeconfig", "--pod-policy=reboot=Fail,restart=Delete"}, []string{`"Fail"`, `"restart"`}},
		"half a policy":         {[]string{good, "--kubeconfig=" + dir + "/kubeconfig", "--pod-policy=reboot"}, []string{"--pod-policy", "reboot must be formatted as key=value"}},
		"long name":             {[]string{"--manifests=" + dir + "/long", "--kubeconfig=" + dir + "/kubeconfig", "--node-name=node-1"}, []string{"pod default/aaa", "metadata.name: Invalid value"}},
		"unknown flag":          {[]string{good, "--drain"}, []string{"--drain"}},
		"argument":              {[]string{good, "pods"}, []string{`"pods"`}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := start(t, test.args...)
			require.Equal(t, 1, p.exit())
			require.Empty(t, p.out.String(), "no pod was started")
			stderr := p.stderr.String()
			require.Equal(t, 1, strings.Count(stderr, "\n"), stderr)
			require.True(t, strings.HasPrefix(stderr, "nodeagent: "), stderr)
			for _, want := range test.want {
				require.Contains(t, stderr, want)
			}
		})
	}
}

func TestUnknownGatesOfTheFileAreOneWarning(t *testing.T) {
	t.Parallel()
	dir := folder(t, map[string]string{
		"pods/pod.yaml": scripted("web", ""),
		"kubelet.yaml":  kubelet + "shutdownGracePeriod: 30s\nfeatureGates: {NodeSwap: true, CPUManager: false, PodLifecycleSleepAction: false}\n",
	})
	p := start(t, "--manifests="+dir+"/pods", "--config="+dir+"/kubelet.yaml", "--shutdown-after=1ms")
	require.Zero(t, p.exit())
	require.Equal(t, 1, strings.Count(p.out.String(), "featureGates"), p.out.String())
	require.Contains(t, p.out.String(), "kubelet.yaml: featureGates: not known here, and without effect: [CPUManager NodeSwap]")
	require.Empty(t, p.stderr.String())
}

// The gate of the file is off, which makes its shutdown settings an error; the flag
// switches it on again.
func TestGatesOfTheFlagWin(t *testing.T) {
	t.Parallel()
	dir := folder(t, map[string]string{
		"pods/pod.yaml": scripted("web", ""),
		"kubelet.yaml":  kubelet + "shutdownGracePeriod: 30s\nfeatureGates: {GracefulNodeShutdown: false}\n",
	})
	args := []string{"--manifests=" + dir + "/pods", "--config=" + dir + "/kubelet.yaml", "--shutdown-after=1ms"}
	require.Equal(t, 1, start(t, args...).exit())
	require.Zero(t, start(t, append(args, "--feature-gates=GracefulNodeShutdown=true")...).exit())
}

// A hook that sleeps for longer than the pod's grace is an error, and dropped where
// hooks do not sleep.
func TestGatesReachTheManifests(t *testing.T) {
	t.Parallel()
	dir := folder(t, map[string]string{
		"pod.yaml": strings.ReplaceAll(scripted("web", ""), "image: local/busybox", "image: local/busybox, lifecycle: {preStop: {sleep: {seconds: 61}}}"),
	})
	args := []string{"--manifests=" + dir, "--shutdown-after=1ms"}
	require.Equal(t, 1, start(t, args...).exit())
	require.Zero(t, start(t, append(args, "--feature-gates=PodLifecycleSleepAction=false")...).exit())
}

func TestSignalsWithoutAHost(t *testing.T) {
	t.Parallel()
	quick := folder(t, map[string]string{"pod.yaml": scripted("web", "exits 10ms after TERM")})
	t.Run("SIGTERM drains", func(t *testing.T) {
		t.Parallel()
		p := start(t, "--manifests="+quick)
		p.says("1 of 1 pods run.")
		p.signal(syscall.SIGTERM)
		require.Zero(t, p.exit())
		require.Contains(t, p.out.String(), "1 of 1 pod stopped in time.")
	})
	t.Run("SIGINT leaves", func(t *testing.T) {
		t.Parallel()
		p := start(t, "--manifests="+quick)
		p.says("1 of 1 pods run.")
		p.signal(os.Interrupt)
		require.Zero(t, p.exit())
		require.NotContains(t, p.out.String(), "stopped in time")
	})
	t.Run("a second one ends the waiting", func(t *testing.T) {
		t.Parallel()
		p := start(t, "--manifests="+folder(t, map[string]string{"pod.yaml": scripted("web", "ignores TERM")}))
		p.says("1 of 1 pods run.")
		p.signal(syscall.SIGTERM)
		p.says("got SIGTERM, is ending")
		p.signal(syscall.SIGTERM)
		p.says("SIGTERM: the pods are being stopped, and that goes on.")
		p.signal(syscall.SIGTERM)
		require.Equal(t, 1, p.exit())
		require.Equal(t, "nodeagent: a second SIGTERM ended the waiting for default/web\n", p.stderr.String())
	})
}

func TestMetricsAndHealth(t *testing.T) {
	t.Parallel()
	dir := folder(t, map[string]string{"pod.yaml": scripted("web", "ignores TERM")})
	p := start(t, "--manifests="+dir)
	p.says("1 of 1 pods run.")
	address := regexp.MustCompile(`http://127\.0\.0\.1:\d+`).FindString(p.out.String())
	require.NotEmpty(t, address, p.out.String())

	require.Equal(t, "ok\n", get(t, address+"/healthz"))
	metrics := get(t, address+"/metrics")
	for _, series := range []string{
		"kubelet_graceful_shutdown_start_time_seconds 0", "kubelet_graceful_shutdown_end_time_seconds 0",
		"kubelet_lifecycle_handler_http_fallbacks_total 0", "kubelet_sleep_action_terminated_early_total 0", "go_goroutines",
	} {
		require.Contains(t, metrics, series)
	}

	p.signal(syscall.SIGTERM)
	p.says("got SIGTERM, is ending")
	require.Equal(t, "ok: node is shutting down\n", get(t, address+"/healthz"))
	require.NotContains(t, get(t, address+"/metrics"), "kubelet_graceful_shutdown_start_time_seconds 0\n")
}

// As in a kubelet, the gauges of the shutdown are there only with both gates.
func TestShutdownMetricsNeedBothGates(t *testing.T) {
	t.Parallel()
	dir := folder(t, map[string]string{"pod.yaml": scripted("web", "")})
	p := start(t, "--manifests="+dir, "--feature-gates=GracefulNodeShutdownBasedOnPodPriority=false")
	p.says("1 of 1 pods run.")
	address := regexp.MustCompile(`http://127\.0\.0\.1:\d+`).FindString(p.out.String())
	require.NotContains(t, get(t, address+"/metrics"), "graceful_shutdown")
}

func get(t *testing.T, url string) string {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	require.NoError(t, err)
	resp, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	defer func() { require.NoError(t, resp.Body.Close()) }()
	require.Equal(t, http.StatusOK, resp.StatusCode)
	text, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return string(text)
}

func TestHelpNamesEveryFlag(t *testing.T) {
	t.Parallel()
	out, err := exec.CommandContext(t.Context(), program, "--help").Output()
	require.NoError(t, err)
	for _, flag := range []string{
		"--config", "--manifests", "--runtime", "--container-runtime-endpoint", "--source", "--shutdown-after",
		"--state-dir", "--listen", "--kubeconfig", "--node-name", "--pod-policy", "LeaveAsIs", "soft-reboot", "--feature-gates", "GracefulNodeShutdownBasedOnPodPriority", "--v",
	} {
		require.Contains(t, string(out), flag)
	}
}
