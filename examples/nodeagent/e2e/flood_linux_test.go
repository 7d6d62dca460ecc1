//go:build e2e

package e2e_test

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// floodUnit runs the program of testdata/flood.
const floodUnit = "[Service]\nUser=65534\nLimitNOFILE=20000\nExecStart=/usr/local/bin/flood\nRestart=always\n"

const (
	floodTime      = 30 * time.Second // before the drain, and it goes on in it
	mostMemory     = 100 << 10        // KiB
	mostDescriptor = 200
)

// Another user floods the agent before and during a drain. It keeps its size, says how it is, and drains as ever.
func TestAFloodedAgentDrainsInTime(t *testing.T) { eachPlatform(t, testAFloodedAgentDrainsInTime) }

func testAFloodedAgentDrainsInTime(t *testing.T, on platform) {
	m, server, containers := bootAgent(t, on, map[string]string{
		"/etc/systemd/system/flood.service": floodUnit,
	}, func(m *Machine) {
		m.WriteFile(t, "/usr/local/bin/flood", 0o755, buildProgram(t, "github.com/kubegrace/kubegrace/examples/nodeagent/e2e/testdata/flood"))
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
	t.Logf("at most %d MB and %d descriptors; healthz %d times, after %v at most; drained after %v",
		most.memory>>10, most.descriptors, most.answers, most.slowest, exits.lastExit().Sub(asked))
	require.Less(t, most.memory, mostMemory)
	require.Less(t, most.descriptors, mostDescriptor)
	require.Greater(t, most.answers, 20)
	checkBuckets(t, asked, exits)
	checkExitCodes(t, exits)
	checkPowerOff(t, exits, m.Journal(t))
}

// size is the most that an agent has used, and how it has answered.
type size struct {
	memory, descriptors, answers int // memory in KiB
	slowest                      time.Duration
}

// watch looks at the agent, and asks it how it is, until ctx ends.
func watch(ctx context.Context, t *testing.T, m *Machine) (most size) {
	const script = `pid=$(systemctl show --property=MainPID --value nodeagent) && sed -n 's/^VmHWM:[^0-9]*\([0-9]*\).*/\1/p' /proc/$pid/status && ls /proc/$pid/fd | wc -l`
	const healthz = `exec 3<>/dev/tcp/127.0.0.1/10290 && printf 'GET /healthz HTTP/1.0\r\n\r\n' >&3 && timeout 10 head -n 1 <&3`
	for ctx.Err() == nil {
		out, err := m.run(ctx, "bash", "-c", script)
		asked := time.Now()
		answer, healthErr := m.run(ctx, "bash", "-c", healthz)
		if ctx.Err() != nil {
			return most
		}
		memory, descriptors, _ := strings.Cut(out, "\n")
		kib, _ := strconv.Atoi(memory)
		fds, _ := strconv.Atoi(descriptors)
		assert.NoError(t, err)
		assert.NoError(t, healthErr)
		assert.Contains(t, answer, "200 OK", fmt.Sprintf("after %v", time.Since(asked)))
		most.memory, most.descriptors, most.slowest = max(most.memory, kib), max(most.descriptors, fds), max(most.slowest, time.Since(asked))
		most.answers++
		<-time.After(200 * time.Millisecond)
	}
	return most
}
