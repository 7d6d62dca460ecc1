package command_test

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kubegrace/kubegrace/examples/kubegrace-node/internal/socket"
	"github.com/kubegrace/kubegrace/shutdown/logind/logindtest"
)

// node is an agent process with a fake logind, on a bus of the test.
type node struct {
	*logindtest.Broker
	t       *testing.T
	address string // of the bus
	dir     string // has config.yaml, the state folder "state", the socket "s" and the host's root "host"
}

// newNode returns a node whose logind delays a shutdown for up to a minute, more than the 20 s of its
// config.yaml. The agent is not started.
func newNode(t *testing.T) *node {
	t.Helper()
	broker := logindtest.StartBroker(t)
	broker.SetLimit(time.Minute)
	dir, err := os.MkdirTemp("", "n") // not t.TempDir: its path is too long for a socket
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "host/run"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "config.yaml"), []byte(kubelet+"shutdownGracePeriod: 20s\nshutdownGracePeriodCriticalPods: 5s\n"), 0o600))
	return &node{Broker: broker, t: t, address: broker.Address, dir: dir}
}

// run starts the agent, without a container runtime. args are added behind the arguments that all tests share,
// so they can override these.
func (n *node) run(args ...string) *process {
	n.t.Helper()
	p := prepare(n.t, append([]string{
		"run", "--config=" + n.dir + "/config.yaml", "--state-dir=" + n.dir + "/state", "--socket=" + n.dir + "/s", "--listen=",
		"--host-root=" + n.dir + "/host", "--container-runtime-endpoint=unix:///nonexistent.sock",
	}, args...)...)
	p.command.Env = append(os.Environ(), "DBUS_SYSTEM_BUS_ADDRESS="+n.address)
	require.NoError(n.t, p.command.Start())
	return p
}

// awaitHeld waits until the agent holds its lock.
func (n *node) awaitHeld() {
	n.t.Helper()
	require.Eventually(n.t, func() bool { return len(n.Held()) == 1 }, 20*time.Second, 10*time.Millisecond)
}

// awaitReleased waits until there is no lock. Like the real logind, the fake one notices the end of a process
// a moment later.
func (n *node) awaitReleased() {
	n.t.Helper()
	require.Eventually(n.t, func() bool { return len(n.Held()) == 0 }, 30*time.Second, 10*time.Millisecond)
}

// health requests /healthz on the agent's socket, and returns the HTTP status and the body; 0 if the agent does not
// answer.
func (n *node) health() (status int, text string) {
	return n.get(socket.Client(n.dir+"/s"), "http://localhost/healthz")
}

// get returns the status and the body of an answer; 0 if there is none.
func (n *node) get(client *http.Client, url string) (status int, text string) {
	request, err := http.NewRequestWithContext(n.t.Context(), http.MethodGet, url, nil)
	require.NoError(n.t, err)
	response, err := client.Do(request)
	if err != nil {
		return 0, ""
	}
	body, err := io.ReadAll(response.Body)
	require.NoError(n.t, err)
	require.NoError(n.t, response.Body.Close())
	return response.StatusCode, string(body)
}

// awaitHealth waits until the body of /healthz contains all texts.
func (n *node) awaitHealth(texts ...string) {
	n.t.Helper()
	require.Eventually(n.t, func() bool {
		_, text := n.health()
		return !slices.ContainsFunc(texts, func(want string) bool { return !strings.Contains(text, want) })
	}, 20*time.Second, 20*time.Millisecond, fmt.Sprint(texts))
}

// tool runs another command of the program, which asks the agent on its socket.
func (n *node) tool(args ...string) (out, stderr string, status int) {
	n.t.Helper()
	return runTool(n.t, append(args, "--socket="+n.dir+"/s")...)
}
