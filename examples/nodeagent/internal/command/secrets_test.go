package command_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// secret stands wherever a pod may have one.
const secret = "s3cret-4711"

// secretive are pods whose hooks, environment and answers have the secret in them. The
// hooks fail, each in its own way: one of a command, one that nobody answers, one whose
// redirect leads nowhere, one of a header that cannot be sent.
func secretive(t *testing.T) map[string]string {
	t.Helper()
	deaf, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, deaf.Close()) // nobody listens there now
	talkative := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Location", "gopher://127.0.0.1/"+secret)
		w.WriteHeader(http.StatusFound)
		_, _ = io.WriteString(w, secret) // a client that has gone needs no answer
	}))
	t.Cleanup(talkative.Close)
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
		"refused.yaml":  pod("refused", "exits 10ms after TERM", request(portOf(deaf.Addr().String()), "/drain", "{name: X-Key, value: "+secret+"}")),
		"redirect.yaml": pod("redirect", "exits 10ms after TERM", request(portOf(talkative.URL), "/drain", "{name: X-Key, value: "+secret+"}")),
		"header.yaml":   pod("header", "exits 10ms after TERM", request("80", "/drain", `{name: X-Key, value: "`+secret+`\r\nX-A: 1"}`)),
		"path.yaml":     pod("path", "exits 10ms after TERM", request("80", `:`, "{name: X-Key, value: "+secret+"}")),
	}
}

// metricsAt is where the program says that it serves.
var metricsAt = regexp.MustCompile(`http://127\.0\.0\.1:\d+`)

// Whoever may read the log, the reports and the metrics of an agent, or its state files,
// may not know what its pods know. The log is that of the default verbosity.
func TestNoOutletTellsASecret(t *testing.T) {
	t.Parallel()
	stateDir, outlets := t.TempDir(), map[string]string{}
	p, dir, at := controlled(t, secretive(t), "--state-dir="+stateDir, "--log-format=json")
	p.says("Metrics are on")
	listens := metricsAt.FindString(p.out.String())
	require.NotEmpty(t, listens)
	socket := strings.TrimPrefix(at, "--socket=")
	ask := func(when string) {
		for _, path := range []string{"/pods", "/plan", "/report", "/metrics", "/healthz", "/debug/pprof/cmdline"} {
			outlets[when+" GET "+path] = fetched(t, http.DefaultClient, listens+path)
		}
		overSocket := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", socket)
		}}}
		for _, path := range []string{"/pods", "/plan", "/report"} {
			outlets[when+" socket "+path] = fetched(t, overSocket, "http://agent"+path)
		}
	}
	ask("before")
	for _, args := range [][]string{{"plan", "--manifests=" + dir}, {"plan", "--manifests=" + dir, "-o=json"}} {
		out, stderr, _ := tell(t, args...)
		outlets[strings.Join(args, " ")] = out + stderr
	}
	out, stderr, status := tell(t, "stop", at, "default/exec")
	require.Zero(t, status, stderr)
	outlets["stop"] = out + stderr
	drained := make(chan string, 1)
	go func() {
		out, stderr, _ := tell(t, "drain", at, "-o=json")
		drained <- out + stderr
	}()
	require.Eventually(t, func() bool { // its columns have some width
		return strings.Contains(strings.Join(strings.Fields(p.out.String()), " "), "default/refused gone after")
	}, 20*time.Second, 5*time.Millisecond, "the pod is gone")
	ask("during")
	for _, args := range [][]string{{"report", at}, {"report", at, "-o=json"}} {
		out, stderr, status := tell(t, args...)
		require.Zero(t, status, stderr)
		outlets[strings.Join(args, " ")] = out + stderr
	}
	outlets["drain"] = <-drained
	require.Zero(t, p.exit())
	for _, args := range [][]string{{"report", "--socket=/nonexistent", "--state-dir=" + stateDir}, {"report", "--socket=/nonexistent", "--state-dir=" + stateDir, "-o=json"}, {"report", "--socket=/nonexistent", "--state-dir=" + stateDir, "-o=html"}} {
		out, stderr, status := tell(t, args...)
		require.Zero(t, status, stderr)
		outlets[strings.Join(args, " ")] = out + stderr
	}
	outlets["output"], outlets["log"] = p.out.String(), p.stderr.String()
	files, err := filepath.Glob(filepath.Join(stateDir, "*"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		outlets[file] = string(text)
	}

	require.Contains(t, outlets["log"], "FailedPreStopHook", "the hooks have failed, and events are in the log")
	require.Contains(t, outlets["output"], "preStop hook failed")
	for name, text := range outlets {
		if !strings.HasSuffix(name, "_lock") {
			require.NotEmpty(t, text, name)
		}
		require.NotContains(t, text, secret, name)
	}
}

func fetched(t *testing.T, client *http.Client, address string) string {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, http.NoBody)
	require.NoError(t, err)
	answer, err := client.Do(request)
	require.NoError(t, err)
	text, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	require.NoError(t, answer.Body.Close())
	return string(text)
}
