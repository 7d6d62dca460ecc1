package command_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// secret is in each part of a pod that may have a secret.
const secret = "s3cret-4711"

// manifestsWithSecrets returns pods with the secret in their commands, environment and
// hooks. The hooks fail in different ways: a command that fails, one that is too slow, a
// request that is refused, a redirect to an unknown scheme, a header and a path that are
// invalid. Answers to requests have the secret, too.
func manifestsWithSecrets(t *testing.T) map[string]string {
	t.Helper()
	refusing, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, refusing.Close()) // nobody listens there now
	redirecting := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Location", "gopher://127.0.0.1/"+secret)
		w.WriteHeader(http.StatusFound)
		_, _ = io.WriteString(w, secret) // a client that has disconnected needs no answer
	}))
	t.Cleanup(redirecting.Close)
	portOf := func(address string) string { return address[strings.LastIndex(address, ":")+1:] }
	pod := func(name, script, hook string) string {
		return strings.Replace(scripted(name, script), "containers: [{name: app, image: local/busybox}]", `containers:
  - name: app
    image: local/busybox
    command: [server, --password=`+secret+`]
    args: [`+secret+`]
    env: [{name: PASSWORD, value: `+secret+`}]
    lifecycle: {preStop: {`+hook+`}}
`, 1)
	}
	request := func(port, path, header string) string {
		return `httpGet: {port: ` + port + `, path: "` + path + `?key=` + secret + `", httpHeaders: [{name: Authorization, value: "Bearer ` + secret + `"}, {name: Cookie, value: "a=` + secret + `"}, ` + header + `]}`
	}
	exec := `exec: {command: [curl, -H, "Authorization: Bearer ` + secret + `", "http://localhost/?key=` + secret + `"]}`
	return map[string]string{
		"exec.yaml":     pod("exec", "exits 10ms after TERM, exec fails", exec),
		"slow.yaml":     strings.Replace(pod("slow", "exits 10ms after TERM, exec takes 1h", exec), "terminationGracePeriodSeconds: 60", "terminationGracePeriodSeconds: 3", 1),
		"refused.yaml":  pod("refused", "exits 10ms after TERM", request(portOf(refusing.Addr().String()), "/drain", "{name: X-Key, value: "+secret+"}")),
		"redirect.yaml": pod("redirect", "exits 10ms after TERM", request(portOf(redirecting.URL), "/drain", "{name: X-Key, value: "+secret+"}")),
		"header.yaml":   pod("header", "exits 10ms after TERM", request("80", "/drain", `{name: X-Key, value: "`+secret+`\r\nX-A: 1"}`)),
		"path.yaml":     pod("path", "exits 10ms after TERM", request("80", `:`, "{name: X-Key, value: "+secret+"}")),
	}
}

// No output of the agent and its tools has the secrets of pods: the log at the default
// verbosity, answers to requests, reports, metrics and state files.
func TestNoOutputHasASecret(t *testing.T) {
	t.Parallel()
	stateDir, outputs := t.TempDir(), map[string]string{}
	p, dir, socketFlag := startWithSocket(t, manifestsWithSecrets(t), "--state-dir="+stateDir, "--log-format=json")
	address := p.address()
	socket := strings.TrimPrefix(socketFlag, "--socket=")
	body := func(client *http.Client, url string) string {
		_, text := fetch(t, client, url)
		return text
	}
	ask := func(when string) {
		for _, path := range []string{"/pods", "/plan", "/report", "/metrics", "/healthz", "/debug/pprof/cmdline"} {
			outputs[when+" GET "+path] = body(http.DefaultClient, address+path)
		}
		overSocket := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", socket)
		}}}
		for _, path := range []string{"/pods", "/plan", "/report"} {
			outputs[when+" socket "+path] = body(overSocket, "http://agent"+path)
		}
	}
	ask("before")
	for _, args := range [][]string{{"plan", "--manifests=" + dir}, {"plan", "--manifests=" + dir, "-o=json"}} {
		out, stderr, _ := runTool(t, args...)
		outputs[strings.Join(args, " ")] = out + stderr
	}
	out, stderr, status := runTool(t, "stop", socketFlag, "default/exec")
	require.Zero(t, status, stderr)
	outputs["stop"] = out + stderr
	drained := make(chan string, 1)
	go func() {
		out, stderr, _ := runTool(t, "drain", socketFlag, "-o=json")
		drained <- out + stderr
	}()
	require.Eventually(t, func() bool { // its columns have some width
		return strings.Contains(strings.Join(strings.Fields(p.out.String()), " "), "default/refused gone after")
	}, 20*time.Second, 5*time.Millisecond, "the pod is gone")
	ask("during")
	for _, args := range [][]string{{"report", socketFlag}, {"report", socketFlag, "-o=json"}} {
		out, stderr, status := runTool(t, args...)
		require.Zero(t, status, stderr)
		outputs[strings.Join(args, " ")] = out + stderr
	}
	outputs["drain"] = <-drained
	require.Zero(t, p.waitExit())
	for _, args := range [][]string{{"report", "--socket=/nonexistent", "--state-dir=" + stateDir}, {"report", "--socket=/nonexistent", "--state-dir=" + stateDir, "-o=json"}, {"report", "--socket=/nonexistent", "--state-dir=" + stateDir, "-o=html"}} {
		out, stderr, status := runTool(t, args...)
		require.Zero(t, status, stderr)
		outputs[strings.Join(args, " ")] = out + stderr
	}
	outputs["output"], outputs["log"] = p.out.String(), p.stderr.String()
	files, err := filepath.Glob(filepath.Join(stateDir, "*"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		outputs[file] = string(text)
	}

	require.Contains(t, outputs["log"], "FailedPreStopHook", "the hooks have failed, and events are in the log")
	require.Contains(t, outputs["output"], "preStop hook failed")
	for name, text := range outputs {
		if !strings.HasSuffix(name, "_lock") {
			require.NotEmpty(t, text, name)
		}
		require.NotContains(t, text, secret, name)
	}
}
