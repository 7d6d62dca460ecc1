//go:build e2e

package e2e_test

import (
	"context"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kubegrace/kubegrace/examples/internal/machine"
)

// floodUnit runs the program of testdata/flood as the user nobody.
const floodUnit = "[Service]\nUser=65534\nLimitNOFILE=20000\nExecStart=/usr/local/bin/flood\nRestart=always\n"

const (
	floodTime      = 30 * time.Second // of the flood before the drain, during which the flood goes on
	mostMemory     = 100 << 10        // KiB
	mostDescriptor = 200              // the agent serves 48 connections at a time; the flood opens thousands
)

// An unprivileged user floods the agent's port and the bus, before and during a drain. The agent must stay
// within its memory and descriptors, must keep answering on its socket, and must drain as without a flood.
func TestAFloodedAgentDrainsInTime(t *testing.T) { eachPlatform(t, testAFloodedAgentDrainsInTime) }

// testAFloodedAgentDrainsInTime starts the flood, watches the agent for 30 s, powers the machine off, and
// checks the agent's size and the drain.
func testAFloodedAgentDrainsInTime(t *testing.T, on platform) {
	m, server, containers := bootAgent(t, on, map[string]string{
		"/etc/systemd/system/flood.service": floodUnit,
	}, func(m *machine.Machine) {
		m.WriteFile(t, "/usr/local/bin/flood", 0o755, buildProgram(t, "github.com/kubegrace/kubegrace/examples/kubegrace-node/e2e/testdata/flood"))
	})
	m.Run(t, "systemctl", "start", "flood")
	ctx, stop := context.WithCancel(t.Context())
	var watching sync.WaitGroup
	var most size
	watching.Go(func() { most = watch(ctx, t, m) })
	<-time.After(floodTime)

	asked := time.Now()
	m.Run(t, "systemctl", "poweroff")
	exits := awaitExits(t, server, containers)
	stop()
	watching.Wait()
	m.AwaitPowerOff(t)
	t.Logf("at most %d MB and %d descriptors; %d answers, after %v at most, on the port %d; drained after %v",
		most.memory>>10, most.descriptors, most.answers, most.slowest, most.port, exits.lastExit().Sub(asked))
	require.Less(t, most.memory, mostMemory)
	require.Less(t, most.descriptors, mostDescriptor)
	require.Greater(t, 2*most.port, most.answers, "the flooded port answers more than half of the time")
	checkBuckets(t, asked, exits)
	checkExitCodes(t, exits)
	checkPowerOff(t, exits, m.Journal(t))
}

// size is the most that the agent has used, and how often and how fast it has answered.
type size struct {
	memory, descriptors int           // memory in KiB
	slowest             time.Duration // of the answers on its socket
	answers, port       int           // how often it has answered on its socket, and on the port that is flooded
}

// watch measures the agent and sends it requests until ctx ends. On its Unix socket, which only root may open,
// the agent must always answer. On its port it can only answer most of the time, because the flood fills the
// kernel's queue of new connections.
func watch(ctx context.Context, t *testing.T, m *machine.Machine) (most size) {
	const script = `pid=$(systemctl show --property=MainPID --value kubegrace-node) && sed -n 's/^VmHWM:[^0-9]*\([0-9]*\).*/\1/p' /proc/$pid/status && ls /proc/$pid/fd | wc -l`
	const healthz = `exec 3<>/dev/tcp/127.0.0.1/10290 && printf 'GET /healthz HTTP/1.0\r\n\r\n' >&3 && head -n 1 <&3`
	for ctx.Err() == nil {
		out, err := m.TryRun(ctx, "bash", "-c", script)
		asked := time.Now()
		_, socketErr := m.TryRun(ctx, "sh", "-c", "/usr/local/bin/kubegrace-node plan || test $? = 2")
		took := time.Since(asked)
		answer, _ := m.TryRun(ctx, "timeout", "5", "bash", "-c", healthz)
		if ctx.Err() != nil {
			return most
		}
		memory, descriptors, _ := strings.Cut(out, "\n")
		kib, _ := strconv.Atoi(memory)
		fds, _ := strconv.Atoi(descriptors)
		assert.NoError(t, err)
		assert.NoError(t, socketErr)
		most.memory, most.descriptors, most.slowest = max(most.memory, kib), max(most.descriptors, fds), max(most.slowest, took)
		most.answers++
		if strings.Contains(answer, "200 OK") {
			most.port++
		}
	}
	return most
}
